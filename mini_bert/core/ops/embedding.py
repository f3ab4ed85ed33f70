"""Embedding: row lookup, and its transpose, the scatter-add.

    y_n  = W[ids_n]
    dW_v = sum of dy_n over all n with ids_n = v                      derivation: docs/math/embedding.md
"""

import numpy as np

from ..arrays import Array, IntArray
from ..formulas import Formula, Terms
from ..gradcheck import Check


def embedding_forward(W: Array, ids: IntArray) -> tuple[Array, tuple[IntArray, tuple[int, ...]]]:
    """W (V, H), ids (N,) -> y (N, H)."""
    y = W[ids]
    return y, (ids, W.shape)


def embedding_backward(dy: Array, cache: tuple[IntArray, tuple[int, ...]]) -> Array:
    """dy (N, H) -> dW (V, H)."""
    ids, shape = cache
    dW = np.zeros(shape, dy.dtype)
    rows, sums = summed_rows(dy, ids)
    dW[rows] = sums
    return dW


def summed_rows(dy: Array, ids: IntArray) -> tuple[IntArray, Array]:
    """The distinct ids, and the sum of dy (N, H) over each: the rows of dW that are not zero.

    Equal ids are brought together by sorting and summed in runs: `dW[ids] += dy` would keep one
    of several equal ids, and np.add.at is many times slower.
    """
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))      # where a new id begins
    return ordered[starts], np.add.reduceat(dy[order], starts, axis=0)


def lookup(name: str, ids: str) -> Formula:
    """Rows of a table at `ids`."""
    return Formula(name, f"{{E}}[{ids}]", (), {"E": f"scatter(d{{y}}, {ids})"},
                   gradient_where=("scatter(a, i)[v] = sum(a[i = v])",), rows=ids, terms=Terms.ROW, page="embedding",
                  back="Only the rows that were read can have mattered; a row that was read twice gets both gradients.",
                   why="A word is no number to compute with; its row of the table is a vector, which training moves.")


FORMULA = lookup("lookup", "ids")
CHECKS = [
    Check("repeated ids", lambda rng: [rng.standard_normal((5, 3))], ids=np.array([4, 0, 4, 2, 4, 0])),
    Check("one id", lambda rng: [rng.standard_normal((2, 3))], ids=np.array([1])),
]
