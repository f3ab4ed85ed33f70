"""The exact sum behind one number of a forward step.

Terms are worked out in float64 from the model's numbers. Their total differs from what the model has by its rounding
alone, which both being given shows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp, pi, sqrt, tanh
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ...core.arrays import Array
from ...core.ops.gelu import normal_cdf

Index = tuple[int, ...]


class Factor(NamedTuple):
    """A number and where it stands, such as W_Q_0[3,7]."""

    name: str
    value: float


class Term(NamedTuple):
    """A product of factors."""

    factors: tuple[Factor, ...]
    value: float


@dataclass(frozen=True)
class Cell:
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

    def to_dict(self) -> dict[str, Any]:
        return {"step": self.step, "index": list(self.index), "expression": self.expression,
                "terms": [{"factors": [factor._asdict() for factor in term.factors], "value": term.value}
                          for term in self.terms],
                "quantities": self.quantities, "total": self.total, "value": self.value}


@dataclass(frozen=True)
class Operands:
    """What a step is computed from."""

    arrays: Mapping[str, npt.NDArray[Any]]
    roles: Mapping[str, str]                  # role of a parameter -> its name
    constants: Mapping[str, float]

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.arrays[name]


class Computed(Protocol):
    """A step, as far as its cells are concerned."""

    @property
    def name(self) -> str: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...
    @property
    def array(self) -> npt.NDArray[Any]: ...
    @property
    def operands(self) -> Operands | None: ...


def _of(step: Computed) -> Operands:
    assert step.operands is not None      # explain_cell has refused the step without
    return step.operands


def _cell(step: Computed, index: Index, expression: str, terms: list[Term], total: float | None = None,
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


# -------------------------------------------------------------------- one function a kind of step


def _row_of_table(step: Computed, index: Index) -> Cell:
    operands, (i, j) = _of(step), index
    table = operands.roles["E"]
    row = int(operands["tokens"][i])
    return _cell(step, index, f"{table}[ids[{i}],{j}]", [_single(_at(table, row, j), float(operands[table][row, j]))],
                 id=float(row))


def _first_row(step: Computed, index: Index) -> Cell:
    table, j = _of(step).roles["E"], index[1]               # one text has token type 0 throughout
    return _cell(step, index, f"{table}[0,{j}]", [_single(_at(table, 0, j), float(_of(step)[table][0, j]))])


def _row_of_positions(step: Computed, index: Index) -> Cell:
    table, (i, j) = _of(step).roles["E"], index
    return _cell(step, index, f"{table}[{i},{j}]", [_single(_at(table, i, j), float(_of(step)[table][i, j]))])


def _sum(step: Computed, index: Index) -> Cell:
    names = [_at(name, *index) for name in step.inputs]
    values = [float(_of(step)[name][index]) for name in step.inputs]
    return _cell(step, index, " + ".join(names), [_single(*term) for term in zip(names, values, strict=True)])


def _linear(step: Computed, index: Index) -> Cell:
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


def _scores(step: Computed, index: Index) -> Cell:
    (q, k), (a, i, j) = step.inputs, index
    Q, K, root = _of(step)[q], _of(step)[k], _of(step).constants["sqrt(d_k)"]
    dims = range(Q.shape[2])
    terms = _products([_at(q, a, i, n) for n in dims], Q[a, i], [_at(k, a, j, n) for n in dims], K[a, j])
    product = sum(term.value for term in terms)
    return _cell(step, index, f"(sum over n of {q}[{a},{i},n] {k}[{a},{j},n]) / sqrt(d_k)", terms, product / root,
                 **{"product": product, "sqrt(d_k)": root})


def _softmax(step: Computed, index: Index) -> Cell:
    (scores,), (*row, j) = step.inputs, index
    s = _of(step)[scores][tuple(row)].astype(np.float64)
    top = float(s.max())
    exps = np.exp(s - top)
    terms = [_single(f"exp({_at(scores, *row, k)} - max)", value) for k, value in enumerate(exps.tolist())]
    total = float(exps.sum())
    return _cell(step, index, f"exp({_at(scores, *index)} - max) / sum of the terms", terms, float(exps[j]) / total,
                 max=top, numerator=float(exps[j]), denominator=total)


def _weighted_sum(step: Computed, index: Index) -> Cell:
    (weights, v), (a, i, j) = step.inputs, index
    A, V = _of(step)[weights], _of(step)[v]
    keys = range(V.shape[1])
    terms = _products([_at(weights, a, i, k) for k in keys], A[a, i], [_at(v, a, k, j) for k in keys], V[a, :, j])
    return _cell(step, index, f"sum over k of {weights}[{a},{i},k] {v}[{a},k,{j}]", terms)


def _layernorm(step: Computed, index: Index) -> Cell:
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


def _relu(step: Computed, index: Index) -> Cell:
    name, x = _at(step.inputs[0], *index), float(_of(step)[step.inputs[0]][index])
    return _cell(step, index, f"max({name}, 0)", [_single(f"max({name}, 0)", max(x, 0.0))], x=x)


def _gelu(step: Computed, index: Index) -> Cell:
    name, x = _at(step.inputs[0], *index), float(_of(step)[step.inputs[0]][index])
    share = float(normal_cdf(np.array([x]))[0][0])
    return _cell(step, index, f"{name} Phi({name})", [Term((Factor(name, x), Factor("Phi(x)", share)), x * share)],
                 **{"x": x, "Phi(x)": share, "phi(x)": exp(-x * x / 2) / sqrt(2 * pi)})


def _gelu_tanh(step: Computed, index: Index) -> Cell:
    name, x = _at(step.inputs[0], *index), float(_of(step)[step.inputs[0]][index])
    t = tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))
    return _cell(step, index, f"{name} (1 + t) / 2",
                 [Term((Factor(name, x), Factor("(1 + t) / 2", (1 + t) / 2)), x * (1 + t) / 2)], x=x, t=t)


CELLS: dict[str, Callable[[Computed, Index], Cell]] = {
    "lookup": _row_of_table, "type lookup": _first_row, "positions": _row_of_positions, "same": _sum, "sum": _sum,
    "sum of three": _sum, "linear": _linear, "to heads": _linear, "from heads": _linear, "scores": _scores,
    "softmax": _softmax, "weighted sum": _weighted_sum, "layernorm": _layernorm, "relu": _relu, "gelu": _gelu,
    "gelu tanh": _gelu_tanh}
