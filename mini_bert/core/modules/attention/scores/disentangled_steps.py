"""What disentangled attention computes, for the explorer."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ....arrays import Array
from ....formulas import Formula, StepSpec, sum_of
from .relative_table import distance_rows


def disentangled_steps(term: Any, Q: str, K: str) -> tuple[list[StepSpec], str]:
    """The steps of a `Disentangled` on the values named Q and K, and the name of its bias."""
    steps = list(term.table.steps())
    vectors, terms = steps[-1].name, 1 + (term.key is not None) + (term.query is not None)
    scale = f"sqrt({terms} d_k)"
    biases = []
    for part, made, rows, asks, name, title, symbols in (
            (term.key, "position_keys", "rows", Q, "content_to_position", "keys", ("K_p", "S_cp")),
            (term.query, "position_queries", "columns", K, "position_to_content", "queries", ("Q_p", "S_pc"))):
        if part is None:
            continue
        steps.append(part.step(made, f"Distances as {title}", symbols[0], vectors, "attention"))
        formula = Formula(name.replace("_", " "), f"by_{rows}({{0}} split({{1}})^T) / {scale}",
                          (f"to_{rows}(d{{y}}) split({{1}}) / {scale}", f"join(to_{rows}(d{{y}})^T {{0}}) / {scale}"),
                          page="deberta",
                          why="Content and position meet in terms of their own: what stands there, and how far away.",
                          functions=_functions(rows, term.table.reach, term.table.buckets))
        steps.append(StepSpec(name, f"Scores: {name.replace('_', ' ')}", symbols[1], formula, (asks, made), (),
                              "attention", ("key",)))
        biases.append(name)
    if len(biases) == 2:
        steps.append(StepSpec("relative_scores", "Scores of positions", "S_p", sum_of(2), tuple(biases), (),
                              "attention", ("key",)))
    steps.append(StepSpec("scaled_Q", "Queries, scaled", "Q_s", Formula(
        "scale", f"{{0}} / sqrt({terms})", (f"d{{y}} / sqrt({terms})",), page="deberta",
        why="The scores are a sum of several terms, which would otherwise be larger than one term alone."),
        (Q,), (), "attention"))
    return steps, "relative_scores" if len(biases) == 2 else biases[0]


def _functions(rows: str, reach: int, buckets: int) -> dict[str, Callable[[Array], Array]]:
    """From scores by distance (A, T, U) to scores by key (A, T, T), and back.

    The first axis of the T x T is the query's: by_rows reads the scores of the query's row, by_columns of the key's.
    """
    def places(T: int) -> Array:
        row = distance_rows(np.subtract.outer(np.arange(T), np.arange(T)), reach, buckets)
        return np.asarray(np.arange(row.min(), row.max() + 1) == row[:, :, None], np.float64)    # (T, T, U)

    asks = "aiu" if rows == "rows" else "aju"
    return {f"by_{rows}": lambda x: np.einsum(f"{asks},iju->aij", x, places(x.shape[1])),
            f"to_{rows}": lambda dy: np.einsum(f"aij,iju->{asks}", dy, places(dy.shape[1]))}
