"""bfloat16: widening is exact, rounding is to the nearest even, or right on average."""

import numpy as np
import pytest

from mini_bert.core.precision.bfloat16 import nearest, stochastic, widened
from mini_bert.training.optimisers.moments import random_halves


def bits(*values: int) -> np.ndarray:
    return np.array(values, np.uint32).view(np.float32)


def test_every_bfloat16_comes_back():
    halves = np.arange(1 << 16, dtype=np.uint16)
    halves = halves[~np.isnan(widened(halves))]
    assert np.array_equal(nearest(widened(halves)), halves)
    made = np.empty_like(halves)
    stochastic(widened(halves), np.full(len(halves), 0xFFFF, np.uint16), made)
    assert np.array_equal(made, halves)
    assert widened(np.array([0x3F80, 0xC000], np.uint16)).tolist() == [1.0, -2.0]


@pytest.mark.parametrize(("value", "half"), [
    (0x3F808000, 0x3F80), (0x3F818000, 0x3F82), (0x3F808001, 0x3F81), (0x3F807FFF, 0x3F80), (0xBF808000, 0xBF80),
    (0xBF818000, 0xBF82), (0x7F7FFFFF, 0x7F80), (0xFF800000, 0xFF80), (0x00008000, 0x0000), (0x00018000, 0x0002)])
def test_a_tie_goes_to_the_even_one(value, half):
    assert nearest(bits(value)).tolist() == [half]


def test_the_nearest_is_the_nearest(rng):
    x = (rng.standard_normal(200_000) * 10.0 ** rng.integers(-30, 30, 200_000)).astype(np.float32)
    assert np.abs(widened(nearest(x)) / x - 1).max() <= 2.0**-8
    assert np.array_equal(nearest(x.astype(np.float64)), nearest(x))


def test_random_rounding_is_right_on_average():
    """Up with exactly the probability of the part that is dropped."""
    for value, share in ((0x3F800000, 0.0), (0x3F804000, 0.25), (0xBF80C000, 0.75), (0x3F80FFFF, 65535 / 65536)):
        made = np.empty(1 << 16, np.uint16)
        stochastic(np.repeat(bits(value), 1 << 16), np.arange(1 << 16, dtype=np.uint16), made)
        assert set(made.tolist()) <= {value >> 16, (value >> 16) + 1}
        assert np.mean(made > value >> 16) == share


def test_a_sum_of_small_terms_moves_where_rounding_to_the_nearest_stands_still():
    total = np.full(10_000, widened(nearest(np.ones(1, np.float32)))[0])
    fixed = nearest(total)
    random = fixed.copy()
    for step in range(100):
        fixed = nearest(widened(fixed) * np.float32(1.001))
        stochastic(widened(random) * np.float32(1.001), random_halves(step, 0, 10_000), random)
    assert np.array_equal(fixed, nearest(total))
    assert widened(random).mean() == pytest.approx(1.001**100, rel=1e-3)


def test_random_bits_depend_on_the_step_and_the_place_alone():
    whole = random_halves(7, 0, 1000)
    for start, size in ((0, 3), (1, 8), (5, 1), (6, 500), (997, 3)):
        assert np.array_equal(random_halves(7, start, size), whole[start : start + size])
    assert (random_halves(8, 0, 1000) == whole).mean() < 0.01
    assert len(np.unique(whole)) > 950
    assert np.mean(random_halves(9, 0, 1 << 18)) == pytest.approx(32767.5, rel=5e-3)
