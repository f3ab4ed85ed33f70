"""Masking: how many tokens, which ones, and what replaces them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mini_bert import InputError, mask_tokens
from mini_bert.text.masking import Masking
from mini_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

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
