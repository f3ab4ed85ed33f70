"""Are the displayed formulas of a model correct? Each is evaluated from its text, and compared with the model's own
numbers.

A module describes its steps by formulas (core/formulas.py), which the explorer and the pages show. Nothing in a pass
reads them, so a wrong one would harm no gradient; here its value in float64, computed from the inputs of the step, must
be the array that the pass has at that place, and the formula of a gradient must give the gradient of the backward.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..analysis.passes.backward_steps import BackwardPass, BackwardStep, backward_pass
from ..analysis.passes.formula_values import evaluate
from ..analysis.passes.forward_steps import forward_pass
from ..core.arrays import Array
from ..core.config import MASK, ModelConfig
from ..core.gradcheck import CheckResult, relative_error
from ..core.model import MiniBERT
from ..errors import MiniBertError
from ..randomness import generator

TOKENS = 6
# a sum of gradients that cancel, as those of keys' biases do, is known to this share of the largest of them
ROUNDING = 1e-13
# what the evaluation of a text that does not fit its arrays can raise
_MISFITS = (MiniBertError, ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError)


@dataclass(frozen=True)
class FormulaResult(CheckResult):
    """The relative error of one formula's value; `gradient` is the name of its step."""

    sentence: str = ""        # about the formula, if it is wrong


def check_formulas(name: str, config: ModelConfig, seed: int = 0) -> Iterator[FormulaResult]:
    """The formula of every step of a model, and of every gradient of its loss at two masked positions."""
    rng = generator(seed, "formula check", name)
    model = MiniBERT(config, dtype=np.float64, seed=int(rng.integers(2**32)))
    model.params.flat += 0.1 * rng.standard_normal(model.params.flat.size)
    T = min(TOKENS, config.max_seq_length)
    ids = rng.integers(MASK + 1, config.vocab_size, T)
    targets = {place: int(rng.integers(config.vocab_size)) for place in (0, T - 1)}
    try:
        forward = forward_pass(model, ids)
        for step in forward.steps[1:]:
            assert step.operands is not None
            yield _compared(name, "formulas", step.name, step.formula.equations, {step.kind}, step.array,
                            partial(step.operands.evaluate, step.formula.equations))
        if model.modules.predicts_words:
            yield from _gradients(name, backward_pass(forward, targets))
    except _MISFITS as error:             # the description of the steps does not fit the pass as a whole
        yield FormulaResult(name, "formulas", "steps", float("nan"), f"The steps that {name} describes do not fit its "
                            f"pass: {type(error).__name__}: {error}")


def _gradients(name: str, passed: BackwardPass) -> Iterator[FormulaResult]:
    forward, model = passed.forward, passed.forward.model
    known = _known(passed)
    symbols = {step.name: step.symbol for step in forward}
    symbols |= {item.name: item.symbol or item.name for item in model.params.layout}
    for step in passed:
        named = [(f"d{symbols[of[1:]]}", passed[of].array) for of in step.gradients]
        named += [(symbols[of], forward[of].array if of in forward.names else model.params[of]) for of in step.values]
        if len({symbol for symbol, _ in named}) < len(named):
            continue                      # a parameter of several layers, whose values have one symbol in its formula
        users = {spec.formula.name for spec in forward.specs
                 if step.of in spec.inputs or step.of in dict(spec.parameters).values()}
        largest = max((float(np.abs(passed[of].array).max(initial=0)) for of in step.gradients), default=0)
        yield _compared(name, "formulas of gradients", step.name, step.formula.equations, users, step.array,
                        partial(_value, step, {**known(step), **dict(named)}, model.config.num_heads),
                        ROUNDING * largest)


def _known(passed: BackwardPass) -> Callable[[BackwardStep], Mapping[str, Any]]:
    """The names in formulas of gradients that are not values, gradients or parameters."""
    forward, model = passed.forward, passed.forward.model
    operands = forward.steps[1].operands
    assert operands is not None
    T, V = len(forward.ids), model.config.vocab_size
    asked, target = np.zeros((T, 1)), np.zeros(T, int)       # where none is asked, onehot does not matter
    for position, number in passed.targets.items():
        asked[position], target[position] = 1, number
    always = {**operands.constants, **operands.rows, "target": target, "has": lambda target: asked, "number": np.sum,
              "onehot": lambda ids: np.eye(V)[ids.astype(int)]}

    def of_step(step: BackwardStep) -> Mapping[str, Any]:
        def scatter(rows: Array, ids: Array) -> Array:
            whole = np.zeros(model.params[step.of].shape)
            np.add.at(whole, ids.astype(int), rows)
            return whole

        functions = {name: function for spec in forward.specs if step.of in (spec.name, *spec.inputs, *dict(
            spec.parameters).values()) for name, function in spec.formula.functions.items()}
        return {**always, **functions, "scatter": scatter}

    return of_step


def _value(step: BackwardStep, names: Mapping[str, Any], heads: int) -> npt.NDArray[Any]:
    """The formula's value; of a table's gradient, the rows that the step shows."""
    value = evaluate(step.formula.equations, names, heads)
    shown: npt.NDArray[Any] = value if step.rows is None or len(value) == len(step.rows) else value[step.rows]
    return shown


def _compared(subject: str, case: str, step: str, equations: tuple[str, ...], formulas: set[str],
              array: npt.NDArray[Any], value: Callable[[], npt.NDArray[Any]],
              resolution: float = 0.0) -> FormulaResult:
    which = f"The formula {' + '.join(sorted(formulas)) or 'of the loss'}, {equations[0]},"
    try:
        with np.errstate(all="ignore"):
            found, hidden = np.broadcast_to(value(), array.shape), np.isneginf(array)      # keys that are not seen
            same = np.array_equal(np.isneginf(found), hidden)
            error = relative_error(found[~hidden], array[~hidden], resolution) if same else float("inf")
    except _MISFITS as failure:
        return FormulaResult(subject, case, step, float("nan"), f"{which} of {subject} cannot be evaluated for {step}: "
                                                                f"{failure}")
    result = FormulaResult(subject, case, step, error)
    return result if result.passed else FormulaResult(
        subject, case, step, error, f"{which} of {subject} is wrong: its value differs from what the model computes for"
                                    f" {step} (relative error {error:.1e}).")
