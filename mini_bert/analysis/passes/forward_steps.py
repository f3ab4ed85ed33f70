"""One forward pass, step by step: each with its formula, its inputs and its numbers.

The numbers are the model's own, bit for bit: they are what the pass itself showed (core/hooks.py). `explain_cell`
gives the sum behind one of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.arrays import Array, IntArray
from ...core.cache import Cache
from ...core.config import ModelConfig
from ...core.formulas import StepSpec
from ...core.hooks import recorder
from ...core.inputs import check_ids
from ...core.model import MiniBERT
from ...errors import InputError
from ...text.tokenizer import Tokenizer
from .cells import Cell, Operands, cell_of
from .formulas import Equations
from .named_steps import NamedSteps
from .sequences import read_sentence
from .step_formulas import Notation

TOKENS = "The text is cut into pieces of the vocabulary; each has a number, the row of its vector."


@dataclass(frozen=True, eq=False)
class Step:
    """A value that the pass computes. Its array has no batch axis: (T, n), or (A, T, n) with a row for each head."""

    name: str                             # Q_0, attention_weights_0, hidden_0, ...
    title: str                            # Queries, Attention weights, Output of the layer, ...
    symbol: str                           # in formulas
    kind: str                             # of operation: linear, softmax, ...
    layer: int | None
    component: str                        # embeddings, attention, feedforward, residual, layernorm, head
    formula: Equations
    inputs: tuple[str, ...]               # names of other steps
    parameters: tuple[str, ...]
    array: npt.NDArray[Any] = field(repr=False)
    axes: tuple[str, ...]                 # what each axis runs over: head, token, key, vocabulary; "" for features
    group: str = "Embeddings"             # the part of the pass: Embeddings, Layer 0, ..., Prediction
    why: str = ""                         # one sentence: what the step is good for
    page: str = ""                        # its derivation, in docs/math
    operands: Operands | None = field(repr=False, default=None)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def signed(self) -> bool:
        """May its numbers be below zero?"""
        return self.operands is None or self.operands.formula.signed

    @property
    def input_shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the inputs and the parameters."""
        operands = self.operands
        return {} if operands is None else {name: operands[name].shape for name in (*self.inputs, *self.parameters)}

    def to_dict(self) -> dict[str, Any]:
        """All but the numbers."""
        return {"name": self.name, "title": self.title, "symbol": self.symbol, "kind": self.kind, "layer": self.layer,
                "component": self.component, "group": self.group, "formula": self.formula.to_dict(),
                "why": self.why, "page": self.page,
                "inputs": list(self.inputs), "parameters": list(self.parameters), "shape": list(self.shape),
                "input_shapes": {name: list(shape) for name, shape in self.input_shapes.items()}}


class ForwardPass(NamedSteps[Step]):
    """The steps in order; `passed["Q_0"]` is a step by its name."""

    def __init__(self, model: MiniBERT, ids: IntArray, tokens: list[str] | None, steps: list[Step],
                 specs: list[StepSpec], cache: Cache, types: IntArray | None = None):
        super().__init__(steps)
        self.model, self.ids, self.tokens, self.types = model, ids, tokens, types
        self.specs, self.cache = specs, cache             # for the backward pass
        self.rows = rows_read(ids, types)

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The numbers of every step by its name."""
        return {step.name: step.array for step in self.steps}

    def to_dict(self) -> dict[str, Any]:
        return {"tokens": self.tokens, "ids": self.ids.tolist(), "steps": [step.to_dict() for step in self.steps]}


def step_through_forward_pass(model: MiniBERT, tokenizer: Tokenizer, text: str, *,
                              mask: Sequence[int] = ()) -> ForwardPass:
    """The forward pass of one text; the tokens at the positions `mask` are replaced by [MASK]."""
    sentence = read_sentence(model, tokenizer, text, mask=mask)
    return forward_pass(model, sentence.ids, sentence.tokens)


def forward_pass(model: MiniBERT, ids: npt.ArrayLike, tokens: list[str] | None = None, *,
                 types: IntArray | None = None) -> ForwardPass:
    """The forward pass of one sequence of ids (T,), with its token types (T,) if they are not all 0."""
    row = np.asarray(ids)
    batch = check_ids(row[None] if row.ndim == 1 else row, model.config.vocab_size, "ids", "the vocabulary")
    if len(batch) != 1:
        raise InputError(f"A pass is stepped through for one sequence, not for {len(batch)}.")
    shown, cache = hooked_values(model, batch, types)
    rows = rows_read(batch[0], types)
    specs = list(model.modules.steps())
    notation = Notation(specs, model.params)
    steps = [Step("tokens", "Tokens", "ids", "tokens", None, "embeddings", Equations(("ids = tokenize(text)",)), (), (),
                  batch[0], ("token",), why=TOKENS)]
    values: dict[str, Array] = {**shown, "tokens": batch[0]}
    for spec in specs:
        inputs = spec.inputs or ("tokens",)
        parameters = tuple(name for _, name in spec.parameters)
        for name in (spec.name, *inputs, *parameters):
            if name not in values and name not in model.params:
                raise InputError(f"The step {spec.name} is described with the value {name}, which the pass does not "
                                 "show: its module must call ctx.hook with the value's name where it is computed.")
        arrays = {name: values[name] if name in values else model.params[name] for name in (*inputs, *parameters)}
        operands = Operands(spec.formula, arrays, dict(spec.parameters), notation.symbols, _constants(model.config),
                            rows, model.config.num_heads)
        steps.append(Step(spec.name, spec.title, spec.symbol, spec.formula.name, spec.layer, spec.component,
                          Equations(notation.forward(spec)), inputs, parameters, values[spec.name],
                          axes_of(spec, values[spec.name]), spec.group, spec.reason, spec.formula.page, operands))
    return ForwardPass(model, batch[0], tokens, steps, specs, cache, types)


def hooked_values(model: MiniBERT, batch: IntArray, types: IntArray | None = None) -> tuple[dict[str, Array], Cache]:
    """Every value of a pass over one sequence (1, T), without the batch axis, and the cache for its backward."""
    values: dict[str, Array] = {}
    run = model.forward if model.modules.has_logits else model.encode
    _, cache = run(batch, token_types=None if types is None else types[None], hook=recorder(values, one_sequence))
    return values, cache


def one_sequence(value: Array) -> Array:
    """A copy of a batch of one without its batch axis: rows are (T, n) already, heads (1, A, T, n)."""
    return (value[0] if value.ndim == 4 else value).copy()


def explain_cell(step: Step, row: int, column: int, head: int | None = None) -> Cell:
    """The sum behind one number of a step: its terms, the quantities that they are made from, and the total.

    Steps with a row for each head want `head` too.
    """
    index = (row, column) if head is None else (head, row, column)
    if step.operands is None:
        raise InputError(f"The step {step.name} is not computed from other numbers.")
    if step.array.ndim != len(index):
        raise InputError(f"{step.name} has the shape {step.shape}; "
                         + ("say which head is meant, as head=0." if head is None else "it has no heads."))
    for i, size in zip(index, step.shape, strict=True):
        if not 0 <= i < size:
            raise InputError(f"There is no cell {list(index)} in {step.name}, whose shape is {step.shape}.")
    return cell_of(step, index)


def axes_of(spec: StepSpec, array: npt.NDArray[Any]) -> tuple[str, ...]:
    """What each axis of a value of one sequence runs over: (T, n), or (A, T, n) with one row per head."""
    first = ("head", "token")[3 - array.ndim :] if array.ndim > 1 else ()
    return (*first, *spec.axes, *("",) * (array.ndim - len(first) - len(spec.axes)))


def rows_read(ids: IntArray, types: IntArray | None = None) -> dict[str, IntArray]:
    """The rows that lookups read for one text: of the tokens, of the positions, and of the segments."""
    return {"ids": ids, "t": np.arange(len(ids)), "types": np.zeros(len(ids), np.int64) if types is None else types}


def _constants(config: ModelConfig) -> Mapping[str, float]:
    return {"eps": config.layernorm_eps, "d_k": float(config.head_size)}
