"""The optimisers: their formulas, what they leave alone, and that threads change nothing."""

from collections.abc import Callable
from math import sqrt

import numpy as np
import pytest

from mini_bert import ConfigError, ParameterError, load_preset
from mini_bert.core.modules.assembly import parameter_specs
from mini_bert.core.params import Parameters, ParamSpec
from mini_bert.core.precision.bfloat16 import widened
from mini_bert.training.config import TrainingConfig, make_optimiser
from mini_bert.training.optimisers import optimiser as module
from mini_bert.training.optimisers.adamw import AdamW
from mini_bert.training.optimisers.lion import Lion
from mini_bert.training.optimisers.making import optimiser_from
from mini_bert.training.optimisers.muon import Muon, orthogonalised
from mini_bert.workers import workers

LAYOUT = [ParamSpec("E", (50, 8), 1.0, component="embeddings", axes=("vocabulary",)),
          ParamSpec("W", (30, 40), 1.0, component="attention", layer=0), ParamSpec("b", (40,), 1.0, layer=0),
          ParamSpec("R", (9, 5), 1.0, component="attention", layer=0, axes=("distances",)),
          ParamSpec("U", (40, 7), 1.0, component="feedforward", layer=0), ParamSpec("gamma", (7,), mean=1.0)]
HIDDEN = ("W", "U")
PLAIN = ["adamw", "lion", "muon", "sgd(momentum=0.9)"]


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

    def muon(self, name, g, t, lr):
        if name not in HIDDEN:
            return self.adamw(name, g, t, lr)
        self.m[name] = 0.95 * self.m.get(name, 0.0) + 0.05 * g
        U, s, V = np.linalg.svd(0.95 * self.m[name] + 0.05 * g, full_matrices=False)
        s /= np.linalg.norm(s)
        for _ in range(5):
            s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
        return lr * 0.2 * sqrt(max(g.shape)) * (U * s @ V)

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


@pytest.mark.parametrize("moments", ["float32", "bfloat16"])
@pytest.mark.parametrize("word", PLAIN)
def test_threads_and_chunks_change_no_bit(word, moments, monkeypatch):
    results, norms = [], []
    for chunk, threads in ((1 << 15, 1), (100, 1), (100, 2), (33, 4)):
        monkeypatch.setattr(module, "CHUNK", chunk)
        params = made(np.float32)
        optimiser = optimiser_from(word, params, {}, moments)
        with workers(threads) as team:
            for t in range(1, 6):
                measures = optimiser.step(gradients(t, np.float32), workers=team, measure=t == 5)
        results.append(params.flat.copy())
        norms.append((chunk, measures))
    assert all(np.array_equal(results[0], other) for other in results[1:])
    assert norms[1] == norms[2]           # the sums of squares depend on the chunks, and not on the threads


@pytest.mark.parametrize("word", PLAIN)
def test_what_is_frozen_stays_and_factors_scale(word):
    start, free, held = made(), made(), made()
    factors = {"W": 0.0, "E": 0.0, "U": 0.5, "b": 0.5}
    for params, more in ((free, {}), (held, {"factors": factors})):
        optimiser = optimiser_from(word, params, {"learning_rate": 1e-2, **more})
        optimiser.step(gradients(1))
    for name in LAYOUT:
        change, full = (params[name.name] - start[name.name] for params in (held, free))
        assert np.allclose(change, factors.get(name.name, 1.0) * full, rtol=0, atol=1e-15)
        assert full.any()
    assert all(not state[held.slices[name]].any() for state in optimiser.state.values() for name in ("W", "E"))


def test_the_norm_leaves_out_what_is_frozen():
    grads = gradients(1)
    assert AdamW(made()).grad_norm(grads) == pytest.approx(np.linalg.norm(grads.flat))
    rest = np.concatenate([value.ravel() for name, value in grads.items() if name != "W"])
    assert AdamW(made(), factors={"W": 0.0}).grad_norm(grads) == pytest.approx(np.linalg.norm(rest))


@pytest.mark.parametrize("word", PLAIN)
def test_measures_are_norms_of_gradient_and_change_by_part(word):
    params, before = made(), made()
    parts = {"first": ("E", "W", "b"), "second": ("R", "U", "gamma")}
    groups = {name: part for part, names in parts.items() for name in names}
    optimiser = optimiser_from(word, params, {"learning_rate": 1e-2, "groups": groups})
    measures = optimiser.step(gradients(1), scale=2.0, measure=True)
    for part, names in parts.items():
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


@pytest.mark.parametrize(("word", "tolerance"), [("adamw", 0.02), ("muon", 0.02), ("sgd(momentum=0.9)", 0.01)])
def test_half_moments_follow_the_full_ones(word, tolerance):
    """After a hundred steps the weights have moved nearly as with full moments, and without a drift to either side."""
    start, full, half = made(), made(), made()
    optimisers = [optimiser_from(word, params, {"learning_rate": 1e-2, "weight_decay": 0.0}, moments)
                  for params, moments in ((full, "float32"), (half, "bfloat16"))]
    for t in range(1, 101):
        for optimiser in optimisers:
            optimiser.step(gradients(t))
    assert all(array.dtype == np.uint16 for array in optimisers[1].state.values())
    moved = full.flat - start.flat
    error = half.flat - full.flat
    assert error.any()
    assert np.linalg.norm(error) <= tolerance * np.linalg.norm(moved)
    assert abs(error.mean()) <= 4 * error.std() / sqrt(error.size)


def test_the_second_moment_is_right_on_average():
    params = made(np.float32)
    optimiser = optimiser_from("adamw", params, {}, "bfloat16")
    grads = gradients(1, np.float32)
    grads.flat[...] = 1.0
    for _ in range(1500):
        optimiser.step(grads)
    v = widened(optimiser.v)
    assert v.mean() * 0.001 == pytest.approx(1 - 0.999**1500, rel=3e-3)
    assert v.std() / v.mean() < 0.1


@pytest.mark.parametrize("shape", [(40, 40), (24, 60), (60, 24), (50, 1)])
@pytest.mark.parametrize("least", [1.0, 0.3, 0.02])
def test_an_orthogonalised_matrix_keeps_its_singular_vectors_and_its_signs(shape, least, rng):
    """Singular values from `least` of the largest end between 0.68 and 1.21, each behind its own pair of vectors."""
    n = min(shape)
    U, V = (np.linalg.qr(rng.standard_normal((size, n)))[0] for size in shape)
    for scale in (1.0, 3e-9, -2.0):
        inside = np.sign(scale) * U.T @ orthogonalised(scale * U * np.geomspace(least, 1, n) @ V.T) @ V
        assert np.allclose(inside, np.diag(np.diag(inside)), atol=1e-12)
        assert np.diag(inside).min() > 0.68
        assert np.diag(inside).max() < 1.21


def test_a_zero_matrix_has_no_direction():
    assert not orthogonalised(np.zeros((3, 4))).any()


def test_a_step_of_muon_is_as_long_in_matrices_as_one_of_adamw_usually_is():
    params, start = made(), made()
    Muon(params, 1e-2, weight_decay=0.0).step(gradients(1))
    for name in HIDDEN:
        assert sqrt(np.square(params[name] - start[name]).mean()) == pytest.approx(0.2e-2, rel=0.25)


@pytest.mark.parametrize(("preset", "others"), [("mini-xlnet", {"segment_bias_0", "content_bias_0", "distance_bias_0"}),
                                                ("mini-relative", {"relative_keys_0"}), ("mini-gated", set())])
def test_muon_steps_the_maps_of_layers_as_matrices_and_no_table(preset, others):
    specs = parameter_specs(load_preset(preset))
    tables = {spec.name for spec in specs if spec.layer == 0 and len(spec.shape) == 2 and not Muon.whole(spec)}
    assert tables == others
    chosen = {spec.name for spec in specs if Muon.whole(spec)}
    assert {"W_Q_0", "W_O_1", "W1_0", "W2_1"} <= chosen
    assert chosen.isdisjoint({"token_embeddings", "mlm_head_W"})


@pytest.mark.parametrize("wrong", [{"iterations": 0}, {"iterations": 2.0}, {"momentum": 1.0}, {"rms": -1.0}])
def test_wrong_settings_of_muon_are_refused(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Muon(made(), **wrong)


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
