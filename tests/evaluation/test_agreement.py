"""Agreement with a model of fixed preferences, so that the right accuracy is known."""

from pathlib import Path

import numpy as np
import pytest

from mini_bert import MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.errors import DataError
from mini_bert.evaluation.formats.agreement import AgreementItem, read_agreement
from mini_bert.evaluation.ngrams import NgramCounts
from mini_bert.evaluation.statistics import wilson_interval
from mini_bert.evaluation.zero_shot.agreement import agreement
from mini_bert.text.vocabulary import SPECIAL_TOKENS

LINZEN = Path(__file__).parents[3] / "shared" / "data" / "eval" / "agreement" / "subj_agr_filtered"
WORDS = ["the", "keys", "key", "cabinet", "is", "are", "has", "have", "here", "walk", "##s", "."]
TEXT = ("the keys are here . <eos>\nthe key is here <eos>\nthe keys the cabinet are .\nthe cabinet has keys\n"
        "the keys walk\n")
GOLD = "2\tare\tis\t0\n2\tIs\tAre\t0\n4\tare\tis\t1\n2\thas\thave\t0\n2\twalk\twalks\t0\n"


@pytest.fixture(scope="module")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])


@pytest.fixture
def model(tokenizer) -> MiniBERT:
    """Always prefers is to are, and finds has and have equally likely."""
    made = MiniBERT(ModelConfig(num_layers=1, num_heads=1, hidden_size=4, intermediate_size=4, vocab_size=17,
                                max_seq_length=8), seed=None)
    made.params["mlm_head_b"][tokenizer.vocabulary.ids["is"]] = 1
    return made


@pytest.fixture
def files(tmp_path) -> Path:
    (tmp_path / "data.text").write_text(TEXT)
    (tmp_path / "data.gold").write_text(GOLD)
    return tmp_path / "data"


def test_items_are_read_from_both_files(files):
    items = read_agreement(files)
    assert items[0] == AgreementItem("the keys", "here .", "are", "is", 0)
    assert items[1] == AgreementItem("the key", "here", "is", "are", 0)       # only the answer was capitalised
    assert items[2].attractors == 1
    assert read_agreement(f"{files}.text") == read_agreement(f"{files}.gold") == items


def test_accuracy_by_attractors_with_baselines(model, tokenizer, files):
    found = agreement(model, tokenizer, read_agreement(files))
    assert found.total.accuracy["model"] == wilson_interval(1.5, 4)                     # is; one half for has
    assert [(part.attractors, part.sentences, part.left_out) for part in found.by_attractors] == [(0, 3, 1), (1, 1, 0)]
    assert [part.accuracy["model"].mean for part in found.by_attractors] == [0.5, 0]
    assert found.total.left_out == 1                                          # walks is two pieces
    assert found.majority == "singular"                                       # two of four; a draw
    assert found.total.accuracy["majority"].mean == 0.5
    assert found.total.accuracy["frequent"].mean == 0.5                       # no form occurs in the rest of the text
    assert "bigram" not in found.total.accuracy


def test_baselines_use_the_counts_of_the_training_text(model, tokenizer, files, tmp_path):
    (tmp_path / "train.txt").write_text("keys are . keys are . key is . are are has has have\n")
    counts = NgramCounts.of([tmp_path / "train.txt"], tokenizer)
    found = agreement(model, tokenizer, read_agreement(files), counts=counts)
    assert found.total.accuracy["frequent"].mean == 0.75                      # are, are, has: not is
    assert found.by_attractors[0].accuracy["bigram"].mean == 1                # keys are, key is; has


def test_a_long_sentence_is_read_around_its_verb(tokenizer):
    model = MiniBERT(ModelConfig(num_layers=1, num_heads=2, hidden_size=8, intermediate_size=8, vocab_size=17,
                                 max_seq_length=8))
    item = AgreementItem("the key " * 5 + "cabinet the keys", "here the cabinet " * 4, "are", "is", 2)
    short = AgreementItem("cabinet the keys", "here the", "are", "is", 2)
    ids = tokenizer.encode("cabinet the keys [MASK] here the")
    assert len(ids) == 8
    logits = model.forward(np.array([ids]))[0][0, 4]
    expected = float(logits[tokenizer.vocabulary.ids["are"]] > logits[tokenizer.vocabulary.ids["is"]])
    for one, windowed in ((item, 1), (short, 0)):
        found = agreement(model, tokenizer, [one])
        assert (found.total.accuracy["model"].mean, found.windowed) == (expected, windowed)


@pytest.mark.parametrize(("right", "other", "singular"), [
    ("is", "are", True), ("are", "is", False), ("passes", "pass", True), ("pass", "passes", False),
    ("wherein", "whereas", False), ("en", "un", None)])
def test_the_grammatical_number_of_a_form(right, other, singular):
    assert AgreementItem("", "", right, other, 0).singular is singular


@pytest.mark.parametrize(("text", "gold", "words"), [
    ("the key is\n", "2\tis\tare\n", "line 1: it has 3 columns"),
    ("the key is\n", "two\tis\tare\t0\n", "line 1: the index is 'two'"),
    ("the key is\n", "2\tis\tare\t-1\n", "line 1: the number of attractors is '-1'"),
    ("the key is\n", "1\tis\tare\t0\n", "the sentence has 'key' at index 1, not 'is'"),
    ("the key is\n", "7\tis\tare\t0\n", "the sentence has no word at index 7"),
    ("the key is\n", "2\tis\t\t0\n", "the other form of 'is' is missing"),
    ("the key is\nthe key\n", "2\tis\tare\t0\n", "has 2 lines and .* has 1"),
    ("", "", "no sentences"),
])
def test_malformed_files_are_refused_with_the_line_number(tmp_path, text, gold, words):
    (tmp_path / "data.text").write_text(text)
    (tmp_path / "data.gold").write_text(gold)
    with pytest.raises(DataError, match=words):
        read_agreement(tmp_path / "data")


def test_invalid_probe_requests_are_refused(model, tokenizer, tmp_path):
    with pytest.raises(DataError, match=r"There is no file .*absent\.text"):
        read_agreement(tmp_path / "absent")
    with pytest.raises(DataError, match="None of the 2 verbs"):
        agreement(model, tokenizer, [AgreementItem("", "", right, other, 0)
                                     for right, other in (("walks", "walk"), ("is", "is"))])


def test_samples_are_drawn_by_the_seed(model, tokenizer, files):
    items = read_agreement(files) * 10
    first = agreement(model, tokenizer, items, max_samples=9, seed=3)
    assert first == agreement(model, tokenizer, items, max_samples=9, seed=3)
    assert first.total.sentences + first.total.left_out == 9


@pytest.mark.skipif(not LINZEN.with_suffix(".text").is_file(), reason=f"there is no {LINZEN}.text")
def test_the_published_agreement_data_is_read():
    items = read_agreement(LINZEN)
    assert {item.attractors for item in items} == {0, 1, 2, 3, 4}
    assert all("<eos>" not in item.after for item in items)
