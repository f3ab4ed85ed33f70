"""The reader of BLiMP."""

import json
from pathlib import Path

import pytest

from mini_bert.errors import DataError
from mini_bert.evaluation.formats.minimal_pairs import MinimalPair, data_files, read_minimal_pairs

BLIMP = Path(__file__).parents[4] / "shared" / "data" / "eval" / "blimp"
RECORD = {"sentence_good": "Cats sleep.", "sentence_bad": "Cats sleeps.", "field": "syntax",
          "linguistics_term": "agreement", "UID": "verbs_1", "pairID": "0"}


def write(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_record_has_both_sentences_paradigm_and_phenomenon(tmp_path):
    assert read_minimal_pairs(write(tmp_path / "a.jsonl", RECORD)) == [
        MinimalPair("Cats sleep.", "Cats sleeps.", "verbs_1", "agreement", "syntax")]


@pytest.mark.parametrize(("record", "words"), [
    ({**RECORD, "sentence_bad": None}, "'sentence_bad' is missing or is not text"),
    ({**RECORD, "sentence_good": " "}, "'sentence_good' is empty"),
    ({key: value for key, value in RECORD.items() if key != "UID"}, "'UID' is missing"),
    ([1], "not an object"),
])
def test_a_malformed_line_is_refused_with_its_number(tmp_path, record, words):
    path = write(tmp_path / "a.jsonl", RECORD, record)
    with pytest.raises(DataError, match=f"a.jsonl, line 2: .*{words}"):
        read_minimal_pairs(path)


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="no minimal pairs"):
        read_minimal_pairs(write(tmp_path / "a.jsonl"))


def test_a_folder_stands_for_its_files_in_order_without_duplicates(tmp_path):
    first, second = write(tmp_path / "a.jsonl", RECORD), write(tmp_path / "b.jsonl", RECORD)
    (tmp_path / "README.md").write_text("no data")
    assert data_files([second, tmp_path]) == [second, first]
    (tmp_path / "empty").mkdir()
    for name, words in ((tmp_path / "empty", "has no .jsonl files"), (tmp_path / "absent", "no file or folder")):
        with pytest.raises(DataError, match=words):
            data_files([name])
    with pytest.raises(DataError, match="No data was given"):
        data_files([])


@pytest.mark.skipif(not BLIMP.is_dir(), reason=f"there is no {BLIMP}")
def test_the_published_blimp_files_are_read():
    files = data_files([BLIMP])
    assert len(files) == 34
    for file in files[::8]:
        pairs = read_minimal_pairs(file)
        assert len(pairs) == 1000
        assert {pair.paradigm for pair in pairs} == {file.stem}
