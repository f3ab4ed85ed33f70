"""Formulas as data: what a step of a pass computes, and what its backward pass returns.

An operation's file carries its Formula beside forward and backward; a module describes its steps by them (StepSpec).
The explorer, the pages of mathematics and the exercises read them from there. The notation is that of
analysis/passes/formulas.py. In a template {y} is the step's result, {0} and {1} are its inputs, {W} and the like its
parameters, and d{y} is the gradient that arrives at the result; sum_t adds up the rows, one per token.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any


class Terms(Enum):
    """The terms whose sum is one number of a step: how `explain_cell` writes it out.

    FORMULA has a single term, the formula's own value, and serves any step; the others want the inputs and parameters
    that they name.
    """

    FORMULA = "the formula itself"
    ROW = "the entry of the row of {E} that is looked up"
    INPUTS = "the inputs at the same place"
    LINEAR = "the products of {0}'s row and {W}'s column, and {b}; {0} and the result may be split into heads"
    SCORES = "the products of a query of {0} and a key of {1}, divided by sqrt(d_k), and the biases {2}, {3}, ..."
    SOFTMAX = "the exponentials of {0}'s row"
    WEIGHTED = "the products of a row of weights {0} and a column of {1}, in one head"
    NORMALISED = "{gamma} times the normalised {0}, and {beta}"


@dataclass(frozen=True)
class Formula:
    """Templates of the result, of the gradient of each input and of the gradient of each parameter."""

    name: str                                 # of the operation: linear, softmax, ...
    forward: str
    inputs: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    where: tuple[str, ...] = ()               # the meaning of names in `forward`
    gradient_where: tuple[str, ...] = ()      # the meaning of names in the gradients, each before the names it uses
    rows: str = ""                            # of a lookup: which rows of its table are read: ids, types or t
    terms: Terms = Terms.FORMULA              # of the sum behind one number of its result
    signed: bool = True                       # may its result be below zero? A probability is not
    kink: float | None = None                 # of an activation: the input at which its slope jumps
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict, compare=False)  # of its own, by name
    why: str = ""                             # one sentence: what the operation is good for
    back: str = ""                            # one sentence: how a gradient goes back through it
    page: str = ""                            # its derivation: the name of a page in docs/math
    zero: str = ""                            # when its result is exactly zero, after "because"


@dataclass(frozen=True)
class StepSpec:
    """One step of a pass: a value that a hook sees under `name`, and how it is computed.

    Inside a module the names are the module's own; the stack puts the layer's number behind them.
    """

    name: str
    title: str                                # for a person: "Attention weights"
    symbol: str                               # in formulas: "A"
    formula: Formula
    inputs: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()      # (role in the template, name of the parameter)
    component: str = ""                       # embeddings, attention, feedforward, residual, layernorm, head
    axes: tuple[str, ...] = ()                # what its last axes run over, if not features: ("key",), ("vocabulary",)
    layer: int | None = None
    group: str = "Prediction"                 # the part of the pass that it is shown in
    why: str = ""                             # what this step is good for, if more can be said than for any such step

    @property
    def reason(self) -> str:
        """One sentence: why the step is there."""
        return self.why or self.formula.why


Steps = Iterator[StepSpec]


def in_layer(steps: Iterable[StepSpec], layer: int) -> Steps:
    """The steps of one layer with its number behind the names that the layer made; the last is the layer's output."""
    made = list(steps)
    own = {step.name for step in made}
    for step in made:
        inputs = tuple(f"{name}_{layer}" if name in own else name for name in step.inputs)
        yield replace(step, name=f"{step.name}_{layer}", inputs=inputs, layer=layer, group=f"Layer {layer}",
                      symbol=f"x_{layer + 1}" if step is made[-1] else step.symbol)


# what needs no operation
SAME = Formula("same", "{0}", ("d{y}",), terms=Terms.INPUTS, page="model",
               why="The value goes on unchanged under a second name: the sub-layer reads it, and the sum around the "
                   "sub-layer reads it too.",
              back="Nothing was computed, so the gradient goes back as it comes.")


def sum_of(n: int) -> Formula:
    """The sum of n inputs."""
    return SAME if n == 1 else Formula(
        "sum", " + ".join(f"{{{i}}}" for i in range(n)), ("d{y}",) * n, terms=Terms.INPUTS, page="model",
        why="Adding keeps what was there.", back="A sum sends its gradient back unchanged to each of its terms.")
