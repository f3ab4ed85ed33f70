"""examples/minibert_in_one_file.py computes what the library computes, and can be read in one sitting."""

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from mini_bert import AdamW, MiniBERT, MiniBERTGradients, ModelConfig
from mini_bert.training.clipping.norm import clip_factor

FILE = Path(__file__).parents[2] / "examples" / "minibert_in_one_file.py"
TEXT = "The cat sat on the mat. The dog sat on the log. A bird sang in the tree. " * 40


@pytest.fixture
def one() -> ModuleType:
    """The file as a module, at a small size."""
    spec = importlib.util.spec_from_file_location("minibert_in_one_file", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.V, module.T, module.H, module.A, module.I, module.L = 40, 12, 16, 4, 32, 2
    return module


@pytest.fixture
def model(one) -> MiniBERT:
    """The library's model of the same sizes, with weights that are large enough for everything to matter."""
    made = MiniBERT(ModelConfig(num_layers=one.L, num_heads=one.A, hidden_size=one.H, intermediate_size=one.I,
                                vocab_size=one.V, max_seq_length=one.T), dtype=np.float64)
    made.params.flat += 0.2 * np.random.default_rng(1).standard_normal(made.params.flat.size)
    return made


@pytest.fixture
def batch(one, rng) -> tuple:
    ids = rng.integers(5, one.V, (3, one.T - 2))          # shorter than the model's maximum
    shown, chosen = one.mask(ids, rng, rate=0.3)
    return ids, shown, chosen


def test_its_parameters_are_those_of_the_library(one, model):
    made = one.new_parameters(np.random.default_rng(0))
    assert {name: value.shape for name, value in made.items()} == {
        name: value.shape for name, value in model.params.items()}
    assert {value.dtype for value in made.values()} == {np.dtype(np.float32)}


def test_loss_and_gradients_are_those_of_the_library(one, model, batch):
    ids, shown, chosen = batch
    grads = MiniBERTGradients(model)
    total, count = grads.accumulate_mlm(shown, ids, chosen)
    loss, found = one.loss_and_gradients(dict(model.params), shown, ids, chosen)
    assert loss == pytest.approx(total / count, rel=1e-12)
    assert found.keys() == set(model.params)
    for name, gradient in found.items():
        np.testing.assert_allclose(gradient, grads.gradients[name] / count, rtol=1e-8, atol=1e-12, err_msg=name)


def test_steps_of_adamw_are_those_of_the_library(one, model, batch):
    ids, shown, chosen = batch
    p, state = {name: value.copy() for name, value in model.params.items()}, {}
    optimiser, grads = AdamW(model.params, 1e-2), MiniBERTGradients(model)
    for _ in range(3):                                    # the gradient is longer than 1, so it is clipped
        _, found = one.loss_and_gradients(p, shown, ids, chosen)
        one.adamw(p, found, state, 1e-2)
        grads.zero_gradients()
        _, count = grads.accumulate_mlm(shown, ids, chosen)
        grads.gradients.flat /= count
        norm = optimiser.grad_norm(grads.gradients)
        assert norm > 1
        optimiser.step(grads.gradients, scale=clip_factor(norm, 1.0))
    for name, value in p.items():
        np.testing.assert_allclose(value, model.params[name], rtol=1e-8, atol=1e-10, err_msg=name)


def test_nothing_is_computed_in_double_precision(one, batch):
    ids, shown, chosen = batch
    _, found = one.loss_and_gradients(one.new_parameters(np.random.default_rng(0)), shown, ids, chosen)
    assert {value.dtype for value in found.values()} == {np.dtype(np.float32)}


def test_masks_hide_words_and_never_special_tokens(one, rng):
    ids = np.where(rng.random((200, 12)) < 0.2, one.SEP, rng.integers(5, one.V, (200, 12)))
    ids[0, 1] = 7
    shown, chosen = one.mask(ids, rng)
    assert (ids[chosen] >= 5).all()
    assert np.array_equal(shown[~chosen], ids[~chosen])
    assert chosen[ids >= 5].mean() == pytest.approx(0.15, abs=0.02)
    assert (shown[chosen] == one.MASK).mean() == pytest.approx(0.8, abs=0.06)


def test_it_learns_a_text_and_fills_masks(one, capsys, monkeypatch):
    clock = iter(range(10_000))
    monkeypatch.setattr(one, "perf_counter", lambda: next(clock))
    model, vocabulary = one.train(TEXT, seconds=300, batch=16, peak=1e-2)
    assert vocabulary[:5] == one.SPECIAL
    (first, *_), = one.fill_mask(model, vocabulary, "The cat [MASK] on the mat.")
    assert first[0] == "sat"
    assert first[1] > 0.3
    assert "words of text" in capsys.readouterr().out


def test_it_is_at_most_300_lines_of_numpy_and_explains_every_function():
    text = FILE.read_text("utf-8")
    assert len(text.splitlines()) <= 300
    tree = ast.parse(text)
    imported = {alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import)
                for alias in node.names}
    imported |= {node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported - set(sys.stdlib_module_names) == {"numpy"}
    silent = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not ast.get_docstring(node)
              and not node.name.endswith("_backward")]
    assert silent == []
