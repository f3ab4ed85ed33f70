"""One forward pass, step by step: each with its formula, its inputs and its numbers.

The numbers are the model's own, bit for bit: they are what the pass itself showed (core/hooks.py). `explain_cell`
gives the sum behind one of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.arrays import Array, IntArray
from ...core.cache import Cache
from ...core.config import ModelConfig
from ...core.hooks import recorded
from ...core.inputs import check_ids
from ...core.model import MiniBERT
from ...errors import InputError
from ...text.wordpiece.tokenizer import WordPieceTokenizer
from .cells import CELLS, Cell, Operands
from .formulas import Formula
from .named_steps import NamedSteps
from .sequences import eval_mode, read_sentence
from .step_formulas import Notation, StepSpec
from .structure import has_head, steps_of


@dataclass(frozen=True, eq=False)
class Step:
    """A value that the pass computes. Its array has no batch axis: (T, n), or (A, T, n) with a row for each head."""

    name: str                             # Q_0, attention_weights_0, hidden_0, ...
    symbol: str                           # in formulas
    kind: str                             # of operation: linear, softmax, ...
    layer: int | None
    component: str                        # embeddings, attention, feedforward, residual, layernorm, head
    formula: Formula
    inputs: tuple[str, ...]               # names of other steps
    parameters: tuple[str, ...]
    array: npt.NDArray[Any] = field(repr=False)
    operands: Operands | None = field(repr=False, default=None)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def input_shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the inputs and the parameters."""
        operands = self.operands
        return {} if operands is None else {name: operands[name].shape for name in (*self.inputs, *self.parameters)}

    def to_dict(self) -> dict[str, Any]:
        """All but the numbers."""
        return {"name": self.name, "symbol": self.symbol, "kind": self.kind, "layer": self.layer,
                "component": self.component, "formula": self.formula.to_dict(), "inputs": list(self.inputs),
                "parameters": list(self.parameters), "shape": list(self.shape),
                "input_shapes": {name: list(shape) for name, shape in self.input_shapes.items()}}


class ForwardPass(NamedSteps[Step]):
    """The steps in order; `passed["Q_0"]` is a step by its name."""

    def __init__(self, model: MiniBERT, ids: IntArray, tokens: list[str] | None, steps: list[Step],
                 specs: list[StepSpec], cache: Cache):
        super().__init__(steps)
        self.model, self.ids, self.tokens = model, ids, tokens
        self.specs, self.cache = specs, cache             # for the backward pass

    def to_dict(self) -> dict[str, Any]:
        return {"tokens": self.tokens, "ids": self.ids.tolist(), "steps": [step.to_dict() for step in self.steps]}


def step_through_forward_pass(model: MiniBERT, tokenizer: WordPieceTokenizer, text: str, *,
                              mask: Sequence[int] = ()) -> ForwardPass:
    """The forward pass of one text; the tokens at the positions `mask` are replaced by [MASK]."""
    sentence = read_sentence(model, tokenizer, text, mask=mask)
    return forward_pass(model, sentence.ids, sentence.tokens)


def forward_pass(model: MiniBERT, ids: npt.ArrayLike, tokens: list[str] | None = None) -> ForwardPass:
    """The forward pass of one sequence of ids (T,)."""
    model = eval_mode(model)
    row = np.asarray(ids)
    batch = check_ids(row[None] if row.ndim == 1 else row, model.config.vocab_size, "ids", "the vocabulary")
    if len(batch) != 1:
        raise InputError(f"A pass is stepped through for one sequence, not for {len(batch)}.")
    shown, cache = watched_values(model, batch)
    specs = steps_of(model)
    notation = Notation(specs)
    steps = [Step("tokens", "ids", "tokens", None, "embeddings", Formula(("ids = tokenize(text)",)), (), (), batch[0])]
    values: dict[str, Array] = {**shown, "tokens": batch[0]}
    for spec in specs:
        inputs = spec.inputs or ("tokens",)
        names = (*inputs, *(name for _, name in spec.parameters))
        arrays = {name: values[name] if name in values else model.params[name] for name in names}
        steps.append(Step(spec.name, spec.symbol, spec.kind, spec.layer, spec.component,
                          Formula(notation.forward(spec)), inputs, tuple(name for _, name in spec.parameters),
                          values[spec.name], Operands(arrays, dict(spec.parameters), _constants(model.config))))
    return ForwardPass(model, batch[0], tokens, steps, specs, cache)


def watched_values(model: MiniBERT, batch: IntArray) -> tuple[dict[str, Array], Cache]:
    """Every value of a pass over one sequence (1, T), without the batch axis, and the cache for its backward."""
    values: dict[str, Array] = {}
    run = model.forward if has_head(model) else model.encode
    _, cache = run(batch, watch=recorded(values, one_sequence))
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
    return CELLS[step.kind](step, index)


def _constants(config: ModelConfig) -> Mapping[str, float]:
    return {"eps": config.layernorm_eps, "sqrt(d_k)": sqrt(config.head_size)}
