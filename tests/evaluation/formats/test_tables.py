"""The reader of labelled texts."""

import pytest

from mini_bert.errors import DataError
from mini_bert.evaluation.formats.conllu import Sentence
from mini_bert.evaluation.formats.reading import load_sentences
from mini_bert.evaluation.formats.tables import Columns, Labelled, read_labelled, read_table
from mini_bert.evaluation.tasks.guess import guess_task
from mini_bert.evaluation.tasks.texts.classes import require_classes


@pytest.mark.parametrize(("content", "words"), [
    ("sentence\tlabel\n", "no examples"), ("words\n", "no examples"), ("", "no rows"),
    ("sentence\nfine\n", "not clear which column has the labels; its columns are sentence"),
    ("sentence\tlabel\na\tb\tc\n", "line 2: it has 3 columns"),
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


def test_fractional_labels_are_numbers_and_no_classes(tmp_path):
    file = tmp_path / "sts.tsv"
    file.write_text("sentence1\tsentence2\tscore\na\tb\t5.000\na\tc\t3.800\n")
    records = read_table(file)
    assert [record.label for record in records] == ["5.000", "3.800"]
    with pytest.raises(DataError, match=r"sts has the label 3\.800, a number on a scale; .* --task regression"):
        require_classes(records, "sts")
    require_classes([Labelled("a", "b", "5"), Labelled("a", "c", "3")], "sts")
    assert guess_task(file).task == "regression"


# -------------------------------------------------------------------- which columns


def written(folder, content, name="a.csv"):
    (folder / name).write_text(content)
    return folder / name


def test_columns_are_chosen_by_name_by_content_or_by_the_caller(tmp_path):
    file = written(tmp_path, "Nr;Kommentar;Urteil\n" + "".join(
        f"{i};Das ist der Text Nummer {i}.;{'gut' if i % 2 else 'schlecht'}\n" for i in range(6)))
    found = read_labelled(file)
    assert found.columns == Columns(("Kommentar",), ("Urteil",))
    assert found.records[1] == Labelled("Das ist der Text Nummer 1.", None, "gut")
    assert "6 rows; the text is column 'Kommentar', the label column 'Urteil', by their content" in found.says
    assert read_labelled(file, Columns(("Urteil",), ("nr",))).records[0] == Labelled("schlecht", None, "0")
    assert read_labelled(file, Columns(("2",), ("3",))).records == found.records          # by number
    named = read_labelled(written(tmp_path, "id,text,label\n1,a b,x\n"))
    assert "by their content" not in named.says
    with pytest.raises(DataError, match="has no column 'x'; its columns are id, text, label"):
        read_labelled(file, Columns(("x",)))
    with pytest.raises(DataError, match="cannot be both"):
        read_labelled(file, Columns(("1",), ("1",)))


def test_what_cannot_be_told_apart_is_not_guessed(tmp_path):
    rows = "".join(f"a b c d e f,{'m' if i % 2 else 'w'},{i % 3}\n" for i in range(9))
    with pytest.raises(DataError, match="not clear which column has the labels; its columns are story, sex, stars"):
        read_labelled(written(tmp_path, "story,sex,stars\n" + rows))
    with pytest.raises(DataError, match="not clear which column is the text; its columns are one, two, kind"):
        read_labelled(written(tmp_path, "one,two,kind\na b c,d e f,x\na b c,d e f,y\n"))


def test_a_table_without_names_is_read_by_numbers(tmp_path):
    found = read_labelled(written(tmp_path, "".join(f"some text that is long {i},{i % 2}\n" for i in range(8))))
    assert found.columns == Columns(("1",), ("2",))
    assert len(found.records) == 8


def test_the_task_is_found_by_what_the_labels_are(tmp_path):
    def task(content, name="a.csv", columns=None):
        return guess_task(written(tmp_path, content, name), columns).task

    assert task("text,label\na,x\nb,y\n") == "classification"
    assert task("text,label\na,1\nb,0\n") == "classification"
    assert task("text,label\na,1.5\nb,0\n") == "regression"
    assert task("text,label\n" + "".join(f"a,{i}\n" for i in range(100))) == "regression"
    assert task("text,label\na,x|y\nb,y\nc,x\nd,x|y\ne,y|x\n") == "multilabel"
    assert task("text,x,y\na,1,0\nb,0,0\n", columns=Columns((), ("x", "y"))) == "multilabel"
    assert task('{"text": "a", "label": ["x", "y"]}\n', "a.jsonl") == "multilabel"
    assert task('{"tokens": ["Anna"], "ner_tags": ["B-PER"]}\n', "a.jsonl") == "ner"
    assert task('[{"question": "q", "context": "c", "answer": "c"}]', "a.json") == "qa"
    assert task("gj04\t1\t\tFine.\ngj04\t0\t*\tFine not.\n", "a.tsv") == "cola"
    assert task("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tone\ttwo\n", "a.tsv") == "mrpc"
    assert task("anna B-PER\n", "a.conll") == "ner"


def test_words_in_lists_have_labels_in_lists(tmp_path):
    file = written(tmp_path, '{"tokens": ["Anna", "ran"], "ner_tags": ["I-PER", "O"], "upos": ["PROPN", "VERB"]}\n',
                   "a.jsonl")
    assert load_sentences(file) == [Sentence(("Anna", "ran"), upos=("PROPN", "VERB"), entities=("B-PER", "O"))]
    for content, words in (('{"tokens": ["Anna"], "ner_tags": []}', "line 1: there are 1 words and 0 of ner_tags"),
                           ('{"tokens": "Anna", "ner_tags": ["O"]}', "line 1: tokens is not a list"),
                           ('{"tokens": ["Anna"], "ner_tags": [3]}', "the label '3' is not O, B-TYPE or I-TYPE"),
                           ('{"words": ["Anna"]}', "needs a column of words, such as tokens, and one of their labels")):
        with pytest.raises(DataError, match=words):
            load_sentences(written(tmp_path, content + "\n", "b.jsonl"))
