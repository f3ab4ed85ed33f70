"""The reader of CoNLL columns."""

import pytest

from mini_bert.errors import DataError
from mini_bert.evaluation.formats.conll import read_conll
from mini_bert.evaluation.formats.conllu import Sentence
from mini_bert.evaluation.tasks.bio import as_bio, entity_f1, entity_spans, is_bio


def test_conll_columns_are_read(tmp_path):
    (tmp_path / "x.txt").write_text("-DOCSTART- -X- -X- O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\n\n"
                                    "-DOCSTART- -X- -X- O\nPeter NNP I-NP B-PER\nBlackburn NNP I-NP I-PER\n")
    assert read_conll(tmp_path / "x.txt") == [Sentence(("EU", "rejects"), entities=("B-ORG", "O")),
                                              Sentence(("Peter", "Blackburn"), entities=("B-PER", "I-PER"))]
    (tmp_path / "tabs.txt").write_text("New York\tB-LOC\r\n.\tO\r\n")
    assert read_conll(tmp_path / "tabs.txt") == [Sentence(("New York", "."), entities=("B-LOC", "O"))]


@pytest.mark.parametrize(("text", "sentence"), [
    ("a O\nb\n", "line 2: 'b' has one column"),
    ("a O\nb X O\n", "line 2: there are 3 columns, but 2"),
    ("a O\nb PER\n", "line 2: the label 'PER' is not"),
    ("a B-\n", "line 1: the label 'B-'"),
    ("\tO\n", "line 1: the word is empty"),
    ("\n-DOCSTART- O\n", "has no sentence"),
])
def test_a_malformed_line_is_refused_with_its_number(tmp_path, text, sentence):
    (tmp_path / "x.txt").write_text(text)
    with pytest.raises(DataError, match=sentence):
        read_conll(tmp_path / "x.txt")


def test_spans_are_read_in_both_bio_conventions():
    labels = ["I-A", "I-A", "B-A", "O", "I-B", "I-A"]
    assert as_bio(labels) == ("B-A", "I-A", "B-A", "O", "B-B", "B-A")
    assert entity_spans(labels) == [(0, 2, "A"), (2, 3, "A"), (4, 5, "B"), (5, 6, "A")]
    assert entity_spans(["O"]) == entity_spans([]) == []


def test_labels_and_the_f1_of_what_they_mark():
    assert [label for label in ("O", "B-A", "I-A", "B-", "A", "o", "") if is_bio(label)] == ["O", "B-A", "I-A"]
    assert entity_f1([["B-A", "I-A", "O", "B-B"]], [["B-A", "O", "O", "B-B"]]) == 0.5
