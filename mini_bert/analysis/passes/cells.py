"""The exact sum behind one number of a forward step.

Terms are worked out in float64 from the model's numbers. Their total differs from the model's number only by its
rounding; both are given.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ...core.arrays import Array
from ...core.formulas import Formula, Terms
from ...evaluation.result import Result
from .formula_values import evaluate
from .formulas import Equations

Index = tuple[int, ...]


class Factor(NamedTuple):
    """A number and its position, such as W_Q_0[3,7]."""

    name: str
    value: float


class Term(NamedTuple):
    """A product of factors."""

    factors: tuple[Factor, ...]
    value: float


@dataclass(frozen=True)
class Cell(Result):
    """A number of a step and how it comes about.

    `total` is the sum of the terms unless `expression` says otherwise; `value` is what the model has.
    """

    step: str
    index: Index
    expression: str
    terms: list[Term]
    quantities: dict[str, float]          # what the terms are made from: a mean, a maximum, ...
    total: float
    value: float


@dataclass(frozen=True)
class Operands:
    """What a step is computed from."""

    formula: Formula
    arrays: Mapping[str, npt.NDArray[Any]]
    roles: Mapping[str, str]                  # role of a parameter -> its name
    symbols: Mapping[str, str]                # name of a value or parameter -> its symbol in formulas
    constants: Mapping[str, float]
    rows: Mapping[str, npt.NDArray[Any]]      # which rows lookups read
    heads: int

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.arrays[name]

    def evaluate(self, equations: Sequence[str]) -> npt.NDArray[Any]:
        """The value of the formula's text in float64."""
        names = {self.symbols.get(name, name): array for name, array in self.arrays.items()}
        return evaluate(equations, {**self.constants, **self.rows, **self.formula.functions, **names}, self.heads)


class ComputedStep(Protocol):
    """A step, as far as its cells are concerned."""

    @property
    def name(self) -> str: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...
    @property
    def formula(self) -> Equations: ...
    @property
    def array(self) -> npt.NDArray[Any]: ...
    @property
    def operands(self) -> Operands | None: ...


def _of(step: ComputedStep) -> Operands:
    assert step.operands is not None      # explain_cell has refused the step without
    return step.operands


def _cell(step: ComputedStep, index: Index, expression: str, terms: list[Term], total: float | None = None,
          **quantities: float) -> Cell:
    value = float(step.array[index])
    return Cell(step.name, index, expression, terms, quantities,
                sum(term.value for term in terms) if total is None else total, value)


def _at(name: str, *index: int) -> str:
    return f"{name}[{','.join(map(str, index))}]"


def _single(name: str, value: float) -> Term:
    return Term((Factor(name, value),), value)


def _products(left: list[str], x: Array, right: list[str], y: Array) -> list[Term]:
    xs, ys = x.astype(np.float64).tolist(), y.astype(np.float64).tolist()
    return [Term((Factor(a, u), Factor(b, v)), u * v) for a, u, b, v in zip(left, xs, right, ys, strict=True)]


# -------------------------------------------------------------------- one function for each kind of terms


def _row_of_table(step: ComputedStep, index: Index) -> Cell:
    operands, (i, j) = _of(step), index
    table, read = operands.roles["E"], operands.formula.rows
    row = int(operands.rows[read][i])
    return _cell(step, index, f"{table}[{read}[{i}],{j}]",
                 [_single(_at(table, row, j), float(operands[table][row, j]))], row=float(row))


def _sum(step: ComputedStep, index: Index) -> Cell:
    names = [_at(name, *index) for name in step.inputs]
    values = [float(_of(step)[name][index]) for name in step.inputs]
    return _cell(step, index, " + ".join(names), [_single(*term) for term in zip(names, values, strict=True)])


def _linear(step: ComputedStep, index: Index) -> Cell:
    """Of plain rows, to heads (the column is one of all heads' columns) and from heads (the row is joined)."""
    operands, x = _of(step), _of(step)[step.inputs[0]]
    W = operands.roles["W"]
    column = index[-1] if len(index) == 2 else index[0] * step.array.shape[2] + index[2]
    i = index[-2]
    if x.ndim == 2:
        row, names = x[i], [_at(step.inputs[0], i, k) for k in range(x.shape[1])]
    else:
        row = x[:, i].reshape(-1)
        names = [_at(step.inputs[0], a, i, k) for a in range(x.shape[0]) for k in range(x.shape[2])]
    terms = _products(names, row, [_at(W, k, column) for k in range(len(row))], operands[W][:, column])
    expression = f"sum over k of {step.inputs[0]}[{i},k] {W}[k,{column}]"
    if "b" in operands.roles:
        b = operands.roles["b"]
        terms.append(_single(_at(b, column), float(operands[b][column])))
        expression += f" + {_at(b, column)}"
    return _cell(step, index, expression, terms)


def _scores(step: ComputedStep, index: Index) -> Cell:
    (q, k, *biases), (a, i, j) = step.inputs, index
    Q, K, root = _of(step)[q], _of(step)[k], sqrt(_of(step).constants["d_k"])
    dims = range(Q.shape[2])
    terms = _products([_at(q, a, i, n) for n in dims], Q[a, i], [_at(k, a, j, n) for n in dims], K[a, j])
    product = sum(term.value for term in terms)
    added = {_at(name, *index): float(np.broadcast_to(_of(step)[name], step.array.shape)[index]) for name in biases}
    expression = f"(sum over n of {q}[{a},{i},n] {k}[{a},{j},n]) / sqrt(d_k)" + "".join(f" + {name}" for name in added)
    quantities = {"product": product, "sqrt(d_k)": root, **added}
    if np.isneginf(step.array[index]):
        return _cell(step, index, f"minus infinity: {i} may not see {j}", terms, -np.inf, **quantities)
    return _cell(step, index, expression, terms, product / root + sum(added.values()), **quantities)


def _softmax(step: ComputedStep, index: Index) -> Cell:
    (scores,), (*row, j) = step.inputs, index
    s = _of(step)[scores][tuple(row)].astype(np.float64)
    top = float(s.max())
    exps = np.exp(s - top)
    terms = [_single(f"exp({_at(scores, *row, k)} - max)", value) for k, value in enumerate(exps.tolist())]
    total = float(exps.sum())
    return _cell(step, index, f"exp({_at(scores, *index)} - max) / sum of the terms", terms, float(exps[j]) / total,
                 max=top, numerator=float(exps[j]), denominator=total)


def _weighted_sum(step: ComputedStep, index: Index) -> Cell:
    (weights, v), (a, i, j) = step.inputs, index
    A, V = _of(step)[weights], _of(step)[v]
    keys = range(V.shape[1])
    terms = _products([_at(weights, a, i, k) for k in keys], A[a, i], [_at(v, a, k, j) for k in keys], V[a, :, j])
    return _cell(step, index, f"sum over k of {weights}[{a},{i},k] {v}[{a},k,{j}]", terms)


def _layernorm(step: ComputedStep, index: Index) -> Cell:
    operands, (i, j) = _of(step), index
    x = operands[step.inputs[0]][i].astype(np.float64)
    gamma, beta = operands.roles["gamma"], operands.roles["beta"]
    mean, variance, eps = float(x.mean()), float(x.var()), operands.constants["eps"]
    sigma = sqrt(variance + eps)
    normed, scale = (float(x[j]) - mean) / sigma, float(operands[gamma][j])
    terms = [Term((Factor(_at(gamma, j), scale), Factor("normalised", normed)), scale * normed),
             _single(_at(beta, j), float(operands[beta][j]))]
    return _cell(step, index, f"{_at(gamma, j)} ({_at(step.inputs[0], i, j)} - mean) / sqrt(variance + eps) "
                              f"+ {_at(beta, j)}", terms, x=float(x[j]), mean=mean, variance=variance, eps=eps,
                 sigma=sigma, normalised=normed)


def _by_formula(step: ComputedStep, index: Index) -> Cell:
    """Any other step: the value of its formula at this cell, with the numbers of its inputs there."""
    value = float(np.broadcast_to(_of(step).evaluate(step.formula.equations), step.array.shape)[index])
    inputs = {name: _of(step)[name] for name in step.inputs if _of(step)[name].shape == step.array.shape}
    return _cell(step, index, step.formula.equations[0].split(" = ", 1)[1], [_single(step.formula.text, value)],
                 **{_at(name, *index): float(array[index]) for name, array in inputs.items()})


_EXPLAINED: dict[Terms, Callable[[ComputedStep, Index], Cell]] = {
    Terms.FORMULA: _by_formula, Terms.ROW: _row_of_table, Terms.INPUTS: _sum, Terms.LINEAR: _linear,
    Terms.SCORES: _scores, Terms.SOFTMAX: _softmax, Terms.WEIGHTED: _weighted_sum, Terms.NORMALISED: _layernorm}


def cell_of(step: ComputedStep, index: Index) -> Cell:
    """How the number at `index` comes about."""
    return _EXPLAINED[_of(step).formula.terms](step, index)
