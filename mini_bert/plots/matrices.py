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
    _require_square(weights, len(tokens))
    figure, axes = single_axes(0.32 * len(tokens) + 2.2, 0.28 * len(tokens) + 1.4)
    image = draw_matrix(axes, weights, low=0.0, high=1.0)
    label_cells(axes, tokens, tokens)
    axes.set(title=f"layer {layer}, head {head}", xlabel="key", ylabel="query")
    figure.colorbar(image, ax=axes, label="weight")
    return figure


@styled
def plot_attention_grid(attention_weights: npt.ArrayLike, tokens: Sequence[str]) -> Picture:
    """All heads of all layers, (L, A, T, T): one row of small matrices per layer."""
    weights = np.asarray(attention_weights)
    if weights.ndim != 4:
        raise ValueError(f"attention_weights must have the shape (L, A, T, T), not {weights.shape}.")
    _require_square(weights[0, 0], len(tokens))
    L, A = weights.shape[:2]
    figure = new_figure(1.6 * A + 1.6, 1.6 * L + 0.8)
    for number, axes in enumerate(figure.subplots(L, A, squeeze=False).flat):
        layer, head = divmod(number, A)
        image = draw_matrix(axes, weights[layer, head], low=0.0, high=1.0)
        label_cells(axes, [], tokens if head == 0 and len(tokens) <= 2 * _LABELLED else [], size=5.0)
        axes.set_title(f"layer {layer}, head {head}", fontsize=7)
    figure.colorbar(image, ax=figure.axes, label="weight", fraction=0.03)
    return figure


@styled
def plot_layer_similarity(similarity: npt.ArrayLike, layers: Sequence[str]) -> Picture:
    """A matrix of similarities between layers, with a number in each cell."""
    values = np.asarray(similarity, np.float64)
    _require_square(values, len(layers))
    figure, axes = single_axes(0.62 * len(layers) + 2.4, 0.5 * len(layers) + 1.5)
    image = draw_matrix(axes, values, low=min(0.0, float(values.min())), high=1.0)
    label_cells(axes, layers, layers)
    _numbers(axes, values, "{:.2f}", middle=0.5)
    axes.set_title("similarity of layers (CKA)")
    figure.colorbar(image, ax=axes)
    return figure


@styled
def plot_confusion_matrix(counts: npt.ArrayLike, labels: Sequence[str]) -> Picture:
    """True labels (rows) against predicted ones (columns), as shares of each row."""
    values = np.asarray(counts, np.float64)
    _require_square(values, len(labels))
    shares = values / np.maximum(values.sum(axis=1, keepdims=True), 1)
    figure, axes = single_axes(0.42 * len(labels) + 2.6, 0.36 * len(labels) + 1.5)
    image = draw_matrix(axes, shares, low=0.0, high=1.0)
    label_cells(axes, labels, labels)
    _numbers(axes, shares, "{:.0%}", middle=0.5)
    axes.set(title="confusion matrix", xlabel="predicted", ylabel="true")
    figure.colorbar(image, ax=axes, label="share of the true label")
    return figure


@styled
def plot_matrix(values: npt.ArrayLike, title: str, rows: Sequence[str] | None = None) -> Picture:
    """Any signed matrix: activations, weights or gradients."""
    matrix = np.atleast_2d(np.asarray(values, np.float64))
    figure, axes = single_axes(7.0, min(7.0, 0.22 * len(matrix) + 1.4))
    image = draw_matrix(axes, matrix, signed=True)
    label_cells(axes, rows=rows)
    axes.set(title=title, xlabel="feature")
    figure.colorbar(image, ax=axes)
    return figure


def _require_square(matrix: Array, names: int) -> None:
    if matrix.shape != (names, names):
        raise ValueError(f"A matrix of shape {matrix.shape} does not fit {names} names.")


def _numbers(axes: object, values: Array, form: str, middle: float) -> None:
    if len(values) <= _LABELLED:
        for (i, j), value in np.ndenumerate(values):
            axes.text(j, i, form.format(value), ha="center", va="center", fontsize=7,   # type: ignore[attr-defined]
                      color="black" if value > middle else "white")
