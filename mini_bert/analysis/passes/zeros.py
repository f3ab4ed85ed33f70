"""Why a number of a pass is exactly zero.

Most numbers of a pass never are. A zero has a reason: an operation that gives zero for some inputs (its Formula says
so), a sum whose factors are zero, or a gradient that does not reach a token, because the loss does not read it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .backward_steps import BackwardPass, BackwardStep
from .cells import Cell
from .forward_steps import ForwardPass, Step


def why_zero(passed: ForwardPass, step: Step, cell: Cell) -> str | None:
    """A sentence on a number of the forward pass; None if it is not zero."""
    if cell.value != 0:
        return None
    formula = None if step.operands is None else step.operands.formula
    if formula is not None and formula.zero:
        hidden = _hidden(passed, step, cell.index)
        return hidden or f"Because {formula.zero}."
    factors = sorted({factor.name for term in cell.terms for factor in term.factors if factor.value == 0})
    if cell.terms and all(term.value == 0 for term in cell.terms):
        names = f": {_some(factors)}" if factors else ""
        return f"Each of its terms has a factor that is zero{names}." if factors else "All of its terms are zero."
    return "Its terms cancel exactly."


def _hidden(passed: ForwardPass, step: Step, index: Sequence[int]) -> str | None:
    """Of a weight: a key that the query may not see."""
    scores = passed[step.inputs[0]].array if step.inputs and step.inputs[0] in passed.names else None
    if scores is None or scores.shape != step.array.shape or not np.isneginf(scores[tuple(index)]):
        return None
    *_, query, key = index
    return f"Because the token at position {query} may not see the one at position {key}: its score is minus infinity."


def why_zero_gradient(passed: BackwardPass, step: BackwardStep, index: Sequence[int]) -> str | None:
    """A sentence on an entry of a gradient; None if it is not zero."""
    at = tuple(index)
    if step.array[at] != 0:
        return None
    asked = sorted(passed.targets)
    places = f"position{'s' * (len(asked) > 1)} {' and '.join(map(str, asked))}"
    token = next((i for i, axis in zip(at, step.axes, strict=True) if axis == "token"), None)
    arriving = [passed[name] for name in step.gradients if name in passed.names]
    if step.name == "dlogits" and token is not None and token not in passed.targets:
        return f"The loss reads only the logits of {places}, so no other row of logits has a gradient."
    if token is not None and not np.any(_rows(step.array, step.axes, token)):
        if arriving and all(not np.any(_rows(found.array, found.axes, token)) for found in arriving
                            if "token" in found.axes and found.axes[-1] != "key"):
            names = _some([found.name for found in arriving])
            return (f"The whole row of this token is zero, as is what arrives there ({names}): from here on the loss "
                    f"depends on {places} alone.")
        return f"The whole row of this token is zero: from here on the loss depends on {places} alone."
    if step.is_parameter and step.array.ndim > 1 and not np.any(step.array[at[0]]):
        return "Nothing that this row of the parameter is multiplied by reaches the loss for this sentence."
    if arriving and all(found.array.shape == step.array.shape and found.array[at] == 0 for found in arriving):
        return f"What arrives at this place is zero: {_some([found.name for found in arriving])}."
    slopes = [spec.formula.zero for spec in passed.forward.specs
              if step.of in spec.inputs and spec.formula.kink is not None]
    return f"The operation behind it stops the gradient here, because {slopes[0]}." if slopes else \
        "What arrives and the slope there multiply to zero, or cancel exactly."


def _rows(array: npt.NDArray[Any], axes: Sequence[str], token: int) -> npt.NDArray[Any]:
    """All numbers of one token."""
    found: npt.NDArray[Any] = np.take(array, token, axis=list(axes).index("token"))
    return found


def _some(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")
