"""The optimisers: their formulas, what they leave alone, and that threads change nothing."""

from collections.abc import Callable
from math import sqrt

import numpy as np
import pytest

from mini_bert import ConfigError, ParameterError
from mini_bert.core.params import Parameters, ParamSpec
from mini_bert.training.config import TrainingConfig, make_optimiser
from mini_bert.training.optimisers import optimiser as module
from mini_bert.training.optimisers.adamw import AdamW
from mini_bert.training.optimisers.lion import Lion
from mini_bert.training.optimisers.making import optimiser_from
from mini_bert.training.workers import workers

LAYOUT = [ParamSpec("W", (30, 40), 1.0), ParamSpec("b", (40,), 1.0), ParamSpec("U", (40, 7), 1.0),
          ParamSpec("gamma", (7,), mean=1.0)]
PLAIN = ["adamw", "lion", "sgd(momentum=0.9)"]


def made(dtype=np.float64) -> Parameters:
    params = Parameters(LAYOUT, dtype)
    params.initialise(0)
    return params


def gradients(step: int, dtype=np.float64) -> Parameters:
    grads = Parameters(LAYOUT, dtype)
    grads.flat[...] = np.random.default_rng(step).standard_normal(grads.flat.size)
    return grads


class ByTheBook:
    """One parameter at a time, in the words of the papers: what is subtracted from it, apart from weight decay."""

    def __init__(self, word: str):
        self.rule: Callable[..., np.ndarray] = getattr(self, word.partition("(")[0])
        self.m: dict[str, np.ndarray | float] = {}
        self.v: dict[str, np.ndarray | float] = {}

    def adamw(self, name, g, t, lr):
        self.m[name] = 0.9 * self.m.get(name, 0.0) + 0.1 * g
        self.v[name] = 0.999 * self.v.get(name, 0.0) + 0.001 * g**2
        return lr * self.m[name] / (1 - 0.9**t) / (np.sqrt(self.v[name] / (1 - 0.999**t)) + 1e-8)

    def lion(self, name, g, t, lr):
        m = self.m.get(name, 0.0)
        self.m[name] = 0.99 * m + 0.01 * g
        return lr * np.sign(0.9 * m + 0.1 * g)

    def sgd(self, name, g, t, lr):
        self.m[name] = 0.9 * self.m.get(name, 0.0) + g
        return lr * self.m[name]

    def after(self, params: Parameters, steps: int, lr: float, decay: float, scale: float) -> dict[str, np.ndarray]:
        w = {name: value.astype(np.float64) for name, value in params.items()}
        for t in range(1, steps + 1):
            for name, g in gradients(t).items():
                fade = decay if w[name].ndim > 1 else 0.0
                w[name] = w[name] - lr * fade * w[name] - self.rule(name, g * scale, t, lr)
        return w


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 3e-5)])
@pytest.mark.parametrize("chunk", [7, 1 << 15])
@pytest.mark.parametrize("word", PLAIN)
def test_a_hundred_steps_are_those_of_the_paper(word, dtype, tolerance, chunk, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", chunk)
    params = made(dtype)
    expected = ByTheBook(word).after(params, 100, 1e-2, 0.1, scale=0.5)
    optimiser = optimiser_from(word, params, {"learning_rate": 1e-2, "weight_decay": 0.1})
    for t in range(1, 101):
        optimiser.step(gradients(t, dtype), scale=0.5)
    for name, value in expected.items():
        assert np.allclose(params[name], value, rtol=0, atol=tolerance)


def test_lion_leaves_alone_what_has_no_gradient_and_never_had():
    params, start, grads = made(), made(), gradients(1)
    grads["W"][0] = 0.0
    lion = Lion(params, 1e-2, weight_decay=0.0)
    for _ in range(3):
        lion.step(grads)
    assert np.array_equal(params["W"][0], start["W"][0])
    assert np.allclose(np.abs(params["W"][1:] - start["W"][1:]), 3e-2)          # each of three steps has full length


@pytest.mark.parametrize("word", PLAIN)
def test_threads_and_chunks_change_no_bit(word, monkeypatch):
    results = []
    for chunk, threads in ((1 << 15, 1), (100, 1), (100, 2), (33, 4)):
        monkeypatch.setattr(module, "CHUNK", chunk)
        params = made(np.float32)
        optimiser = optimiser_from(word, params, {})
        with workers(threads) as team:
            for t in range(1, 6):
                optimiser.step(gradients(t, np.float32), workers=team, measure=t == 3)
        results.append(params.flat.copy())
    assert all(np.array_equal(results[0], other) for other in results[1:])


def test_what_is_frozen_stays_and_factors_scale():
    params, start = made(), made()
    adam = AdamW(params, 1e-2, weight_decay=0.0, factors={"W": 0.0, "U": 0.5})
    adam.step(gradients(1))
    assert np.array_equal(params["W"], start["W"])
    # the first step of Adam is lr times the sign of the gradient
    assert np.allclose(np.abs(params["U"] - start["U"]), 0.5e-2, rtol=1e-3)
    assert np.allclose(np.abs(params["b"] - start["b"]), 1e-2, rtol=1e-3)


def test_the_norm_leaves_out_what_is_frozen():
    grads = gradients(1)
    assert AdamW(made()).grad_norm(grads) == pytest.approx(np.linalg.norm(grads.flat))
    rest = np.concatenate([grads[name].ravel() for name in ("b", "U", "gamma")])
    assert AdamW(made(), factors={"W": 0.0}).grad_norm(grads) == pytest.approx(np.linalg.norm(rest))


def test_measures_are_norms_of_gradient_and_change_by_part():
    params, before = made(), made()
    adam = AdamW(params, 1e-2, groups={"W": "first", "b": "first", "U": "second", "gamma": "second"})
    measures = adam.step(gradients(1), scale=2.0, measure=True)
    for part, names in (("first", ("W", "b")), ("second", ("U", "gamma"))):
        size = sqrt(sum((2 * gradients(1)[name] ** 2).sum() * 2 for name in names))
        change = sqrt(sum(((params[name] - before[name]) ** 2).sum() for name in names))
        weight = sqrt(sum((before[name] ** 2).sum() for name in names))
        assert measures.grad_norm[part] == pytest.approx(size)
        assert measures.update_ratio[part] == pytest.approx(change / weight)


def test_wrong_settings_are_refused():
    for wrong in ({"beta1": 1.0}, {"weight_decay": -1.0}, {"learning_rate": float("nan")}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            AdamW(made(), **wrong)
    with pytest.raises(ParameterError, match="nearest"):
        AdamW(made(), factors={"V": 0.0})


def test_coefficients_that_no_config_sets_are_the_optimisers_own():
    def betas(**settings):
        optimiser = make_optimiser(TrainingConfig(**settings), made())
        return optimiser.beta1, optimiser.beta2

    assert betas(optimiser="lion") == (0.9, 0.99)
    assert betas(optimiser="lion", beta2=0.95) == (0.9, 0.95)
    assert betas(optimiser="lion(beta1=0.8)", beta2=0.95) == (0.8, 0.95)
    assert betas() == (0.9, 0.999)
    with pytest.raises(ConfigError, match="epsilon is set, but the optimiser lion takes none"):
        betas(optimiser="lion", epsilon=1e-6)
