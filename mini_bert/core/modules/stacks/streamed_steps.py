"""The steps of a layer whose queries are rows of their own (core/selection.py, Streams), for the explorer.

Its input is the rows that answer, and below them those that ask. What a layer describes for one input is read so: keys
and values are made from the rows on top, and all else is computed for those at the bottom. A step between the input and
attention, such as a norm, keeps both.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from ...arrays import Array
from ...formulas import Formula, Steps, StepSpec, Terms

ANSWERS = ("K", "V")


def _half(x: Array) -> int:
    return len(x) // 2                    # a text is stepped through with all its tokens


FUNCTIONS: dict[str, Callable[..., Array]] = {
    "top": lambda x: x[: _half(x)], "bottom": lambda x: x[_half(x) :], "stack": lambda a, b: np.concatenate([a, b]),
    "on_top": lambda x: np.concatenate([x, np.zeros_like(x)]),
    "at_bottom": lambda x: np.concatenate([np.zeros_like(x), x])}
BOTH = Formula("two streams", "stack({0}, {1})", ("top(d{y})", "bottom(d{y})"), functions=FUNCTIONS, page="deberta",
               why="Two kinds of rows go through the layer together: those that hold words, and those that ask.")


def streamed(steps: Iterable[StepSpec], x: str) -> Steps:
    """The steps of a layer on the value x, which has both kinds of rows."""
    whole = {x}
    for step in steps:
        if step.inputs and set(step.inputs) <= whole and step.name not in (*ANSWERS, "Q"):
            whole.add(step.name)
            yield step
            continue
        half, back = ("top", "on_top") if step.name in ANSWERS else ("bottom", "at_bottom")
        formula = step.formula
        for number, name in enumerate(step.inputs):
            if name in whole:
                formula = _of_half(formula, number, half, back)
        yield replace(step, formula=formula)


def _of_half(formula: Formula, number: int, half: str, back: str) -> Formula:
    """The formula with half of the rows of one input in its place."""
    place = f"{{{number}}}"

    def changed(text: str) -> str:
        return text.replace(place, f"{half}({place})")

    gradients = [changed(text) for text in formula.inputs]
    gradients[number] = f"{back}({gradients[number]})"
    return replace(formula, forward=changed(formula.forward), inputs=tuple(gradients), terms=Terms.FORMULA,
                   parameters={role: changed(text) for role, text in formula.parameters.items()},
                   where=tuple(map(changed, formula.where)), gradient_where=tuple(map(changed, formula.gradient_where)),
                   functions={**formula.functions, **FUNCTIONS})
