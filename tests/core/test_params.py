"""The flat buffer and its views."""

import numpy as np
import pytest

from mini_bert import MiniBERT, ParameterError
from mini_bert.core.params import Parameters, ParamSpec, Tie

LAYOUT = [ParamSpec("a", (2, 3), std=1.0), ParamSpec("b", (4,), mean=1.0), Tie("a_again", "a", transposed=True)]


def test_views_and_buffer_are_the_same_memory():
    params = Parameters(LAYOUT, np.float64)
    params["a"][1, 2] = 5
    params.flat[6:] = 7
    assert params.flat[5] == 5
    assert (params["b"] == 7).all()
    assert params.flat.size == 10
    assert all(params[name].flags.c_contiguous for name in params)


def test_a_tie_is_another_name_for_the_same_numbers():
    params = Parameters(LAYOUT)
    params["a_again"] += np.arange(6).reshape(3, 2)
    params["a"] += 1
    assert np.array_equal(params["a"], np.arange(6).reshape(3, 2).T + 1)
    assert list(params) == ["a", "b"]
    assert "a_again" in params


def test_assigning_over_a_view_is_an_error():
    params = Parameters(LAYOUT)
    with pytest.raises(ParameterError, match=r"params\['a'\]\[\.\.\.\] = value"):
        params["a"] = np.zeros((2, 3), np.float32)
    with pytest.raises(ParameterError, match=r"params\.flat\[\.\.\.\] = value"):
        params.flat = np.zeros(10)
    params["a"] += 1                      # in place, so view and buffer stay
    params.flat += 1
    assert (params["a"] == 2).all()
    assert params.get("nothing") is None


def test_an_unknown_name_is_answered_with_the_nearest(model):
    with pytest.raises(ParameterError, match=r"'W_Q_9'.*'W_Q_"):
        model.params["W_Q_9"]


def test_initial_values_depend_on_seed_and_name_alone(debug):
    first, again, other = (MiniBERT(debug, seed=seed).params for seed in (0, 0, 1))
    assert np.array_equal(first.flat, again.flat)
    assert not np.array_equal(first["W_Q_0"], other["W_Q_0"])
    assert not np.array_equal(first["W_Q_0"], first["W_K_0"])
    double = MiniBERT(debug, dtype=np.float64).params
    assert np.array_equal(double.flat.astype(np.float32), first.flat)


def test_gradients_have_the_layout_of_the_parameters():
    params = Parameters(LAYOUT)
    params.flat[:] = 3
    zeros = params.zeros_like()
    assert not zeros.flat.any()
    assert zeros.slices == params.slices
    assert np.shares_memory(zeros["a_again"], zeros["a"])


def test_the_larger_model_scales_its_residual_projections():
    from larger_bert import LARGER_BERT_CONFIG
    from mini_bert.core.modules.assembly import parameter_specs

    std = {spec.name: spec.std for spec in parameter_specs(LARGER_BERT_CONFIG)}
    assert std["W_O_3"] == std["W2_3"] == pytest.approx(0.02 / np.sqrt(12))
    assert std["W_Q_3"] == std["W1_3"] == 0.02
