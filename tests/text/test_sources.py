"""Reading text from every kind of source, including damaged ones."""

import bz2
import gzip
import io
import lzma
import os
import sys
import threading
from pathlib import Path

import pytest

from mini_bert import CorpusError, DataError
from mini_bert.text.corpora import file_source as module
from mini_bert.text.corpora.sources import FileReading, ReadingReport, find_sources, numbered_texts, paragraphs

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


def test_binary_files_are_refused(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"PK\x03\x04\x00\x00")
    with pytest.raises(CorpusError, match="binary"):
        read(str(tmp_path / "a.bin"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("block", [7, 1 << 20])
def test_a_byte_order_mark_says_how_a_file_is_decoded(tmp_path, monkeypatch, encoding, block):
    monkeypatch.setattr(module, "BLOCK", block)
    mark = b"\xfe\xff" if encoding.endswith("be") else b""
    (tmp_path / "a.txt").write_bytes(mark + "Zwölf 日本\r\n\r\nb\n".encode(encoding))
    lines, report = read(str(tmp_path / "a.txt"))
    assert "".join("" if line is None else line for line in lines).replace(" ", "") == "Zwölf日本b"
    assert report.invalid == 0
    (tmp_path / "cut.txt").write_bytes(b"\xff\xfea\x00b")
    with pytest.raises(CorpusError, match="cannot be read"):
        read(str(tmp_path / "cut.txt"))


# -------------------------------------------------------------------- folders


def test_a_folder_is_read_without_what_cannot_be_read_and_the_report_lists_it(tmp_path):
    (tmp_path / "a.txt").write_text("good text\n")
    (tmp_path / "b.png").write_bytes(b"\x89PNG\x00\x00")
    (tmp_path / "c.gz").write_bytes(b"not gzip")
    (tmp_path / "d.csv").write_text("a,b\n1,2,3\n")
    report = ReadingReport()
    sources = find_sources([str(tmp_path)], FileReading(skip=True))
    assert list(paragraphs(sources, report)) == ["good text"]
    assert {Path(name).name: reason.split(": ")[-1] for name, reason in report.skipped.items()} == {
        "b.png": "byte 4 is zero.", "c.gz": "Not a gzipped file (b'no').",
        "d.csv": "it has 3 columns, but the first line has 2."}
    with pytest.raises(CorpusError, match=r"b\.png is a binary file"):
        read(str(tmp_path))
    with pytest.raises(CorpusError, match=r"b\.png is a binary file"):      # a file that is named itself
        list(paragraphs(find_sources([str(tmp_path / "b.png")], FileReading(skip=True)), report))


def test_patterns_choose_files_of_a_folder(tmp_path):
    for name in ("a.md", "b.txt", "sub/c.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    chosen = find_sources([str(tmp_path)], FileReading(include=("*.md",)))
    assert [Path(source.name).name for source in chosen] == ["a.md", "c.md"]
    below, = find_sources([str(tmp_path)], FileReading(include=("sub/*",)))
    assert Path(below.name).name == "c.md"
    with pytest.raises(CorpusError, match=r"None of the 3 files in .* matches \*\.rst"):
        find_sources([str(tmp_path)], FileReading(include=("*.rst",)))


# -------------------------------------------------------------------- HTML and tables


def test_html_is_read_as_the_text_that_a_browser_shows(tmp_path):
    (tmp_path / "a.html").write_text(
        "<!doctype html><html><head><title>no</title><style>p {}</style></head><body><h1>A  head</h1>\n"
        "<p>One <b>bold</b>\nword &amp; caf&eacute;.<br>After</p><script>if (a < b) {}</script><ul><li>x<li>y</ul>"
        "<pre>two\nlines</pre><table><tr><td>1<td>2</table>end")
    lines, _ = read(str(tmp_path / "a.html"))
    assert lines == ["A head", "One bold word & café.", "After", "x", "y", "two", "lines", "1", "2", "end"]
    (tmp_path / "b.htm").write_bytes('<meta charset="iso-8859-1"><p>Gr\xf6\xdfe'.encode("latin-1"))
    assert read(str(tmp_path / "b.htm"))[0] == ["Größe"]
    (tmp_path / "c.htm").write_text('<meta charset="nothing"><p>as it is<')
    assert read(str(tmp_path / "c.htm"))[0][0].startswith("as it is")


def test_text_and_tables_are_read_in_the_encoding_that_is_named(tmp_path):
    for name, content in (("a.txt", "Un café.\n"), ("b.htm", "<p>Un café."), ("c.csv", "id,text\n1,Un café.\n")):
        (tmp_path / name).write_bytes(content.encode("cp1252"))
    (tmp_path / "d.htm").write_text('<meta charset="utf-8"><p>Un café.', "utf-8")     # a page that says its own
    (tmp_path / "e.txt").write_bytes("Un café.\n".encode("utf-16"))                   # a mark says more, too
    sources = find_sources([str(tmp_path)], FileReading(encoding="cp1252"))
    assert [line for line in paragraphs(sources, ReadingReport()) if line] == ["Un café."] * 5
    with pytest.raises(DataError, match="There is no encoding 'klingon'"):
        FileReading(encoding="klingon")


def test_each_row_of_a_table_is_a_document(tmp_path):
    (tmp_path / "a.csv").write_text('id,text,n\n1,"One\nline, two",3\n2,Other,4\n')
    (tmp_path / "b.jsonl").write_text('{"x": "short", "y": "this is much the longest text"}\n')
    assert read(str(tmp_path / "a.csv"), str(tmp_path / "b.jsonl"))[0] == [
        "One", "line, two", None, "Other", None, "this is much the longest text"]
    named, = find_sources([str(tmp_path / "b.jsonl")], FileReading(text_column="x"))
    assert list(numbered_texts(named)) == [(1, "short")]
    with pytest.raises(CorpusError, match="has no column 'z'; its columns are x, y"):
        list(paragraphs(find_sources([str(tmp_path / "b.jsonl")], FileReading(text_column="z")), ReadingReport()))


def test_json_that_is_no_list_is_read_as_plain_text(tmp_path):
    (tmp_path / "package.json").write_text('{"name": "one"}\n')
    assert read(str(tmp_path / "package.json"))[0] == ['{"name": "one"}']
    (tmp_path / "rows.json").write_text('[{"text": "one"}]')
    assert read(str(tmp_path / "rows.json"))[0] == ["one"]


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
