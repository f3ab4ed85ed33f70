"""The reader of labelled texts."""

import pytest

from mini_bert.errors import DataError
from mini_bert.evaluation.formats.tables import Labelled, read_table


@pytest.mark.parametrize(("content", "words"), [
    ("sentence\tlabel\n", "no examples"), ("words\n", "line 1: it must name the columns"),
    ("sentence\nfine\n", "no column of labels"), ("sentence\tlabel\na\tb\tc\n", "line 2: it has 3 columns"),
    ("sentence\tlabel\na\t\n", "line 2: its label is empty"), ("sentence\tlabel\n\tx\n", "line 2: its text is empty"),
    ("sentence\tlabel\n\t\n", "line 2: its label is empty"),
    ("sentence\tlabel\n\t \t\n", "line 2: it has 3 columns"),
    ("sentence1\tsentence2\tlabel\na\t \tx\n", "line 2: its second text is empty"),
    ("sentence\tlabel\ncaf\xe9\tx\n", "line 2: byte")])
def test_a_malformed_table_is_refused_with_its_line(tmp_path, content, words):
    (tmp_path / "data.tsv").write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match=words):
        read_table(tmp_path / "data.tsv")


def test_cola_is_read_without_column_names(tmp_path):
    (tmp_path / "dev.tsv").write_text("gj04\t1\t\tThe sailors rode the breeze.\ngj04\t0\t*\tThe weights made.\n")
    assert read_table(tmp_path / "dev.tsv") == [Labelled("The sailors rode the breeze.", None, "1"),
                                                Labelled("The weights made.", None, "0")]


def test_mrpc_is_read(tmp_path):
    (tmp_path / "msr.tsv").write_text("\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tone\ttwo\n\n")
    assert read_table(tmp_path / "msr.tsv") == [Labelled("one", "two", "1")]


def test_fractional_labels_are_refused_and_integers_accepted(tmp_path):
    file = tmp_path / "sts.tsv"
    file.write_text("sentence1\tsentence2\tscore\na\tb\t5.000\na\tc\t3.800\n")
    with pytest.raises(DataError, match=r"sts\.tsv has the label 3\.800, a number on a scale; fine-tuning needs"):
        read_table(file)
    file.write_text("sentence1\tsentence2\tscore\na\tb\t5\na\tc\t3\n")
    assert [record.label for record in read_table(file)] == ["5", "3"]
