"""Masking: how many tokens, which ones, and what replaces them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mini_bert import ConfigError, InputError, mask_tokens
from mini_bert.core.registry import register, restored_registry
from mini_bert.text.masking import Masking
from mini_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

LETTERS = Vocabulary([*SPECIAL_TOKENS, "a", "b", "##c", "d"])             # ids 5 to 8

ids_strategy = hnp.arrays(np.int64, st.tuples(st.integers(1, 5), st.integers(1, 40)), elements=st.integers(0, 99))


@given(ids_strategy, st.floats(0, 1), st.integers(0, 100))
def test_the_exact_share_is_chosen_and_no_special_token(ids, share, seed):
    before = ids.copy()
    masked, targets, chosen = mask_tokens(ids, 100, 4, share, seed)
    ordinary = (ids >= 5).sum(axis=1)
    wanted = np.rint(share * ordinary)
    if share > 0:
        wanted = np.minimum(np.maximum(wanted, 1), ordinary)
    assert np.array_equal(chosen.sum(axis=1), wanted)
    assert (ids[chosen] >= 5).all()
    assert np.array_equal(masked[~chosen], ids[~chosen])
    assert np.array_equal(targets, before)
    assert np.array_equal(ids, before)
    assert ((masked[chosen] == 4) | (masked[chosen] >= 5)).all()


def test_eighty_ten_ten_within_binomial_bounds():
    ids = np.random.default_rng(0).integers(5, 8192, (2000, 100))
    masked, _, chosen = mask_tokens(ids, 8192, rng=0)
    n = chosen.sum()
    shares = {0.8: (masked[chosen] == 4).mean(), 0.1: (masked[chosen] == ids[chosen]).mean()}
    for p, share in shares.items():
        assert abs(share - p) < 5 * math.sqrt(p * (1 - p) / n) + 1e-4      # a random token may equal the original


def test_random_tokens_do_not_wrap_in_small_types():
    masked, _, chosen = mask_tokens(np.full((50, 100), 200, np.uint8), 8192)
    assert masked[chosen].max() > 255
    assert not np.isin(masked[chosen], [0, 1, 2, 3]).any()


def test_without_a_seed_numpys_global_generator_is_used():
    ids = np.full((4, 30), 7)
    np.random.seed(42)  # noqa: NPY002
    first, second = mask_tokens(ids, 100)[2], mask_tokens(ids, 100)[2]
    np.random.seed(42)  # noqa: NPY002
    assert np.array_equal(mask_tokens(ids, 100)[2], first)
    assert not np.array_equal(first, second)


def test_the_same_seed_gives_the_same_mask():
    ids = np.random.default_rng(0).integers(5, 100, (4, 30))
    first, again, other = (mask_tokens(ids, 100, rng=seed)[2] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("call", [
    {"input_ids": np.zeros(4, int)}, {"input_ids": np.zeros((1, 4))}, {"mask_prob": 1.5}, {"mask_prob": float("nan")},
    {"vocab_size": 3}, {"mask_token_id": 100}, {"mask_token_id": -1}, {"input_ids": np.full((1, 4), 100)},
    {"input_ids": [[7, 8], [9]]},
])
def test_bad_arguments_are_refused(call):
    with pytest.raises(InputError):
        mask_tokens(**{"input_ids": np.full((1, 4), 7), "vocab_size": 100, **call})


def test_berts_own_special_tokens_are_never_chosen():
    ids = np.array([[101, 2000, 100, 3000, 102, 0, 0]] * 200)
    _, _, chosen = mask_tokens(ids, 30522, 103, 0.9, 0)
    assert not chosen[:, [0, 2, 4, 5, 6]].any()
    assert chosen[:, [1, 3]].all()


@pytest.mark.parametrize("rate", [1.5, -0.1, float("nan")])
def test_a_schedule_outside_its_range_is_refused(rate):
    vocabulary = Vocabulary([*SPECIAL_TOKENS, "a", "b"])
    with pytest.raises(InputError, match="at step 7"):
        Masking(lambda step: rate)(np.array([[2, 5, 6, 3]]), vocabulary, seed=0, epoch=0, sequences=np.array([0]),
                                   step=7)


class Weights:
    """Weights that do not learn, for the tokens a, b, ##c and d."""

    def __init__(self, *weights):
        self.table = np.array([1.0] * 5 + list(weights))

    def at(self, step):
        return self.table


def chosen_with(weights, row, rate, unit="token", rows=20_000):
    ids = np.tile(np.array(row), (rows, 1))
    return Masking(rate, unit, weights=weights)(ids, LETTERS, seed=0, epoch=0, sequences=np.arange(rows))[1]


def test_one_token_is_chosen_in_proportion_to_its_weight():
    chosen = chosen_with(Weights(1.0, 2.0, 1.0, 4.0), [2, 5, 6, 8, 3], 0.1)
    assert (chosen.sum(axis=1) == 1).all()
    assert chosen.mean(axis=0) == pytest.approx([0, 1 / 7, 2 / 7, 4 / 7, 0], abs=0.015)


def test_the_second_token_is_drawn_from_those_that_are_left():
    a, b, d = 1 / 7, 2 / 7, 4 / 7
    chosen = chosen_with(Weights(1.0, 2.0, 1.0, 4.0), [2, 5, 6, 8, 3], 0.6)
    assert (chosen.sum(axis=1) == 2).all()
    without_a = b * d / (1 - b) + d * b / (1 - d)
    without_d = a * b / (1 - a) + b * a / (1 - b)
    assert 1 - chosen.mean(axis=0)[[1, 3]] == pytest.approx([without_a, without_d], abs=0.015)


def test_a_word_has_the_mean_weight_of_its_pieces():
    chosen = chosen_with(Weights(1.0, 2.0, 6.0, 1.0), [2, 5, 6, 7, 8, 3], 0.45, "word")      # a, b##c and d: 2 tokens
    first = chosen[:, 2] & chosen[:, 3]                       # b##c is drawn first, or second and then in part
    assert first.mean() == pytest.approx(4 / 6, abs=0.015)
    assert (chosen.sum(axis=1) == 2).all()


def test_spans_fall_where_the_weights_are():
    row = [2, *[5] * 20, *[8] * 20, 3]
    chosen = chosen_with(Weights(1.0, 1.0, 1.0, 9.0), row, 0.1, "span", rows=2000)
    assert (chosen.sum(axis=1) == 4).all()
    heavy, light = chosen[:, 21:41].mean(), chosen[:, 1:21].mean()
    assert heavy / light == pytest.approx(9, rel=0.25)
    runs = np.diff(chosen.astype(int), axis=1, prepend=0) == 1
    assert runs.sum() / len(chosen) < 3


@pytest.mark.parametrize("unit", ["token", "word", "span"])
def test_with_any_weights_the_exact_share_is_chosen_and_no_special_token(unit):
    rng = np.random.default_rng(1)
    ids = np.where(rng.random((300, 25)) < 0.1, rng.integers(0, 5, (300, 25)), rng.integers(5, 9, (300, 25)))
    numbers = np.arange(300)
    weights = Weights(*10.0 ** rng.uniform(-6, 6, 4))
    masked, chosen = Masking(0.3, unit, weights=weights)(ids, LETTERS, seed=0, epoch=0, sequences=numbers)
    ordinary = (ids > 4).sum(axis=1)
    assert np.array_equal(chosen.sum(axis=1), np.minimum(np.maximum(np.rint(0.3 * ordinary), 1), ordinary))
    assert (ids[chosen] > 4).all()
    assert np.array_equal(masked[~chosen], ids[~chosen])
    alone = Masking(0.3, unit, weights=weights)(ids[7:8], LETTERS, seed=0, epoch=0, sequences=numbers[7:8])[1]
    assert np.array_equal(alone[0], chosen[7])                # it depends on seed, epoch and sequence alone


def test_equal_weights_choose_what_no_weights_choose():
    ids = np.random.default_rng(2).integers(5, 9, (100, 30))
    for unit in ("token", "word"):
        plain, weighted = (Masking(0.2, unit, weights=weights)(ids, LETTERS, seed=3, epoch=1, sequences=np.arange(100))
                           for weights in (None, Weights(7.0, 7.0, 7.0, 7.0)))
        assert np.array_equal(plain[1], weighted[1])


def test_a_unit_of_a_users_own_chooses_what_is_masked_and_a_wrong_word_names_the_nearest():
    ids, numbers = np.random.default_rng(0).integers(5, 30, (3, 12)), np.arange(3)
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *map(chr, range(97, 122))])
    with restored_registry():
        @register("masking_unit", "leading")
        def leading(order, ordinary, continues, wanted, weights, *, after=0):
            place = np.cumsum(ordinary, axis=1) - after
            return ordinary & (place > 0) & (place <= wanted[:, None])

        for unit, columns in (("leading", [0, 1, 2]), ("leading(after=2)", [2, 3, 4])):
            _, chosen = Masking(0.25, unit)(ids, vocabulary, seed=0, epoch=0, sequences=numbers)
            assert np.array_equal(chosen, np.tile(np.isin(np.arange(12), columns), (3, 1)))
        with pytest.raises(ConfigError, match="no option before; its options are after, and the slot makes a function"):
            Masking(0.25, "leading(before=2)")
    with pytest.raises(ConfigError, match="masking_unit: 'wrd' is not a choice; the nearest is 'word'"):
        Masking(unit="wrd")
