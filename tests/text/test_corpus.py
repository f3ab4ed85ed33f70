"""Preparing a corpus: its content, recovery from failures, and what is refused."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mini_bert import CorpusError
from mini_bert.files import claims
from mini_bert.text.batches import MLMBatches
from mini_bert.text.corpora import dedup as dedup_module
from mini_bert.text.corpora import file_source
from mini_bert.text.corpora import prepare as module
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.text.corpora.dedup import Deduplicator
from mini_bert.text.corpora.file_array import FileArray, block_sums
from mini_bert.text.corpora.prepare import prepare, token_dtype
from mini_bert.text.wordpiece.learn import count_words, learn_vocabulary
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer


@pytest.fixture
def file(tmp_path, make_text):
    (tmp_path / "text.txt").write_text(make_text(40, seed=1))
    return tmp_path / "text.txt"


def texts(corpus: Corpus) -> list[str]:
    return [" ".join(corpus.tokenizer.vocabulary[i] for i in corpus.document(n))
            for n in range(corpus.manifest.documents)]


def test_a_corpus_has_the_documents_and_sentences_of_the_text(tmp_path, tokenizer):
    (tmp_path / "a.txt").write_text("The cat sat. A mat!\nThe cat ran.\n\nThe master looked.\n")
    prepare([str(tmp_path / "a.txt")], tokenizer, tmp_path / "made", heldout=0)
    corpus = Corpus(tmp_path / "made")
    assert corpus.manifest.documents == 2
    assert [[tokenizer.decode(sentence) for sentence in corpus.document_sentences(n)] for n in (0, 1)] == \
        [["the cat sat.", "a mat [UNK]" if "!" not in tokenizer.vocabulary.ids else "a mat!", "the cat ran."],
         ["the master looked."]]
    assert corpus.document(1).tolist() == tokenizer.ids("The master looked.")
    assert corpus.manifest.bytes_read == (tmp_path / "a.txt").stat().st_size


@pytest.mark.parametrize("block", [50, 400, 1 << 19])
@pytest.mark.parametrize("workers", [1, 2])
def test_the_result_does_not_depend_on_blocks_or_workers(file, tmp_path, tokenizer, monkeypatch, block, workers):
    monkeypatch.setattr(module, "_BLOCK", 1 << 19)
    prepare([str(file)], tokenizer, tmp_path / "whole", workers=1)
    monkeypatch.setattr(module, "_BLOCK", block)
    prepare([str(file)], tokenizer, tmp_path / "parts", workers=workers)
    for name in ("tokens", "sentences", "documents", "splits"):
        assert (tmp_path / "whole" / f"{name}.bin").read_bytes() == (tmp_path / "parts" / f"{name}.bin").read_bytes()


def test_duplicate_paragraphs_are_dropped_and_counted(tmp_path, tokenizer):
    (tmp_path / "a.txt").write_text("The cat sat.\nA mat.\n\nThe cat sat.\n\nThe cat sat.\nThe end ran.\n")
    manifest = prepare([str(tmp_path / "a.txt")], tokenizer, tmp_path / "made", heldout=0)
    assert (manifest.paragraphs, manifest.duplicate_paragraphs, manifest.documents) == (5, 2, 2)
    kept = prepare([str(tmp_path / "a.txt")], tokenizer, tmp_path / "kept", heldout=0, deduplicate=False)
    assert (kept.duplicate_paragraphs, kept.documents) == (0, 3)
    twice = prepare([str(tmp_path / "a.txt")] * 3, tokenizer, tmp_path / "twice", heldout=0)
    assert twice.tokens == manifest.tokens


def test_documents_stay_in_their_split_when_text_is_added(tmp_path, tokenizer, make_text):
    (tmp_path / "a.txt").write_text(make_text(400, seed=3))
    prepare([str(tmp_path / "a.txt")], tokenizer, tmp_path / "made", heldout=0.2)
    corpus = Corpus(tmp_path / "made")
    train, held = corpus.split("train"), corpus.split("heldout")
    assert sorted([*train, *held]) == list(range(corpus.manifest.documents))
    assert 0.12 < len(held) / corpus.manifest.documents < 0.28
    chosen = {texts(corpus)[n] for n in held}
    (tmp_path / "b.txt").write_text(make_text(50, seed=4) + "\n" + make_text(400, seed=3))
    prepare([str(tmp_path / "b.txt")], tokenizer, tmp_path / "more", heldout=0.2)
    more = Corpus(tmp_path / "more")
    assert chosen <= {texts(more)[n] for n in more.split("heldout")}       # held out again, among others
    with pytest.raises(CorpusError, match=r"'dev'.*train, heldout"):
        corpus.split("dev")


def test_at_least_one_of_several_documents_is_held_out(tmp_path, tokenizer):
    (tmp_path / "a.txt").write_text("The cat.\n\nA mat.\n")
    assert prepare([str(tmp_path / "a.txt")], tokenizer, tmp_path / "made", heldout=1e-9).heldout_documents == 1


def test_at_least_one_document_is_left_for_training(tmp_path, tokenizer):
    (tmp_path / "a.txt").write_text("The cat.\n\nThe mat.\n\nThe master ran.\n")
    manifest = prepare([str(tmp_path / "a.txt")], tokenizer, tmp_path / "made", heldout=0.9999999)
    assert manifest.heldout_documents == 2
    assert len(Corpus(tmp_path / "made").split("train")) == 1


def test_a_document_may_start_with_a_paragraph_without_tokens(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 1)              # one paragraph per block
    (tmp_path / "a.txt").write_text("The cat.\n\n\u200b\u200b\nThe mat.\nA master.\n\nThe cat ran.\n", "utf-8")
    prepare([str(tmp_path / "a.txt")], tokenizer, tmp_path / "made", heldout=0, workers=1)
    corpus = Corpus(tmp_path / "made")
    assert [tokenizer.decode(corpus.document(n)) for n in range(corpus.manifest.documents)] == \
        ["the cat.", "the mat. a master.", "the cat ran."]


def test_fragments_of_a_long_line_are_not_duplicates(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setattr(file_source, "BLOCK", 64)
    (tmp_path / "a.txt").write_text("the cat sat on a mat and " * 100)
    manifest = prepare([str(tmp_path / "a.txt")], tokenizer, tmp_path / "made", heldout=0)
    assert manifest.duplicate_paragraphs == 0
    assert Corpus(tmp_path / "made").tokens.tolist() == tokenizer.ids("the cat sat on a mat and") * 100


def test_pieces_are_counted(corpus):
    counts = corpus.piece_counts()
    assert counts.sum() == corpus.manifest.tokens
    assert counts[corpus.tokenizer.vocabulary.ids["the"]] == (np.asarray(corpus.tokens)
                                                              == corpus.tokenizer.vocabulary.ids["the"]).sum()


def test_large_vocabularies_need_four_bytes_per_token():
    assert (token_dtype(65536), token_dtype(65537)) == ("uint16", "uint32")


def test_duplicates_are_found_beyond_the_memory_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(dedup_module, "_IN_MEMORY", 8)
    duplicates = Deduplicator(tmp_path)
    names = [f"text {n}" for n in range(300)]
    assert all(duplicates.add(name) for name in names)
    assert not any(duplicates.add(name) for name in names)
    assert duplicates.add("another")
    assert len(duplicates.runs) < 8
    assert all((np.diff(run.astype(object)) > 0).all() for run in duplicates.runs)


# -------------------------------------------------------------------- failures, and what they leave behind

def left(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_an_existing_directory_is_not_touched(file, tmp_path, tokenizer):
    prepare([str(file)], tokenizer, tmp_path / "made")
    before = {path.name: path.read_bytes() for path in (tmp_path / "made").iterdir()}
    with pytest.raises(CorpusError, match="already exists"):
        prepare([str(file)], tokenizer, tmp_path / "made")
    assert {path.name: path.read_bytes() for path in (tmp_path / "made").iterdir()} == before
    prepare([str(file)], tokenizer, tmp_path / "made", overwrite=True)
    with pytest.raises(CorpusError, match="not a corpus"):
        prepare([str(file)], tokenizer, tmp_path, overwrite=True)
    assert file.exists()


@pytest.mark.parametrize("content", [b"", b"\n \n\n", b"\x00\x01binary"])
def test_a_failed_preparation_leaves_nothing_behind(tmp_path, tokenizer, content):
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(CorpusError):
        prepare([str(tmp_path / "a.txt")], tokenizer, tmp_path / "made")
    assert left(tmp_path) == ["a.txt"]


def test_a_full_disk_is_reported_and_leaves_nothing_behind(file, tmp_path, tokenizer, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CorpusError, match="No space left"):
        prepare([str(file)], tokenizer, tmp_path / "made")
    assert left(tmp_path) == ["text.txt"]


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL needs POSIX")
def test_a_killed_preparation_leaves_nothing_that_looks_finished(tmp_path, tokenizer, make_text):
    (tmp_path / "a.txt").write_text(make_text(3000, seed=5))
    tokenizer.save(tmp_path / "tokenizer")
    program = ("import sys\nfrom mini_bert.text.corpora.prepare import prepare\n"
               "from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer\n"
               "t = WordPieceTokenizer.load(sys.argv[1])\n"
               "prepare([sys.argv[2]] * 50, t, sys.argv[3], workers=1, deduplicate=False)\n")
    out = tmp_path / "made"
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "tokenizer"), str(tmp_path / "a.txt"),
                                str(out)])
    while not list(tmp_path.glob(".made.*.new/tokens.bin")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not out.exists()
    [partial] = tmp_path.glob(".made.*.new")
    with pytest.raises(CorpusError, match=r"no corpus\.json"):
        Corpus(partial)
    prepare([str(tmp_path / "a.txt")], tokenizer, out, workers=1)         # a new attempt succeeds
    assert left(tmp_path) == ["a.txt", "made", "tokenizer"]


def test_a_corpus_of_another_vocabulary_is_refused(corpus, tokenizer, tmp_path):
    other = WordPieceTokenizer([*tokenizer.vocabulary.pieces, "zebra"])
    with pytest.raises(CorpusError, match="another vocabulary"):
        corpus.require_vocabulary(other)
    shutil.copytree(corpus.directory, tmp_path / "copy")
    other.save(tmp_path / "copy")
    with pytest.raises(CorpusError, match="another vocabulary"):
        _ = Corpus(tmp_path / "copy").tokenizer


def test_a_damaged_corpus_is_refused(corpus, tmp_path):
    shutil.copytree(corpus.directory, tmp_path / "copy")
    tokens = tmp_path / "copy" / "tokens.bin"
    tokens.write_bytes(tokens.read_bytes()[:-2])
    with pytest.raises(CorpusError, match=r"tokens\.bin"):
        Corpus(tmp_path / "copy")
    tokens.unlink()
    with pytest.raises(CorpusError, match=r"tokens\.bin"):
        Corpus(tmp_path / "copy")
    manifest = tmp_path / "copy" / "corpus.json"
    whole = json.loads(manifest.read_text())
    for bad in ("{", "[]", json.dumps(whole | {"format_version": 99}), json.dumps(whole | {"colour": 1}),
                json.dumps(whole | {"tokens": -1}), json.dumps(whole | {"dtype": "object"})):
        manifest.write_text(bad)
        with pytest.raises(CorpusError, match=r"corpus\.json"):
            Corpus(tmp_path / "copy")
    with pytest.raises(CorpusError, match="not a prepared corpus"):
        Corpus(tmp_path)


def test_an_id_outside_the_vocabulary_is_reported_as_damage(corpus, tmp_path):
    shutil.copytree(corpus.directory, tmp_path / "copy")
    with (tmp_path / "copy" / "tokens.bin").open("r+b") as file:
        file.write(b"\xff\xff")
    with pytest.raises(CorpusError, match="has changed since the corpus was prepared"):
        Corpus(tmp_path / "copy").piece_counts()
    without_digest(tmp_path / "copy")
    with pytest.raises(CorpusError, match="has the id 65535"):
        Corpus(tmp_path / "copy").piece_counts()


@pytest.mark.parametrize("kept", [0, 1 << 25])
def test_every_flipped_bit_of_a_corpus_is_noticed_when_it_is_read(corpus, tmp_path, monkeypatch, rng, kept):
    monkeypatch.setattr("mini_bert.text.corpora.file_array.KEPT", kept)
    shutil.copytree(corpus.directory, tmp_path / "copy")
    noticed = 0
    for file in sorted((tmp_path / "copy").glob("*.bin")):
        content = file.read_bytes()
        for place in rng.integers(8 * len(content), size=25):
            flipped = bytearray(content)
            flipped[place // 8] ^= 1 << place % 8
            file.write_bytes(flipped)
            with pytest.raises(CorpusError, match="damaged"):
                Corpus(tmp_path / "copy").fingerprint()
            noticed += 1
        file.write_bytes(content)
    assert noticed == 5 * 25
    Corpus(tmp_path / "copy").fingerprint()


def test_the_fingerprint_is_of_the_content_and_not_of_the_paths(corpus, text, tokenizer, tmp_path):
    def prepared(name, content):
        (tmp_path / name).mkdir()
        (tmp_path / name / "elsewhere.txt").write_text(content)
        prepare([str(tmp_path / name / "elsewhere.txt")], tokenizer, tmp_path / name / "made", heldout=0.2, workers=1)
        return Corpus(tmp_path / name / "made")

    same, other = prepared("same", text), prepared("other", text.replace("the", "then", 1))
    assert same.manifest.sources != corpus.manifest.sources
    assert same.fingerprint() == corpus.fingerprint() != other.fingerprint()
    manifest = same.directory / "corpus.json"
    before_this = hashlib.blake2b(manifest.read_bytes(), digest_size=16).hexdigest()     # paths included
    assert same.matches(before_this)
    assert not corpus.matches(before_this)
    assert not other.matches(same.fingerprint())


def test_a_manifest_that_was_changed_is_noticed(corpus, tmp_path):
    shutil.copytree(corpus.directory, tmp_path / "copy")
    text = (tmp_path / "copy" / "corpus.json").read_text()
    manifest = json.loads(text)
    (tmp_path / "copy" / "corpus.json").write_text(json.dumps({**manifest, "unknown_tokens": 7}))
    with pytest.raises(CorpusError, match="damaged"):
        Corpus(tmp_path / "copy")


def test_a_large_file_is_read_like_an_array(tmp_path, monkeypatch, rng):
    monkeypatch.setattr("mini_bert.text.corpora.file_array.KEPT", 0)
    values = rng.integers(60_000, size=200_000).astype(np.uint16)
    values.tofile(tmp_path / "x")
    file = FileArray(tmp_path / "x", "uint16", len(values), np.frombuffer(block_sums(tmp_path / "x"), "<u4"))
    places = rng.integers(len(values), size=(50, 7))
    assert np.array_equal(file[places], values[places])
    assert np.array_equal(file[31_000:140_000], values[31_000:140_000])
    assert (file[-1], file[5], len(file[7:7]), len(file)) == (values[-1], values[5], 0, len(values))
    assert np.array_equal(np.asarray(file), values)
    with pytest.raises(IndexError):
        file[len(values)]
    with pytest.raises(CorpusError, match="damaged"):
        file[[len(values)]]


def test_a_link_in_the_way_is_neither_followed_nor_removed(file, tmp_path, tokenizer):
    """An earlier version emptied the folder behind a link of this name."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "work.txt").write_text("work")
    (tmp_path / ".made.partial").symlink_to(tmp_path / "precious")
    prepare([str(file)], tokenizer, tmp_path / "made", workers=1)
    (tmp_path / ".made2.mini-bert").symlink_to(tmp_path / "precious" / "work.txt")
    with pytest.raises(CorpusError, match="Cannot write"):
        prepare([str(file)], tokenizer, tmp_path / "made2", workers=1)
    assert (tmp_path / "precious" / "work.txt").read_text() == "work"


def test_a_folder_with_anything_else_is_not_overwritten(file, tmp_path, tokenizer):
    prepare([str(file)], tokenizer, tmp_path / "made", workers=1)
    (tmp_path / "made" / "notes.txt").write_text("mine")
    with pytest.raises(CorpusError, match=r"such as notes\.txt"):
        prepare([str(file)], tokenizer, tmp_path / "made", workers=1, overwrite=True)
    assert (tmp_path / "made" / "notes.txt").read_text() == "mine"


def without_digest(folder: Path) -> None:
    """Make a corpus look as one that was prepared before there were digests."""
    manifest = json.loads((folder / "corpus.json").read_text())
    del manifest["digest"]
    (folder / "corpus.json").write_text(json.dumps(manifest))
    (folder / "checksums.bin").unlink()


def _heed_interrupts() -> None:
    """Background jobs of a shell ignore SIGINT, and their children inherit this."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_preparation_stops_quickly_and_leaves_nothing_behind(tmp_path, tokenizer, make_text, number):
    tokenizer.save(tmp_path / "tokenizer")
    (tmp_path / "a.txt").write_text(make_text(3000))
    command = [sys.executable, "-m", "mini_bert", "data", "prepare", *[str(tmp_path / "a.txt")] * 100, "--tokenizer",
               str(tmp_path / "tokenizer"), "--out", str(tmp_path / "new" / "made"), "--workers", "2",
               "--keep-duplicates"]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               preexec_fn=_heed_interrupts)
    while not (tmp_path / "new").exists() and process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.5)                                       # the workers are being started
    os.killpg(process.pid, number) if number == signal.SIGINT else process.terminate()
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert b"Traceback" not in errors
    assert not (tmp_path / "new").exists()


def test_a_single_document_is_for_training(tmp_path, tokenizer):
    for number in range(8):
        (tmp_path / "a.txt").write_text(f"The cat sat on mat {number}.")
        prepare([str(tmp_path / "a.txt")], tokenizer, tmp_path / "made", heldout=0.9, overwrite=True)
        assert len(Corpus(tmp_path / "made").split("train")) == 1


def test_a_second_preparation_of_the_same_corpus_is_refused(file, tmp_path, tokenizer):
    def second(done: int, tokens: int) -> None:
        with pytest.raises(CorpusError, match="Another process"):
            prepare([str(file)], tokenizer, tmp_path / "made", workers=1)

    prepare([str(file)], tokenizer, tmp_path / "made", workers=1, progress=second)
    Corpus(tmp_path / "made").tokenizer  # noqa: B018


def test_a_failed_rename_keeps_the_old_corpus(file, tmp_path, tokenizer, monkeypatch):
    prepare([str(file)], tokenizer, tmp_path / "made", workers=1)
    real = Path.rename

    def fail(self, target):
        if self.name.endswith(".new"):
            raise OSError("no")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    monkeypatch.setattr(claims, "exchange", lambda first, second: False)      # as on most systems
    with pytest.raises(CorpusError, match="Cannot write"):
        prepare([str(file)], tokenizer, tmp_path / "made", workers=1, overwrite=True)
    Corpus(tmp_path / "made")
    assert not list(tmp_path.glob(".made*"))


@pytest.mark.parametrize("damage", ["sentences.bin", "documents.bin", "tokens.bin", "vocab_size", "unknown_tokens"])
def test_damage_is_reported_with_a_clear_message(corpus, tmp_path, damage):
    shutil.copytree(corpus.directory, tmp_path / "copy")
    if damage.endswith(".bin"):
        content = np.fromfile(tmp_path / "copy" / damage, np.uint16)
        content[: len(content) // 2] = 65535
        content.tofile(tmp_path / "copy" / damage)
    else:
        manifest = json.loads((tmp_path / "copy" / "corpus.json").read_text())
        (tmp_path / "copy" / "corpus.json").write_text(json.dumps({**manifest, damage: "x"}))
    with pytest.raises(CorpusError, match="damaged"):
        list(MLMBatches(Corpus(tmp_path / "copy"), max_seq_length=16))


@pytest.mark.parametrize("text", ["one two three. " * 300, "One two three. " * 300, "one two three " * 300,
                                  "One two.\n" * 5 + "Three four five six seven. " * 200])
def test_a_long_document_is_split_so_that_part_of_it_can_be_held_out(tmp_path, text):
    (tmp_path / "text.txt").write_text(text)
    tokenizer = WordPieceTokenizer(learn_vocabulary(count_words([text]), 60))
    options = {"heldout": 0.1, "workers": 1, "deduplicate": False}
    whole = prepare([str(tmp_path / "text.txt")], tokenizer, tmp_path / "whole", **options)
    made = prepare([str(tmp_path / "text.txt")], tokenizer, tmp_path / "cut", longest_document=50, **options)
    assert (whole.documents, whole.heldout_documents) == (1, 0)
    corpus = Corpus(tmp_path / "cut")
    lengths = [len(corpus.document(number)) for number in range(made.documents)]
    assert max(lengths) <= 50
    assert min(lengths[:-1]) > 25
    assert 0 < made.heldout_documents < made.documents / 3
    assert np.array_equal(corpus.tokens, Corpus(tmp_path / "whole").tokens)
