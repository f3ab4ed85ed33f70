"""Figures of matrices: attention, similarity of layers, confusion of labels."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .style import Array, Picture, draw_matrix, label_cells, new_figure, single_axes, styled

_LABELLED = 12                # rows of the largest matrix whose cells have room for numbers


@styled
def visualize_attention_patterns(attention_weights: npt.ArrayLike, tokens: Sequence[str], layer: int = 0,
                                 head: int = 0) -> Picture:
    """One head: the attention from each token (row) to each token (column).

    `attention_weights` has shape (T, T), (A, T, T) or (L, A, T, T).
    """
    weights = np.asarray(attention_weights)
    if weights.ndim == 4:
        weights = weights[layer]
    if weights.ndim == 3:
        weights = weights[head]
    return _square(weights, tokens, (0.32, 2.2), (0.28, 1.4), "weight", title=f"layer {layer}, head {head}",
                   xlabel="key", ylabel="query")


@styled
def plot_attention_grid(attention_weights: npt.ArrayLike, tokens: Sequence[str]) -> Picture:
    """All heads of all layers, (L, A, T, T): one row of small matrices per layer, from each token (row) to each token
    (column)."""
    weights = np.asarray(attention_weights)
    if weights.ndim != 4:
        raise ValueError(f"attention_weights must have the shape (L, A, T, T), not {weights.shape}.")
    _require_square(weights[0, 0], len(tokens))
    L, A = weights.shape[:2]
    named = tokens if len(tokens) <= 2 * _LABELLED else []
    figure = new_figure(1.6 * A + 1.6, 1.6 * L + 0.8)
    for number, axes in enumerate(figure.subplots(L, A, squeeze=False).flat):
        layer, head = divmod(number, A)
        image = draw_matrix(axes, weights[layer, head])
        label_cells(axes, named if layer == L - 1 else [], named if head == 0 else [], size=5.0)
        axes.set_title(f"layer {layer}, head {head}", fontsize=7)
    figure.colorbar(image, ax=figure.axes, label="weight", fraction=0.03)
    return figure


@styled
def plot_layer_similarity(similarity: npt.ArrayLike, layers: Sequence[str]) -> Picture:
    """A matrix of similarities between layers, with a number in each cell."""
    return _square(np.asarray(similarity, np.float64), layers, (0.62, 2.4), (0.5, 1.5), "", "{:.2f}",
                   title="similarity of layers (CKA)")


@styled
def plot_confusion_matrix(counts: npt.ArrayLike, labels: Sequence[str]) -> Picture:
    """True labels (rows) against predicted ones (columns), as shares of each row."""
    values = np.asarray(counts, np.float64)
    shares = values / np.maximum(values.sum(axis=-1, keepdims=True), 1)
    return _square(shares, labels, (0.42, 2.6), (0.36, 1.5), "share of the true label", "{:.0%}",
                   title="confusion matrix", xlabel="predicted", ylabel="true")


def _require_square(matrix: Array, names: int) -> None:
    if matrix.shape != (names, names):
        raise ValueError(f"A matrix of shape {matrix.shape} does not fit {names} names.")


def _square(values: Array, names: Sequence[str], width: tuple[float, float], height: tuple[float, float], legend: str,
            form: str = "", **labels: str) -> Picture:
    """A matrix with the same names for rows and columns, and numbers in its cells where they have room.

    Width and height are inches for each name, and for the rest of the figure.
    """
    n = len(names)
    _require_square(values, n)
    figure, axes = single_axes(width[0] * n + width[1], height[0] * n + height[1])
    image = draw_matrix(axes, values, low=min(0.0, float(values.min())))
    label_cells(axes, names, names)
    for (i, j), value in np.ndenumerate(values) if form and n <= _LABELLED else ():
        axes.text(j, i, form.format(value), ha="center", va="center", fontsize=7,
                  color="black" if value > 0.5 else "white")
    axes.set(**labels)
    figure.colorbar(image, ax=axes, label=legend)
    return figure
