"""A selection and its adjoints: <A x, y> = <x, A^T y> for each of its maps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mini_bert.core.selection import Selection, Streams, TwoStreams

positions = hnp.arrays(bool, st.tuples(st.integers(1, 4), st.integers(1, 6)))


@given(positions)
def test_maps_and_their_backward_are_adjoint(chosen):
    (B, T), H = chosen.shape, 3
    rng = np.random.default_rng(0)
    select = Selection(B, T, chosen)
    x, y = rng.standard_normal((B * T, H)), rng.standard_normal((select.M, H))
    grid = rng.standard_normal((B, select.m, H))
    back = select.take_backward(y, np.zeros_like(x))
    assert (select.take(x) * y).sum() == pytest.approx((x * back).sum())
    assert (select.to_grid(y) * grid).sum() == pytest.approx((y * select.from_grid(grid)).sum())
    assert np.array_equal(select.from_grid(select.to_grid(y)), y)


@given(positions)
def test_rows_are_taken_in_reading_order(chosen):
    B, T = chosen.shape
    x = np.arange(B * T, dtype=float)[:, None]
    assert np.array_equal(Selection(B, T, chosen).take(x), x[chosen.reshape(-1)])


def test_selecting_all_copies_nothing(rng):
    x = rng.standard_normal((6, 2))
    select = Selection(2, 3)
    assert select.take(x) is x
    assert np.shares_memory(select.to_grid(x), x)


@pytest.mark.parametrize("kind", [Streams, TwoStreams])
@given(chosen=positions)
def test_the_maps_of_streams_and_their_backward_are_adjoint(kind, chosen):
    (B, T), H = chosen.shape, 3
    rng = np.random.default_rng(0)
    select = kind(B, T, chosen)
    x = rng.standard_normal((B * T + int(chosen.sum()), H))
    keys = rng.standard_normal((B * T, H))
    assert (select.keys(x) * keys).sum() == pytest.approx((x * select.keys_backward(keys)).sum())
    y = rng.standard_normal(select.take(x).shape)
    assert (select.take(x) * y).sum() == pytest.approx((x * select.take_backward(y, np.zeros_like(x))).sum())
    grid = rng.standard_normal((B, select.m, H))
    assert (select.to_grid(y) * grid).sum() == pytest.approx((y * select.from_grid(grid)).sum())
    assert np.array_equal(select.from_grid(select.to_grid(y)), y)


@given(positions)
def test_two_streams_ask_for_all_tokens_and_then_for_the_selected_ones(chosen):
    B, T = chosen.shape
    select = TwoStreams(B, T, chosen)
    places = np.broadcast_to(select.query_positions(), (B, select.m))
    asked = select.from_grid(places[:, :, None].astype(float))[:, 0]
    assert np.array_equal(asked, [*np.tile(np.arange(T), B), *np.nonzero(chosen)[1]])
    assert np.array_equal(select.sees_itself(), np.arange(select.m) < T)
