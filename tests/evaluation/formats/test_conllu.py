"""The reader of CoNLL-U."""

from pathlib import Path

import pytest

from mini_bert.errors import DataError
from mini_bert.evaluation.formats.conllu import Sentence, read_conllu

DATA = Path(__file__).parents[4] / "shared" / "data" / "eval"
HEADER = "# global.Entity = GRP-etype-infstat-identity"


def row(number, word, upos="NOUN", head="_", relation="_", misc="_"):
    return "\t".join([str(number), word, "_", upos, "_", "_", str(head), relation, "_", misc])


@pytest.fixture
def read(tmp_path):
    def made(*lines):
        (tmp_path / "x.conllu").write_text("\n".join(lines) + "\n", "utf-8")
        return read_conllu(tmp_path / "x.conllu")
    return made


def test_words_are_syntactic_words(read):
    found = read("# text = don't go", row("1-2", "don't", "_"), row(1, "do", "AUX", 3, "aux"),
                 row(2, "n't", "PART", 3, "advmod"), row("2.1", "ghost", "VERB"), row(3, "go", "VERB", 0, "root"), "",
                 "", row(1, "_", "PUNCT", 0, "root"))
    assert found == [Sentence(("do", "n't", "go"), ("AUX", "PART", "VERB"), (3, 3, 0), ("aux", "advmod", "root")),
                     Sentence(("_",), ("PUNCT",), (0,), ("root",))]


def test_empty_columns_are_none(read):
    assert read(row(1, "a", "_"), row(2, "b", "_")) == [Sentence(("a", "b"))]


@pytest.mark.parametrize(("marks", "labels"), [
    (["_", "_", "_"], "O O O"),
    (["Entity=(1-person-new-x)", "SpaceAfter=No", "Entity=(2-place-new-(y)|A=b"], None),
    (["Entity=(1-person-new-x)", "SpaceAfter=No", "Entity=(2-place-new-y)|A=b"], "B-person O B-place"),
    (["Entity=(1-person-new", "_", "Entity=1)"], "B-person I-person I-person"),
    (["Entity=(1-person-new(2-place-new)", "Entity=(3-time-new)", "Entity=1)"], "B-person I-person I-person"),
    (["Entity=(1-person-new(2-place-new", "Entity=2)", "Entity=1)"], "B-person I-person I-person"),
    (["Entity=(1-person-new", "Entity=(2-place-new", "Entity=2)1)"], "B-person I-person I-person"),
    (["Entity=(1-person-new", "Entity=(2-place-new", "Entity=1)2)"], "B-person I-person I-person"),
    (["Entity=(1-person-new", "Entity=1)(2-place-new", "Entity=2)"], "B-person I-person O"),
    (["Entity=(1[1/2]-person-new)", "_", "Entity=(1[2/2]-person-new)"], "B-person O B-person"),
])
def test_entities_are_the_outermost_spans(read, marks, labels):
    lines = [HEADER, *(row(i + 1, "w", misc=mark) for i, mark in enumerate(marks))]
    if labels is None:
        with pytest.raises(DataError, match="line 4: the entity"):
            read(*lines)
    else:
        assert read(*lines)[0].entities == tuple(labels.split())


def test_the_header_gives_the_order_of_an_entitys_fields(read):
    assert read("# global.Entity = entity-GRP-infstat", row(1, "a", misc="Entity=(place-1-new)"))[0].entities == \
        ("B-place",)
    assert read(row(1, "a", misc="Entity=(place-1-new)"))[0].entities is None


@pytest.mark.parametrize(("lines", "sentence"), [
    (["1\ta\tb"], "line 1: there are 3 columns, but CoNLL-U has 10"),
    ([row(2, "a")], "line 1: the word is numbered 2, but 1 is next"),
    ([row(1, "a"), row(1, "b")], "line 2: the word is numbered 1, but 2 is next"),
    ([row("x", "a")], "line 1: 'x' is not the number of a word"),
    ([row("01", "a")], "line 1: '01' is not the number"),
    ([row(1, " ")], "line 1: the word is empty"),
    ([row(1, "a"), "# text"], "line 2: there is a comment inside"),
    ([row("1-1", "a"), row(1, "b")], "line 1: the multi-word token 1-1"),
    ([row("1-3", "a"), row(1, "b"), row(2, "b")], "line 3: the sentence ends inside a multi-word token"),
    ([row("1.1", "a"), row(1, "b")], "line 1: the empty node 1.1"),
    ([row(1, "a", head="x")], "line 1: the head 'x'"),
    ([row(1, "a", head=2)], "line 1: the head '2' is neither the number of another word, 1 to 1"),
    ([row(1, "a", head=1)], "line 1: the head '1'"),
    ([row(1, "a", head=0), row(2, "b", head=0)], "line 2: the sentence has a second root"),
    ([row(1, "a", head=0), row(2, "b", head=3), row(3, "c", head=2)], "line 2: the heads form a cycle"),
    ([row(1, "a", head=0), row(2, "b")], "line 2: the head is missing"),
    ([row(1, "a"), row(2, "b", "_")], "line 2: the UPOS is missing"),
    (["# global.Entity = a-b"], "line 1: the fields of entities"),
    ([HEADER, row(1, "a", misc="Entity=x")], "line 2: Entity=x is not a sequence"),
    ([HEADER, row(1, "a", misc="Entity=1)")], "line 2: the entity '1' ends here"),
    ([HEADER, row(1, "a", misc="Entity=(1-x")], "line 2: the entity '1' begins here"),
    ([HEADER, row(1, "a", misc="Entity=(1)")], "line 2: the entity '1' has no"),
    (["# nothing"], "has no sentence"),
])
def test_a_malformed_line_is_refused_with_its_number(read, lines, sentence):
    with pytest.raises(DataError, match=sentence):
        read(*lines)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"There is no file .*none\.conllu"):
        read_conllu(tmp_path / "none.conllu")


@pytest.mark.parametrize(("name", "words"), [("ud_ewt/en_ewt-ud-dev.conllu", 25147),
                                             ("ud_gum/en_gum-ud-dev.conllu", 28119)])
def test_every_sentence_of_a_treebank_is_read(name, words):
    if not (DATA / name).is_file():
        pytest.skip(f"There is no {DATA / name}.")
    sentences = read_conllu(DATA / name)
    assert sum(len(sentence.words) for sentence in sentences) == words
    assert all((sentence.entities is not None) == ("gum" in name) for sentence in sentences)
