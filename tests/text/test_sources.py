"""Reading text from every kind of source, including damaged ones."""

import bz2
import gzip
import io
import lzma
import os
import sys
import threading

import pytest

from mini_bert import CorpusError
from mini_bert.text.corpora import sources as module
from mini_bert.text.corpora.sources import ReadingReport, find_sources, paragraphs

TEXT = "first paragraph\nsecond\n\n\n  \nnext document\n"


def read(*names: str, strict: bool = False) -> tuple[list[str | None], ReadingReport]:
    report = ReadingReport()
    return list(paragraphs(find_sources(names), report, strict)), report


@pytest.mark.parametrize(("name", "pack"), [("a.txt", lambda data: data), ("a.gz", gzip.compress),
                                            ("a.xz", lzma.compress), ("a.bz2", bz2.compress)])
def test_paragraphs_and_documents(tmp_path, name, pack):
    (tmp_path / name).write_bytes(pack(TEXT.encode()))
    assert read(str(tmp_path / name))[0] == ["first paragraph", "second", None, "next document"]


def test_each_file_is_its_own_document(tmp_path):
    for name in ("b.txt", "a.txt"):
        (tmp_path / name).write_text(f"\n\n{name}\n\n")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / ".hidden").write_text("no")
    expected = ["a.txt", None, "b.txt"]
    assert read(str(tmp_path))[0] == expected                          # a folder, in order
    assert read(str(tmp_path / "*.txt"))[0] == expected                # a pattern
    assert read(str(tmp_path / "a.txt"), str(tmp_path / "b.txt"))[0] == expected


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert read("-")[0] == ["first paragraph", "second", None, "next document"]


def test_line_ends_and_byte_order_marks_are_removed(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n\r\nthree")
    assert read(str(tmp_path / "a.txt"))[0] == ["one", "two", None, "three"]


def test_invalid_bytes_are_replaced_counted_and_located(tmp_path):
    file = tmp_path / "bad.txt"
    file.write_bytes(b"good line\nbad \xff\xfe line\n\xc3(\n" + "a \ufffd that was there, ".encode() + b"\xe2\x82\n")
    lines, report = read(str(file))
    assert lines == ["good line", "bad \ufffd\ufffd line", "\ufffd(", "a \ufffd that was there, \ufffd"]
    assert report.invalid == 5
    assert report.first_invalid == f"{file}, byte 14"
    with pytest.raises(CorpusError, match=r"bad\.txt, byte 14"):
        read(str(file), strict=True)


def test_a_line_longer_than_a_block_is_split_at_a_space(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 64)
    text = "word " * 400
    (tmp_path / "long.txt").write_text(text)
    lines, _ = read(str(tmp_path / "long.txt"))
    assert len(lines) > 20
    assert " ".join(lines).split() == text.split()
    (tmp_path / "solid.txt").write_text("x" * 1000)
    assert "".join(read(str(tmp_path / "solid.txt"))[0]) == "x" * 1000
    (tmp_path / "blank.txt").write_text("one\n" + " " * 1000 + "two")
    assert read(str(tmp_path / "blank.txt"))[0] == ["one", "two"]      # a blank fragment is not a blank line


@pytest.mark.parametrize("before", range(5))
def test_a_long_line_is_not_split_inside_a_character(tmp_path, monkeypatch, before):
    monkeypatch.setattr(module, "BLOCK", 64)
    text = "x" * before + "日é𝄞" * 100
    (tmp_path / "solid.txt").write_text(text, "utf-8")
    lines, _ = read(str(tmp_path / "solid.txt"), strict=True)
    assert "".join(lines) == text
    assert all(isinstance(line, module.LineFragment) for line in lines)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_read_as_a_stream(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text(TEXT))
    writer.start()
    assert read(str(tmp_path / "pipe"))[0] == ["first paragraph", "second", None, "next document"]
    writer.join()


def test_blocks_do_not_split_characters(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 7)
    (tmp_path / "a.txt").write_text("éàü 日本 ok\nœ\n", "utf-8")
    lines, report = read(str(tmp_path / "a.txt"))
    assert "".join("".join(lines).split()) == "éàü日本okœ"
    assert report.invalid == 0


@pytest.mark.parametrize(("content", "word"), [(b"PK\x03\x04\x00\x00", "binary"), ("text".encode("utf-16"), "UTF-16")])
def test_binary_files_are_refused(tmp_path, content, word):
    (tmp_path / "a.bin").write_bytes(content)
    with pytest.raises(CorpusError, match=word):
        read(str(tmp_path / "a.bin"))


def test_missing_files_are_refused(tmp_path):
    for name, words in [("absent.txt", "no file or folder"), ("*.nothing", "No file matches"), ("", "no file")]:
        with pytest.raises(CorpusError, match=words):
            read(str(tmp_path / name) if name else name)
    (tmp_path / "folder").mkdir()
    with pytest.raises(CorpusError, match="has no files"):
        read(str(tmp_path / "folder"))
    with pytest.raises(CorpusError, match="No text"):
        read()


def test_a_damaged_archive_is_refused_with_a_clear_message(tmp_path):
    for name, pack in (("a.gz", gzip.compress), ("a.xz", lzma.compress), ("a.bz2", bz2.compress)):
        (tmp_path / name).write_bytes(pack(TEXT.encode() * 100)[:60])
        with pytest.raises(CorpusError, match=name):
            read(str(tmp_path / name))


def test_a_pattern_may_start_with_the_name_of_a_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pydocs-1.txt").write_text("mine")
    assert read("pydocs*.txt")[0] == ["mine"]
