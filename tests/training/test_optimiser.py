"""AdamW: the formula, what it leaves alone, and that threads change nothing."""

from math import sqrt

import numpy as np
import pytest

from mini_bert import ConfigError, ParameterError
from mini_bert.core.params import Parameters, ParamSpec
from mini_bert.training.optimisers import optimiser as module
from mini_bert.training.optimisers.adamw import AdamW
from mini_bert.training.workers import workers

LAYOUT = [ParamSpec("W", (30, 40), 1.0), ParamSpec("b", (40,), 1.0), ParamSpec("U", (40, 7), 1.0),
          ParamSpec("gamma", (7,), mean=1.0)]


def made(dtype=np.float64) -> Parameters:
    params = Parameters(LAYOUT, dtype)
    params.initialise(0)
    return params


def gradients(step: int, dtype=np.float64) -> Parameters:
    grads = Parameters(LAYOUT, dtype)
    grads.flat[...] = np.random.default_rng(step).standard_normal(grads.flat.size)
    return grads


def by_the_book(params: Parameters, steps: int, lr: float, decay: float, scale: float = 1.0) -> dict[str, np.ndarray]:
    """One parameter at a time, in the words of the paper."""
    w = {name: value.astype(np.float64) for name, value in params.items()}
    m = {name: np.zeros_like(value) for name, value in w.items()}
    v = {name: np.zeros_like(value) for name, value in w.items()}
    for t in range(1, steps + 1):
        for name, g in gradients(t).items():
            g = g * scale
            m[name] = 0.9 * m[name] + 0.1 * g
            v[name] = 0.999 * v[name] + 0.001 * g**2
            mhat, vhat = m[name] / (1 - 0.9**t), v[name] / (1 - 0.999**t)
            fade = decay if w[name].ndim > 1 else 0.0
            w[name] = w[name] - lr * fade * w[name] - lr * mhat / (np.sqrt(vhat) + 1e-8)
    return w


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 2e-5)])
@pytest.mark.parametrize("chunk", [7, 1 << 15])
def test_a_hundred_steps_are_those_of_the_paper(dtype, tolerance, chunk, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", chunk)
    params = made(dtype)
    expected = by_the_book(params, 100, 1e-2, 0.1, scale=0.5)
    adam = AdamW(params, 1e-2, weight_decay=0.1)
    for t in range(1, 101):
        adam.step(gradients(t, dtype), scale=0.5)
    for name, value in expected.items():
        assert np.allclose(params[name], value, rtol=0, atol=tolerance)


def test_threads_and_chunks_change_no_bit(monkeypatch):
    results = []
    for chunk, threads in ((1 << 15, 1), (100, 1), (100, 2), (33, 3)):
        monkeypatch.setattr(module, "CHUNK", chunk)
        params = made(np.float32)
        adam = AdamW(params)
        with workers(threads) as team:
            for t in range(1, 6):
                adam.step(gradients(t, np.float32), workers=team, measure=t == 3)
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
