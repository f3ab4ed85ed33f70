"""Minimal pairs with known models and counts."""

from itertools import pairwise
from math import log

import numpy as np
import pytest

from mini_bert import MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.errors import CorpusError, DataError, InputError
from mini_bert.evaluation.formats.minimal_pairs import MinimalPair
from mini_bert.evaluation.ngrams import NgramCounts
from mini_bert.evaluation.statistics import wilson_interval
from mini_bert.evaluation.zero_shot.minimal_pairs import average_interval, minimal_pairs, pair_wins, sample_paradigms
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.vocabulary import SPECIAL_TOKENS

WORDS = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])


@pytest.fixture(scope="module")
def model() -> MiniBERT:
    """Always finds a more likely than b, b than c, and c than d."""
    made = MiniBERT(ModelConfig(num_layers=1, num_heads=1, hidden_size=4, intermediate_size=4, vocab_size=9,
                                max_seq_length=8), seed=None)
    made.params["mlm_head_b"][5:] = [3, 2, 1, 0]
    return made


def pair(good: str, bad: str, paradigm: str = "p", phenomenon: str = "f") -> MinimalPair:
    return MinimalPair(good, bad, paradigm, phenomenon, "syntax")


def test_accuracies_by_paradigm_and_phenomenon(model, tokenizer):
    pairs = [pair("a", "b", "p1", "f1"), pair("b", "c", "p1", "f1"), pair("d", "c", "p1", "f1"),
             pair("c", "a", "p2", "f1"), pair("a a", "d d", "p3", "f2"), pair("A b", "b a", "p3", "f2")]
    found = minimal_pairs(model, tokenizer, pairs, whole_words=True)
    assert [(group.name, group.pairs, group.accuracy["token"].mean) for group in found.paradigms] == [
        ("p1", 3, pytest.approx(2 / 3)), ("p2", 1, 0), ("p3", 2, 0.75)]
    assert [(group.name, group.pairs, group.accuracy["word"].mean) for group in found.phenomena] == [
        ("f1", 4, 0.5), ("f2", 2, 0.75)]
    assert found.average["token"].mean == pytest.approx((2 / 3 + 0 + 0.75) / 3)
    assert found.paradigms[0].accuracy["token"] == wilson_interval(2, 3)
    assert (found.pairs, found.ties, found.windowed, found.unknown) == (6, 1, 0, 0)
    assert found.to_dict()["chance"] == 0.5
    assert set(found.average) == {"token", "word"}


def test_ties_count_one_half_up_to_rounding():
    good, bad = np.array([1.0, 2.0, -3.0, -30.0]), np.array([0.0, 3.0, -3.0, -30.0 + 1e-12])
    assert pair_wins(good, bad).tolist() == [1, 0, 0.5, 0.5]


def test_the_interval_of_the_average_is_narrower_than_those_of_its_parts():
    parts = [wilson_interval(50, 100), wilson_interval(70, 100), wilson_interval(90, 100), wilson_interval(80, 100)]
    found = average_interval(parts)
    assert found.mean == pytest.approx(0.725)
    assert found.mean - found.low == pytest.approx(sum((part.mean - part.low) ** 2 for part in parts) ** 0.5 / 4)
    assert found.high - found.mean == pytest.approx(sum((part.high - part.mean) ** 2 for part in parts) ** 0.5 / 4)
    assert found.values == 400
    assert average_interval([wilson_interval(10, 10)] * 3).high == pytest.approx(1)


def test_a_pair_with_an_empty_sentence_is_left_out(model, tokenizer):
    found = minimal_pairs(model, tokenizer, [pair("\u200b", "a", "p"), pair("a", "\u200b", "p"), pair("b", "a", "p")])
    assert (found.pairs, found.left_out, found.average["token"].mean) == (1, 2, 0)
    assert found.to_dict()["left_out"] == 2
    with pytest.raises(DataError, match="In none of the 1 minimal pairs"):
        minimal_pairs(model, tokenizer, [pair("\u200b", "a")])


def test_ngram_scores_match_the_counts_of_the_text(tokenizer, tmp_path):
    (tmp_path / "text.txt").write_text("a b a b c\n\na b\n")              # a b a b c a b
    counts = NgramCounts.of([tmp_path / "text.txt"], tokenizer)
    assert counts.counts[5:].tolist() == [3, 3, 1, 0]
    single = {word: (n + 1) / (7 + 9) for word, n in zip(WORDS, (3, 3, 1, 0), strict=True)}
    found = counts.log_likelihoods(tokenizer, ["a b", "b a", "c d", "", "d a"])
    assert found["unigram"] == pytest.approx([log(single["a"] * single["b"])] * 2 + [
        log(single["c"] * single["d"]), 0, log(single["d"] * single["a"])])
    after = {"ab": 0.7 * 3 / 3 + 0.3 * single["b"], "ba": 0.7 * 1 / 3 + 0.3 * single["a"],
             "cd": 0.3 * single["d"], "da": single["a"]}
    assert found["bigram"] == pytest.approx([
        log(single["a"] * after["ab"]), log(single["b"] * after["ba"]), log(single["c"] * after["cd"]), 0,
        log(single["d"] * after["da"])])


def test_baselines_on_pairs_that_differ_only_in_order(model, tokenizer, tmp_path):
    (tmp_path / "text.txt").write_text("a b c d " * 5)
    counts = NgramCounts.of([tmp_path / "text.txt"], tokenizer)
    found = minimal_pairs(model, tokenizer, [pair("a b c", "c b a"), pair("b c d", "c b d"), pair("b a", "a b")],
                          counts=counts)
    assert found.average["unigram"].mean == found.average["token"].mean == 0.5        # they ignore order
    assert found.average["bigram"].mean == pytest.approx(2 / 3)


def test_a_prepared_corpus_gives_the_same_counts_as_its_text(tokenizer, tmp_path):
    (tmp_path / "text.txt").write_text("a b a b c.\n\na b d d\n")
    prepare([str(tmp_path / "text.txt")], tokenizer, tmp_path / "corpus", heldout=0, workers=1)
    texts = ["a b", "b a d d", "c"]
    ours, other = (NgramCounts.of([tmp_path / name], tokenizer).log_likelihoods(tokenizer, texts)
                   for name in ("corpus", "text.txt"))
    for scorer in ours:
        assert ours[scorer] == pytest.approx(other[scorer])
    with pytest.raises(CorpusError, match="another vocabulary"):
        NgramCounts.of([tmp_path / "corpus"], WordPieceTokenizer([*SPECIAL_TOKENS, "a"]))


def test_counts_do_not_depend_on_blocks():
    ids = np.random.default_rng(0).integers(0, 9, 400)
    blocks = [ids[i : i + 10] for i in range(0, 400, 10)]
    counts = NgramCounts(blocks, 9)
    pairs = [(int(a), int(b)) for block in blocks for a, b in pairwise(block)]
    first, second = np.array(sorted(set(pairs))).T
    times = np.array([pairs.count(both) for both in sorted(set(pairs))])
    assert counts.bigram(first, second) == pytest.approx(
        0.7 * times / np.bincount(ids)[first] + 0.3 * counts.unigram(second))
    with pytest.raises(DataError, match="no text"):
        NgramCounts([], 9)


def test_invalid_bytes_are_counted(tokenizer, tmp_path):
    (tmp_path / "text.txt").write_bytes(b"a \xff b\n")
    assert NgramCounts.of([tmp_path / "text.txt"], tokenizer).invalid_bytes == 1


def test_samples_are_drawn_by_the_seed_from_every_paradigm():
    pairs = [pair("a " * n, "b", paradigm) for paradigm in ("p", "q") for n in range(1, 40)]
    first, again, other = sample_paradigms(pairs, 5, 0), sample_paradigms(pairs, 5, 0), sample_paradigms(pairs, 5, 1)
    assert first == again != other
    assert [one.paradigm for one in first] == ["p"] * 5 + ["q"] * 5
    assert sample_paradigms(pairs, None, 0) == pairs == sample_paradigms(pairs, 100, 0)
    with pytest.raises(InputError, match="at least 1, not 0"):
        sample_paradigms(pairs, 0, 0)
    with pytest.raises(InputError, match="no minimal pairs"):
        sample_paradigms([], None, 0)
