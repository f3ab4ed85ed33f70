"""The trigram baseline against its formula."""

import numpy as np
import pytest

from mini_bert.evaluation.ngrams import NgramCounts
from mini_bert.evaluation.trigrams import trigram


def test_a_trigram_is_mixed_with_its_bigram_by_how_many_pieces_follow():
    ids = np.array([0, 1, 2, 0, 1, 2, 0, 1, 3, 2])
    counts = NgramCounts([ids], 5)
    a, b = np.array([0, 0, 0, 4, 1]), np.array([1, 1, 1, 4, 2])
    c = np.array([2, 3, 0, 0, 0])
    found = trigram(counts, [ids], a, b, c)
    bigrams = counts.bigram(b, c)
    weight = 3 / (3 + 3 * 2)                                  # 0 1 occurs three times, before two different pieces
    assert found[:3] == pytest.approx([weight * times / 3 + (1 - weight) * bigram
                                       for times, bigram in zip((2, 1, 0), bigrams[:3], strict=True)])
    assert found[3] == bigrams[3]                             # a pair that was never seen
    assert found[4] == pytest.approx(2 / 5 * 1 + 3 / 5 * bigrams[4])
    assert trigram(counts, [ids], np.repeat(0, 5), np.repeat(1, 5), np.arange(5)).sum() == pytest.approx(1)


def test_an_own_occurrence_is_left_out():
    ids = np.array([0, 1, 2, 0, 1, 2, 0, 1, 3, 2])
    counts = NgramCounts([ids], 5, leave_out=True)
    (seen_once,) = trigram(counts, [ids], np.array([0]), np.array([1]), np.array([3]))
    weight = 2 / (2 + 3 * 1)                                  # without it, 0 1 has one follower
    assert seen_once == pytest.approx((1 - weight) * counts.bigram(np.array([1]), np.array([3]))[0])


def test_trigrams_do_not_reach_from_one_block_into_the_next():
    rng = np.random.default_rng(0)
    blocks = [rng.integers(0, 4, 40) for _ in range(3)]
    counts = NgramCounts(blocks, 4)
    a, b, c = rng.integers(0, 4, (3, 20))
    found = [tuple(some) for block in blocks for some in zip(block.tolist(), block[1:].tolist(), block[2:].tolist(),
                                                             strict=False)]
    expected = []
    for first, second, third in zip(a.tolist(), b.tolist(), c.tolist(), strict=True):
        after = [last for *pair, last in found if pair == [first, second]]
        weight = len(after) / (len(after) + 3 * len(set(after))) if after else 0.0
        share = after.count(third) / len(after) if after else 0.0
        expected.append(weight * share + (1 - weight) * counts.bigram(np.array([second]), np.array([third]))[0])
    assert trigram(counts, blocks, a, b, c) == pytest.approx(expected)
