"""The value of a formula's text, worked out with NumPy by the notation's own rules; for tests of formulas."""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from mini_bert.analysis.passes.step_formulas import parameter_symbol
from mini_bert.core.ops.gelu import normal_cdf
from mini_bert.core.ops.softmax import softmax_forward


class Value:
    """An array, with @ for what stands side by side: a matrix product, or a number times an array."""

    def __init__(self, array):
        self.array = np.asarray(array, np.float64)

    def __matmul__(self, other):
        a, b = self.array, raw(other)
        return Value(a * b if a.ndim == 0 or b.ndim == 0 else a @ b)

    def __rmatmul__(self, other):
        return Value(other) @ self

    def __getitem__(self, rows):
        return Value(self.array[raw(rows).astype(int)])

    def __neg__(self):
        return Value(-self.array)

    @property
    def T(self):
        return Value(self.array.swapaxes(-1, -2))


def raw(value) -> np.ndarray:
    return value.array if isinstance(value, Value) else np.asarray(value, np.float64)


for sign, function in {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "pow": np.power,
                       "gt": np.greater}.items():
    setattr(Value, f"__{sign}__", lambda self, other, function=function: Value(function(self.array, raw(other))))
    setattr(Value, f"__r{sign}__", lambda self, other, function=function: Value(function(raw(other), self.array)))


def python(text: str) -> str:
    """The same formula in Python's notation: side by side is @, ^T is .T, a bracket by itself is a parenthesis."""
    written, brackets, before = [], [], ""
    for space, token in re.findall(r"(\s*)([A-Za-z]\w*|\d+(?:\.\d+)?|\^T\b|.)", text):
        if space and (before[-1:].isalnum() or before in (")", "]", "^T")) and (token[0].isalnum() or token in "(["):
            written.append("@")
        if token == "[":
            brackets.append("]" if written and not space else ")")
            token_out = "[" if brackets[-1] == "]" else "("
        elif token == "]":
            token_out = brackets.pop()
        else:
            token_out = {"^T": ".T", "^": "**"}.get(token, token)
        written.append(token_out)
        before = token
    return " ".join(written)


def evaluate(equations: Sequence[str], names: Mapping[str, np.ndarray], model, parameters: Sequence[str],
             ids: np.ndarray, **more):
    """The right side of the first equation; the others say what names mean."""
    heads = model.config.num_heads

    def split(x):
        rows = raw(x)
        return Value(rows.reshape(len(rows), heads, -1).transpose(1, 0, 2))

    def join(x):
        grid = raw(x)
        return Value(grid.transpose(1, 0, 2).reshape(grid.shape[1], -1))

    def along(function):
        return lambda x: Value(function(raw(x), axis=-1, keepdims=True))

    known = {"split": split, "join": join, "mean": along(np.mean), "sum": along(np.sum),
             "softmax": lambda x: Value(softmax_forward(raw(x))[0]),
             "max": lambda x, y: Value(np.maximum(raw(x), y)), "exp": lambda x: Value(np.exp(raw(x))),
             "sqrt": lambda x: Value(np.sqrt(raw(x))), "tanh": lambda x: Value(np.tanh(raw(x))),
             "Phi": lambda x: Value(normal_cdf(raw(x))[0]), "phi": lambda x: Value(np.exp(-raw(x) ** 2 / 2)
                                                                                 / np.sqrt(2 * np.pi)),
             "pi": Value(np.pi), "eps": Value(model.config.layernorm_eps), "d_k": Value(model.config.head_size),
             "ids": ids, "t": np.arange(len(ids)), "types": np.zeros(len(ids), int)}
    known |= {parameter_symbol(name): Value(model.params[name]) for name in parameters if "_ln" not in name
              and not name.startswith("ln")}
    known |= {symbol: Value(array) for symbol, array in names.items()} | more
    meanings = [equation.split(" = ", 1) for equation in equations[1:]]
    meanings = [(left, python(right)) for left, right in meanings if left.isidentifier()]
    while meanings:                               # first those whose names are known
        left, right = meanings.pop(0)
        if set(re.findall(r"[A-Za-z]\w*", right)) & {name for name, _ in meanings}:
            meanings.append((left, right))
        else:
            known[left] = eval(right, {}, known)
    return raw(eval(python(equations[0].split(" = ", 1)[1]), {}, known))
