"""A watch sees every value of a pass and its gradient, and changes nothing unless it means to."""

import numpy as np
import pytest

from mini_bert import MiniBERT, ModelConfig
from mini_bert.checks.check_all import models_to_check
from mini_bert.core.hooks import recorder

VARIANTS = models_to_check()
STEP = 1e-7               # small enough that no ReLU of these models is taken over its kink


@pytest.fixture(params=VARIANTS, ids=list(VARIANTS))
def config(request) -> ModelConfig:
    return VARIANTS[request.param]


def test_what_is_recorded_is_kept_and_the_pass_goes_on_unchanged():
    seen, sizes = {}, {}
    value = np.arange(3.0)
    for watch in (recorder(seen, np.ndarray.copy, ("Q_0",)), recorder(sizes, np.size)):
        assert watch("Q_0", value) is value
        assert watch("K_0", value) is value
    value += 1                                # the pass writes on its memory
    assert list(seen) == ["Q_0"]
    assert seen["Q_0"].tolist() == [0.0, 1.0, 2.0]
    assert sizes == {"Q_0": 3, "K_0": 3}


class Case:
    """A model with dropout, a batch with padding and chosen positions, and a random cotangent."""

    def __init__(self, config: ModelConfig, dtype=np.float64, chosen: bool = True):
        rng = np.random.default_rng(0)
        self.model = MiniBERT(config, dtype=dtype)
        self.model.params.flat += (0.1 * rng.standard_normal(self.model.params.flat.size)).astype(dtype)
        self.has_head = self.model.modules.predicts_words
        self.ids = rng.integers(5, config.vocab_size, (2, 6))
        self.options = {"attention_mask": np.arange(6) < np.array([6, 4])[:, None], "dropout_key": (0, 0)}
        if config.token_types:
            self.options["token_types"] = rng.integers(0, config.token_types, (2, 6))
        if chosen:
            self.options["positions"] = np.array([[0, 1, 0, 1, 1, 0], [0, 0, 1, 0, 0, 0]], bool)
        out, _ = self.forward()
        self.cotangent = rng.standard_normal(out.shape).astype(dtype)

    def forward(self, **options):
        return (self.model.forward if self.has_head else self.model.encode)(self.ids, **self.options, **options)

    def backward(self, cache, **options):
        grads = self.model.params.zeros_like()
        back = self.model.backward if self.has_head else self.model.encode_backward
        back(self.cotangent, cache, grads, **options)
        return grads.flat


def once(into: dict):
    def hook(name, value):
        assert name not in into, "shown twice"
        into[name] = value.copy()
        return value

    return hook


def test_every_value_is_shown_with_its_gradient(config):
    case, values, gradients = Case(config), {}, {}
    _, cache = case.forward(hook=once(values))
    case.backward(cache, hook=once(gradients))
    assert {name: value.shape for name, value in values.items()} == \
        {name: value.shape for name, value in gradients.items()}
    assert {"embeddings", "Q_0", "scores_1", "ffn_hidden_1", "hidden_1"} <= set(values)


def test_a_gradient_is_the_slope_along_what_the_hook_moves(config):
    case, values, gradients = Case(config), {}, {}
    _, cache = case.forward(hook=once(values))
    case.backward(cache, hook=once(gradients))
    rng = np.random.default_rng(1)
    for moved, value in values.items():
        direction = rng.standard_normal(value.shape)

        def loss(distance, moved=moved, direction=direction):
            out, _ = case.forward(hook=lambda name, here: here + distance * direction if name == moved else here)
            return float((out * case.cotangent).sum())

        slope = (loss(STEP) - loss(-STEP)) / (2 * STEP)
        assert slope == pytest.approx(float((gradients[moved] * direction).sum()), rel=1e-5, abs=1e-5), moved


@pytest.mark.parametrize("recompute", [False, True])
def test_a_hook_that_returns_its_value_changes_no_bit(config, recompute):
    case = Case(config, np.float32)
    plain, cache = case.forward(recompute=recompute)
    grads = case.backward(cache)
    hooked, cache = case.forward(recompute=recompute, hook=lambda name, value: value)
    np.testing.assert_array_equal(hooked, plain)
    np.testing.assert_array_equal(case.backward(cache, hook=lambda name, value: value), grads)


def test_what_is_shown_is_what_the_cache_holds(config):
    case, values = Case(config, chosen=False), {}
    _, cache = case.forward(hook=once(values))
    for name in ("embeddings", "Q_0", "K_1", "V_0", "scores_0", "attention_weights_1", "context_0", "middle_0",
                 "ffn_activation_1", "hidden_0", "hidden_1"):
        np.testing.assert_array_equal(values[name].reshape(cache[name].shape), cache[name])
