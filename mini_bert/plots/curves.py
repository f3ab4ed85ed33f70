"""Figures of lines: training, gradients by layer, weights over time, probes by layer."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .style import COLOURS, Picture, draw_line, label_cells, new_figure, single_axes, styled

Series = Sequence[float]


@styled
def plot_training_curves(records: Sequence[Mapping[str, Any]], baselines: Mapping[str, float] | None = None,
                         reference: Mapping[str, Series] | None = None) -> Picture:
    """A run's log, line by line: losses against what guessing loses, learning rate, norm of the gradient.

    `reference` is a curve to compare with: tokens, mean, and low and high as its band, NaN where there is none. What
    is missing in a record, or is no number, is a gap.
    """
    tokens, raw, smoothed, measured, rates, norms = (
        np.array([_number(record.get(name)) for record in records])
        for name in ("tokens", "loss", "smoothed_loss", "eval_loss", "learning_rate", "grad_norm"))
    trained = np.where(np.isfinite(raw) & np.isfinite(smoothed), smoothed, raw)
    drawn = np.isfinite(tokens) & (np.isfinite(trained) | np.isfinite(measured))
    if not drawn.any():
        raise ValueError("There is no loss in the records to draw.")
    figure = new_figure(6.8, 6.0)
    loss, rate, norm = figure.subplots(3, 1, sharex=True, height_ratios=(3, 1, 1))
    if reference is not None:
        _draw_reference(loss, reference)
    for axes, values, number, style in (
            (loss, trained, 0, {"label": "training"}), (rate, rates, 0, {}), (norm, norms, 0, {}),
            (loss, measured, 1, {"label": "held out", "marker": "o", "markersize": 3})):
        there = np.isfinite(tokens) & np.isfinite(values)
        if there.any():
            draw_line(axes, tokens[there], values[there], number, **style)
    last = float(tokens[drawn].max())
    for name, value in (baselines or {}).items():
        loss.axhline(value, color="#666666", linewidth=0.8, linestyle=":")
        loss.annotate(name, (last, value), ha="right", va="bottom", fontsize=8, color="#444444")
    loss.set_xlim(0, max(last, 1.0))
    loss.legend()
    loss.set(ylabel="loss")
    rate.set(ylabel="learning rate")
    norm.set(ylabel="gradient norm", xlabel="tokens")
    return figure


def _number(value: Any) -> float:
    known = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e30
    return float(value) if known else float("nan")


def _draw_reference(axes: Any, reference: Mapping[str, Series]) -> None:
    tokens, mean, low, high = (np.asarray(reference[key], np.float64) for key in ("tokens", "mean", "low", "high"))
    band = np.isfinite(low) & np.isfinite(high)
    if band.any():
        axes.fill_between(tokens[band], low[band], high[band], color="#bbbbbb", alpha=0.5)
    if len(tokens):
        axes.plot(tokens, mean, color="#777777", linewidth=1.0, label="reference run")


@styled
def plot_gradient_flow(gradients: Mapping[str, float] | Mapping[str, npt.NDArray[Any]],
                       step: int | None = None) -> Picture:
    """How large the gradient is on its way back: a bar a layer or parameter, from the input to the output.

    Values are norms, or arrays, whose norms are taken.
    """
    norms = {name: float(np.linalg.norm(np.asarray(value, np.float64))) for name, value in gradients.items()}
    if not norms:
        raise ValueError("There are no gradients to draw.")
    figure, axes = single_axes(max(5.0, 0.24 * len(norms) + 1.5), 3.6)
    axes.bar(range(len(norms)), list(norms.values()), color=COLOURS[0])
    if max(norms.values()) > 100 * min(norms.values()) > 0:
        axes.set_yscale("log")            # bars of about the same height are compared from zero
    label_cells(axes, list(norms))
    axes.set(title="gradient flow" + ("" if step is None else f" at step {step:,}"), ylabel="norm of the gradient")
    return figure


@styled
def plot_weight_evolution(steps: Series, values: Mapping[str, Series], what: str = "distance from the first checkpoint",
                          ) -> Picture:
    """One line a parameter, or a group of them, over the steps of training."""
    figure, axes = single_axes()
    for number, (name, series) in enumerate(values.items()):
        draw_line(axes, steps, series, number, name)
    axes.set(xlabel="step", ylabel=what)
    axes.legend(ncols=2, fontsize=7)
    return figure


@styled
def plot_loss_components(steps: Series, shares: Mapping[str, Series]) -> Picture:
    """What the loss asks of each component over the steps: its share of the gradient's square; they add up to 1."""
    if not len(steps) or not shares:
        raise ValueError("There are no shares of components to draw.")
    figure, axes = single_axes()
    for number, (name, series) in enumerate(shares.items()):
        draw_line(axes, steps, series, number, name, marker="o", markersize=3)
    axes.set(xlabel="step", ylabel="share of the gradient's square", ylim=(0, 1.02))
    axes.legend(ncols=2, fontsize=7)
    return figure


@styled
def plot_probe_accuracy(layers: Sequence[str], accuracy: Mapping[str, Series],
                        intervals: Mapping[str, Series] | None = None,
                        baselines: Mapping[str, float] | None = None) -> Picture:
    """Accuracy by layer, a line a model or probe, with intervals as bars; levels are baselines that have no layers."""
    figure, axes = single_axes()
    for number, (name, values) in enumerate(accuracy.items()):
        draw_line(axes, range(len(layers)), values, number, name, marker="o", markersize=4)
        half = (intervals or {}).get(name)
        if half is not None:
            axes.errorbar(range(len(layers)), values, yerr=half, fmt="none", ecolor=COLOURS[number % len(COLOURS)],
                          capsize=3)
    for name, value in (baselines or {}).items():
        axes.axhline(value, color="#666666", linewidth=0.8, linestyle=":")
        axes.annotate(name, (len(layers) - 1, value), ha="right", va="bottom", fontsize=8, color="#444444")
    label_cells(axes, layers)
    axes.set(ylabel="accuracy")
    axes.legend()
    return figure


@styled
def plot_spectrum(values: Mapping[str, Series]) -> Picture:
    """Singular values of matrices, the largest first and each divided by it."""
    figure, axes = single_axes()
    for number, (name, series) in enumerate(values.items()):
        spectrum = np.sort(np.asarray(series, np.float64))[::-1]
        draw_line(axes, range(1, len(spectrum) + 1), spectrum / spectrum[0], number, name)
    axes.set(xlabel="singular value", ylabel="share of the largest", ylim=(0, 1.02))
    axes.legend(ncols=2, fontsize=7)
    return figure
