"""Text from the library `datasets`: names, columns, and errors."""

import json
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest
from fake_datasets import Examples

from mini_bert import CorpusError
from mini_bert.interop.hub import HubName, HubSource, parse_hub_name
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.corpora.sources import ReadingReport, find_sources, paragraphs
from mini_bert.text.wordpiece.learn import count_words, learn_vocabulary
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer


@pytest.mark.parametrize(("name", "parts"), [
    ("hub:wikitext", HubName("wikitext")),
    ("hub:owner/name", HubName("owner/name")),
    ("hub:name:config", HubName("name", "config")),
    ("hub:name:config:test", HubName("name", "config", "test")),
    ("hub:name::test", HubName("name", None, "test")),
    ("hub:name::", HubName("name")),
    ("hub:./folder", HubName("./folder")),
    (r"hub:C:\texts\mine", HubName(r"C:\texts\mine")),
    (r"hub:C:\texts\mine::test", HubName(r"C:\texts\mine", None, "test")),
])
def test_a_name_is_parsed_into_its_parts(name, parts):
    assert parse_hub_name(name) == parts


@pytest.mark.parametrize("name", ["hub:", "hub::config", "hub:a:b:c:d"])
def test_a_malformed_name_is_refused(name):
    with pytest.raises(CorpusError, match=r"not have the form hub:NAME\[:CONFIG\]\[:SPLIT\]"):
        find_sources([name])


@pytest.mark.parametrize("found", [None, ModuleType("datasets")], ids=["nothing", "a folder of that name"])
def test_a_missing_library_is_answered_with_how_to_install_it(monkeypatch, found):
    monkeypatch.setitem(sys.modules, "datasets", found)
    with pytest.raises(CorpusError, match=r'^hub:wikitext needs .*: pip install "mini-bert\[hub\]"\.$'):
        find_sources(["hub:wikitext"])


def test_the_library_is_imported_only_when_used():
    program = "import sys, mini_bert\nfrom mini_bert.text.corpora.sources import find_sources\nfind_sources(['-'])\n" \
              "print('datasets' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# ---------------------------------------------------------------- a fake library


@pytest.fixture
def library(monkeypatch):
    """A fake library with one dataset, which records the calls."""
    fake = SimpleNamespace(examples=Examples([{"text": "one"}]), asked=[],
                           get_dataset_config_names=lambda name: ["default", "large"])

    def load_dataset(*where, **how):
        fake.asked.append((*where, how["split"], how["streaming"]))
        return fake.examples

    fake.load_dataset = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", fake)
    return fake


@pytest.mark.parametrize(("name", "asked"), [
    ("hub:name", ("name", None, "train", True)),
    ("hub:name:large", ("name", "large", "train", True)),
    ("hub:name:test", ("name", None, "test", True)),              # there is no config of this name
    ("hub:name:large:test", ("name", "large", "test", True)),
    ("hub:name::large", ("name", None, "large", True)),
])
def test_a_single_word_is_a_config_or_else_a_split(library, name, asked):
    HubSource(name)
    assert library.asked == [asked]


def test_an_example_is_a_document_and_its_lines_are_paragraphs(library):
    library.examples = Examples([{"text": " One.\n\nTwo é.\r\n"}, {"text": None}, {"text": ""}, {"text": "Three."}])
    source = HubSource("hub:name")
    for _ in range(2):                                            # a source can be read again
        report = ReadingReport()
        assert list(paragraphs([source], report)) == ["One.", "Two é.", None, "Three."]
        assert report.bytes_read == len(" One.\n\nTwo é.\r\n\n\nThree.\n".encode())


@pytest.mark.parametrize(("example", "kinds", "message"), [
    ({"a": "x", "b": "y"}, None, "several of its columns hold strings: a, b"),
    ({"a": "x", "b": "y"}, {"a": "string", "b": "large_string"}, "several of its columns hold strings: a, b"),
    ({"n": 1, "m": 2}, None, "none of its columns hold strings: n, m"),
    ({"n": 1, "text": 2}, {"n": "int64", "text": "int64"}, "none of its columns hold strings: n, text"),
    ({}, None, "hub:name has no examples"),
])
def test_a_dataset_without_a_clear_column_is_refused(library, example, kinds, message):
    features = None if kinds is None else {key: SimpleNamespace(dtype=dtype) for key, dtype in kinds.items()}
    library.examples = Examples([example] if example else [], features)
    with pytest.raises(CorpusError, match=message):
        HubSource("hub:name")


@pytest.mark.parametrize(("example", "features"), [
    ({"body": "x y", "n": 1}, None),
    ({"body": "x y", "n": 1}, {"body": SimpleNamespace(dtype="string"), "n": SimpleNamespace(dtype="int64"),
                               "nested": {}}),
])
def test_the_only_column_of_strings_is_the_text(library, example, features):
    library.examples = Examples([example], features)
    assert list(HubSource("hub:name").lines(ReadingReport(), strict=True)) == ["x y", ""]


def test_errors_of_the_library_become_clear_messages(library):
    def broken():
        yield {"text": "one"}
        raise RuntimeError("The stream broke.\nAt great length.")

    library.examples = type("Stream", (), {"features": None, "__iter__": lambda self: broken()})()
    source = HubSource("hub:name")
    with pytest.raises(CorpusError, match=r"^hub:name cannot be read: The stream broke\.$"):
        list(source.lines(ReadingReport(), strict=False))
    del library.get_dataset_config_names
    with pytest.raises(CorpusError, match=r"^hub:name:x cannot be opened: .*get_dataset_config_names'\.$"):
        HubSource("hub:name:x")


# ---------------------------------------------------------------- the real library, on local files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A dataset of two splits in local files, without network access."""
    pytest.importorskip("datasets", reason='the library is an extra: pip install "mini-bert[hub]"')
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    made = tmp_path / "texts"
    made.mkdir()
    for split, texts in {"train": ["The cat sat.\nOn a mat.", "The dog ran away."], "test": ["The end."]}.items():
        (made / f"{split}.jsonl").write_text("".join(json.dumps({"n": 1, "text": text}) + "\n" for text in texts))
    return made


def test_a_local_folder_is_read_with_the_real_library(folder):
    def read(name: str) -> list[str | None]:
        return list(paragraphs(find_sources([name]), ReadingReport()))

    assert read(f"hub:{folder}") == ["The cat sat.", "On a mat.", None, "The dog ran away."]
    for name in (f"hub:{folder}:test", f"hub:{folder}::test", f"hub:{folder}:default:test"):
        assert read(name) == ["The end."]
    with pytest.raises(CorpusError, match=r"cannot be opened: Bad split: nowhere\. Available splits: .*train.*\.$"):
        read(f"hub:{folder}:nowhere")
    with pytest.raises(CorpusError, match="cannot be opened"):
        read(f"hub:{folder / 'missing'}")


def test_a_corpus_is_prepared_with_the_real_library(folder, tmp_path):
    name = f"hub:{folder}"
    texts = [text for text in paragraphs(find_sources([name]), ReadingReport()) if text]
    tokenizer = WordPieceTokenizer(learn_vocabulary(count_words(texts), 60, min_frequency=1))
    manifest = prepare([name], tokenizer, tmp_path / "corpus", heldout=0, workers=1)
    assert (manifest.documents, manifest.paragraphs, manifest.unknown_tokens) == (2, 3, 0)
    assert manifest.sources == [name]


def test_a_folder_of_plain_text_is_read_with_the_real_library(folder):
    for file in folder.iterdir():
        file.unlink()
    (folder / "a.txt").write_text("First line.\nSecond line.\n")
    assert list(paragraphs(find_sources([f"hub:{folder}"]), ReadingReport())) == ["First line.", None, "Second line."]
