"""What holds for every operation: a backward, checks that pass, a derivation."""

from pathlib import Path

import numpy as np
import pytest

import mini_bert.core.ops as ops
from mini_bert.core.gradcheck import Check, check_operation
from mini_bert.core.ops import Operation, operations

ROOT = Path(__file__).parents[3]
FILES = {path.stem: path for path in sorted(Path(ops.__path__[0]).rglob("*.py")) if path.stem != "__init__"}
OPERATIONS = list(operations())


def test_every_file_in_ops_is_an_operation_with_checks():
    assert sorted(operation.name for operation in OPERATIONS) == sorted(FILES)
    assert all(operation.checks for operation in OPERATIONS)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_gradients_agree_with_finite_differences(operation: Operation):
    for seed in range(3):
        results = operation.check(seed)
        assert results
        assert [result for result in results if not result.passed] == []


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_backward_can_be_called_twice_and_changes_no_input(operation: Operation):
    for check in operation.checks:
        inputs = [np.asarray(x, float) for x in check.inputs(np.random.default_rng(0))]
        before = [x.copy() for x in inputs]
        y, cache = operation.forward(**check.arguments(operation.forward, inputs))
        dy = np.random.default_rng(1).standard_normal(np.shape(y))
        dy_before = dy.copy()
        first, second = (operation.backward(dy if dy.shape else float(dy), cache) for _ in range(2))
        first, second = ([g for g in (out if isinstance(out, tuple) else (out,)) if g is not None]
                         for out in (first, second))
        assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
        assert np.array_equal(dy, dy_before)
        assert all(np.array_equal(x, y) for x, y in zip(inputs, before, strict=True))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_float32_stays_float32_and_follows_float64(operation: Operation):
    check = operation.checks[0]
    inputs = [np.asarray(x, np.float64) for x in check.inputs(np.random.default_rng(0))]
    exact, exact_cache = operation.forward(*inputs, **check.constants())
    single, single_cache = operation.forward(*(x.astype(np.float32) for x in inputs), **check.constants())
    assert np.allclose(single, exact, rtol=1e-5, atol=1e-5)
    dy = np.ones(np.shape(exact))
    gradients = [operation.backward(dy.astype(dtype) if dy.shape else 1.0, cache)
                 for dtype, cache in ((np.float64, exact_cache), (np.float32, single_cache))]
    for a, b in zip(*(g if isinstance(g, tuple) else (g,) for g in gradients), strict=True):
        assert b.dtype == np.float32
        assert np.allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", FILES)
def test_every_operation_names_its_derivation(name: str):
    source = FILES[name].read_text("utf-8")
    assert f"docs/math/{name}.md" in source
    assert (ROOT / "docs" / "math" / f"{name}.md").exists()


def _square(x):
    return x**2, x


CHECK = [Check("any", lambda rng: [rng.standard_normal((2, 3))])]


@pytest.mark.parametrize(("backward", "passes"), [
    (lambda dy, x: 2 * x * dy, True),
    (lambda dy, x: -2 * x * dy, False),
    (lambda dy, x: 2 * x * dy * (1 + 3e-6), False),
    (lambda dy, x: 2 * x, False),                 # as if the cotangent were all ones
    (lambda dy, x: None, False),
    (lambda dy, x: (), False),
    (lambda dy, x: (2 * x * dy).sum(axis=0), False),
    (lambda dy, x: 2 * x * dy * np.nan, False),
])
def test_a_check_passes_for_the_right_backward_alone(backward, passes):
    results = check_operation("square", _square, backward, CHECK)
    assert len(results) == 1
    assert results[0].passed == passes
