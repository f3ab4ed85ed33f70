"""The readers of tables: what spreadsheets, pandas, GLUE and the hub write."""

import importlib.util

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_bert.errors import DataError
from mini_bert.text.tables import read_columns


def table(folder, content, name="a.csv"):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    found = read_columns(folder / name)
    return found.columns, [list(row) for row in found.rows], found.numbers


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt"])
def test_the_delimiter_is_found_whatever_the_name(tmp_path, delimiter, name):
    content = delimiter.join(["text", "label"]) + "\n" + delimiter.join(["one two", "x"]) + "\n"
    assert table(tmp_path, content, name) == (["text", "label"], [["one two", "x"]], [2])


def test_cells_in_quotation_marks_have_delimiters_line_ends_and_marks(tmp_path):
    content = 'text,label\r\n"one, ""two""\r\nthree",x\r\n\r\nfour,"y"\r\n'
    assert table(tmp_path, content) == (["text", "label"], [['one, "two"\r\nthree', "x"], ["four", "y"]], [2, 5])


def test_single_quotation_marks_of_glue_are_kept(tmp_path):
    content = 'sentence\tlabel\n"Hello, he said.\t1\nbye" and "so on"\t0\n'
    assert table(tmp_path, content, "a.tsv")[1] == [['"Hello, he said.', "1"], ['bye" and "so on"', "0"]]
    quoted = 'sentence\tlabel\n"Hello, ""he"" said."\t1\nbye\t0\n'
    assert table(tmp_path, quoted, "a.tsv")[1] == [['Hello, "he" said.', "1"], ["bye", "0"]]
    one_column = 'text\n"Hello," he said.\nwell, bye\n'
    assert table(tmp_path, one_column)[1] == [['"Hello," he said.'], ["well, bye"]]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_says_the_encoding(tmp_path, encoding):
    assert table(tmp_path, "text;label\nschön;x\n".encode(encoding)) == (["text", "label"], [["schön", "x"]], [2])


def test_other_encodings_are_refused_with_their_line_and_what_to_do(tmp_path):
    with pytest.raises(DataError, match="line 2: byte 3 is not UTF-8; name the file's encoding with --encoding, such as"
                                        " cp1252 for a table that Excel saved"):
        table(tmp_path, "text\nsch\xf6n\n".encode("latin-1"))


def test_an_encoding_that_is_named_is_used_where_no_mark_says_another(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes("text;label\nun café “français”;bon\n".encode("cp1252"))
    assert read_columns(file, "cp1252").rows == [["un café “français”", "bon"]]
    (tmp_path / "marked.csv").write_bytes("text;label\nschön;x\n".encode("utf-16"))
    assert read_columns(tmp_path / "marked.csv", "cp1252").rows == [["schön", "x"]]
    with pytest.raises(DataError, match="line 2: byte 6 is not ASCII; the file is not in the encoding ascii"):
        read_columns(file, "ascii")
    for wrong in ("klingon", "hex", "a\0b", ""):
        with pytest.raises(DataError, match="There is no encoding"):
            read_columns(file, wrong)


def test_the_first_row_is_a_header_unless_it_looks_like_the_others(tmp_path):
    assert table(tmp_path, "a good film,1\na bad film,0\n")[0] == ["1", "2"]
    assert table(tmp_path, "a good film,good\na bad film,bad\nanother,good\n")[0] == ["1", "2"]
    assert table(tmp_path, "film,verdict\na bad film,bad\nanother,good\n")[0] == ["film", "verdict"]
    assert table(tmp_path, "2024,text\n3,a\n")[0] == ["2024", "text"]       # one usual name is enough


def test_rows_of_another_length_are_refused_with_their_line(tmp_path):
    with pytest.raises(DataError, match="line 3: it has 3 columns, but the first line has 2"):
        table(tmp_path, 'text,label\n"a, b",x\nc,d,e\n')
    with pytest.raises(DataError, match="quotation marks that are not in pairs: line 2 or one that follows it"):
        table(tmp_path, 'text,label,more\n"a,x\nb,y,z,1\n')


def test_json_is_a_list_of_objects_or_one_a_line(tmp_path):
    rows = [["a", None], ["b", [1, 2]]]
    lines = '{"text": "a"}\n\n{"text": "b", "label": [1, 2]}\n'
    assert table(tmp_path, lines, "a.jsonl") == (["text", "label"], rows, [1, 3])
    assert table(tmp_path, '[{"text": "a"}, {"text": "b", "label": [1, 2]}]', "a.json")[1] == rows
    assert table(tmp_path, '{"data": [{"text": "a"}], "version": 1}', "a.json")[1] == [["a"]]
    assert table(tmp_path, '{"text": "a"}\n', "a.txt")[1] == [["a"]]        # by its content
    for content, words in (("[1]", "item 1: it is a JSON int, not an object"), ("{}", "needs a list of objects"),
                           ("[]", "has no rows"), ('[{"a": 1}', "cannot be read as JSON")):
        with pytest.raises(DataError, match=words):
            table(tmp_path, content, "a.json")


def test_cells_are_given_as_text(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"a": 1, "b": true, "c": null, "d": 1.5, "e": {}, "f": ["x", 2]}\n')
    found = read_columns(tmp_path / "a.jsonl")
    assert [found.text(0, column) for column in range(4)] == ["1", "true", "", "1.5"]
    assert found.texts(0, 5) == ("x", "2")
    for column, words in ((4, "line 1: e is an object, where text is needed"), (5, "f is a list, where")):
        with pytest.raises(DataError, match=words):
            found.text(0, column)


def test_columns_with_one_name_are_told_apart_by_number(tmp_path):
    (tmp_path / "a.csv").write_text("text,Text,x\na,b,c\n")
    found = read_columns(tmp_path / "a.csv")
    assert (found.column("text"), found.column("Text"), found.column("X"), found.column("3")) == (0, 1, 2, 2)
    with pytest.raises(DataError, match="has 2 columns named 'TEXT'"):
        found.column("TEXT")


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="the extra parquet is not installed")
def test_parquet_is_read(tmp_path):
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"text": ["a", "b"], "label": [1, None], "tags": [["x"], []]}),
                                tmp_path / "a.parquet")
    found = read_columns(tmp_path / "a.parquet")
    assert found.columns == ["text", "label", "tags"]
    assert [found.text(row, 1) for row in (0, 1)] == ["1", ""]
    assert found.texts(0, 2) == ("x",)
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-20])
    with pytest.raises(DataError, match=r"b\.parquet cannot be read as Parquet"):
        read_columns(tmp_path / "b.parquet")


def test_parquet_without_pyarrow_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r'needs pyarrow: pip install "mini-bert\[parquet\]"'):
        read_columns(tmp_path / "a.parquet")


@given(st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
                         min_size=2, max_size=2), min_size=1, max_size=5))
def test_what_pythons_csv_writes_is_read_back(tmp_path_factory, rows):
    import csv

    folder = tmp_path_factory.mktemp("csv")
    with (folder / "a.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([["text", "label"], *rows])
    found = read_columns(folder / "a.csv")
    assert [list(row) for row in found.rows] == rows
