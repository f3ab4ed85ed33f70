"""Why a number is exactly zero: each kind of zero has its reason, and what is not zero has none."""

import numpy as np
import pytest

from mini_bert import MiniBERT, ModelConfig
from mini_bert.analysis.passes.backward_steps import backward_pass
from mini_bert.analysis.passes.forward_steps import explain_cell, forward_pass
from mini_bert.analysis.passes.zeros import why_zero, why_zero_gradient

IDS = np.array([2, 7, 9, 4, 3])


def model_with(**changes):
    model = MiniBERT(ModelConfig(num_layers=2, num_heads=2, hidden_size=8, intermediate_size=12, vocab_size=20,
                                 max_seq_length=8, **changes), seed=3)
    model.params.flat += 0.3 * np.random.default_rng(0).standard_normal(model.params.flat.size).astype(np.float32)
    return model


@pytest.fixture(scope="module")
def passed():
    return backward_pass(forward_pass(model_with(activation="relu"), IDS), {3: 5})


def reason(passed, name, *index):
    step = passed[name]
    cell = explain_cell(step, index[-2], index[-1], index[0] if len(index) == 3 else None)
    return why_zero(passed, step, cell)


def test_relu_gives_its_own_reason(passed):
    array = passed.forward["ffn_activation_0"].array
    off, on = np.argwhere(array == 0)[0], np.argwhere(array != 0)[0]
    assert "its input is not above zero" in reason(passed.forward, "ffn_activation_0", *off)
    assert reason(passed.forward, "ffn_activation_0", *on) is None


def test_a_hidden_key_is_named(passed):
    forward = forward_pass(model_with(score_terms="causal"), IDS)
    found = reason(forward, "attention_weights_0", 1, 2, 4)
    assert found == "Because the token at position 2 may not see the one at position 4: its score is minus infinity."
    assert reason(forward, "attention_weights_0", 1, 2, 1) is None


def test_a_sum_of_zeros_names_the_factors(passed):
    model = model_with()
    model.params["W_V_0"][:] = 0
    forward = forward_pass(model, IDS)
    assert "W_V_0" in reason(forward, "V_0", 0, 1, 2)
    assert reason(forward, "context_0", 0, 1, 2).startswith("Each of its terms has a factor that is zero")


@pytest.mark.parametrize(("name", "index", "text"), [
    ("dlogits", (1, 4), "reads only the logits of position 3"),
    ("dhidden_1", (1, 4), "depends on position 3 alone"), ("dQ_1", (0, 2, 1), "depends on position 3 alone"),
    ("dmiddle_1", (4, 0), "depends on position 3 alone")])
def test_a_gradient_that_does_not_reach_a_place_says_why(passed, name, index, text):
    assert text in why_zero_gradient(passed, passed[name], index)


def test_a_gradient_stopped_by_relu_is_told(passed):
    step = passed["dffn_hidden_1"]
    place = next(tuple(at) for at in np.argwhere(step.array == 0) if at[0] == 3)
    assert "its input is not above zero" in why_zero_gradient(passed, step, place)
    other = next(tuple(at) for at in np.argwhere(step.array != 0))
    assert why_zero_gradient(passed, step, other) is None
