"""Figures of lines: training, gradients by layer, weights over time, probes by layer."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .look import COLOURS, Picture, in_this_look, line, name_cells, one, picture

Series = Sequence[float]


@in_this_look
def plot_training_curves(records: Sequence[Mapping[str, Any]], baselines: Mapping[str, float] | None = None,
                         reference: Mapping[str, Series] | None = None) -> Picture:
    """A run's log, line by line: losses against what guessing loses, learning rate, norm of the gradient.

    `reference` is a curve to compare with: tokens, mean, and low and high as its band.
    """
    trained = [r for r in records if r.get("loss") is not None]
    measured = [r for r in records if r.get("eval_loss") is not None]
    if not trained and not measured:
        raise ValueError("There is no loss in the records to draw.")
    figure = picture(6.8, 6.0)
    loss, rate, norm = figure.subplots(3, 1, sharex=True, height_ratios=(3, 1, 1))
    if reference is not None:
        loss.fill_between(reference["tokens"], reference["low"], reference["high"], color="#bbbbbb", alpha=0.5)
        loss.plot(reference["tokens"], reference["mean"], color="#777777", linewidth=1.0, label="reference run")
    if trained:
        line(loss, [r["tokens"] for r in trained], [r.get("smoothed_loss", r["loss"]) for r in trained], 0, "training")
        line(rate, [r["tokens"] for r in trained], [r["learning_rate"] for r in trained], 0)
        line(norm, [r["tokens"] for r in trained], [r["grad_norm"] for r in trained], 0)
    if measured:
        line(loss, [r["tokens"] for r in measured], [r["eval_loss"] for r in measured], 1, "held out", marker="o",
             markersize=3)
    last = max(r["tokens"] for r in (*trained, *measured))
    for name, value in (baselines or {}).items():
        loss.axhline(value, color="#666666", linewidth=0.8, linestyle=":")
        loss.annotate(name, (last, value), ha="right", va="bottom", fontsize=8, color="#444444")
    loss.set_xlim(0, last)
    loss.legend()
    loss.set(ylabel="loss")
    rate.set(ylabel="learning rate")
    norm.set(ylabel="gradient norm", xlabel="tokens")
    return figure


@in_this_look
def plot_gradient_flow(gradients: Mapping[str, float] | Mapping[str, npt.NDArray[Any]],
                       step: int | None = None) -> Picture:
    """How large the gradient is on its way back: a bar a layer or parameter, from the input to the output.

    Values are norms, or arrays, whose norms are taken.
    """
    norms = {name: float(np.linalg.norm(np.asarray(value, np.float64))) for name, value in gradients.items()}
    if not norms:
        raise ValueError("There are no gradients to draw.")
    figure, axes = one(max(5.0, 0.24 * len(norms) + 1.5), 3.6)
    axes.bar(range(len(norms)), list(norms.values()), color=COLOURS[0])
    if max(norms.values()) > 100 * min(norms.values()) > 0:
        axes.set_yscale("log")            # bars of about the same height are compared from zero
    name_cells(axes, list(norms))
    axes.set(title="gradient flow" + ("" if step is None else f" at step {step:,}"), ylabel="norm of the gradient")
    return figure


@in_this_look
def plot_weight_evolution(steps: Series, values: Mapping[str, Series], what: str = "distance from the first checkpoint",
                          ) -> Picture:
    """One line a parameter, or a group of them, over the steps of training."""
    figure, axes = one()
    for number, (name, series) in enumerate(values.items()):
        line(axes, steps, series, number, name)
    axes.set(xlabel="step", ylabel=what)
    axes.legend(ncols=2, fontsize=7)
    return figure


@in_this_look
def plot_probe_accuracy(layers: Sequence[str], accuracy: Mapping[str, Series],
                        intervals: Mapping[str, Series] | None = None,
                        baselines: Mapping[str, float] | None = None) -> Picture:
    """Accuracy by layer, a line a model or probe, with intervals as bars; levels are baselines that have no layers."""
    figure, axes = one()
    for number, (name, values) in enumerate(accuracy.items()):
        line(axes, range(len(layers)), values, number, name, marker="o", markersize=4)
        half = (intervals or {}).get(name)
        if half is not None:
            axes.errorbar(range(len(layers)), values, yerr=half, fmt="none", ecolor=COLOURS[number % len(COLOURS)],
                          capsize=3)
    for name, value in (baselines or {}).items():
        axes.axhline(value, color="#666666", linewidth=0.8, linestyle=":")
        axes.annotate(name, (len(layers) - 1, value), ha="right", va="bottom", fontsize=8, color="#444444")
    name_cells(axes, layers)
    axes.set(ylabel="accuracy")
    axes.legend()
    return figure


@in_this_look
def plot_spectrum(values: Mapping[str, Series]) -> Picture:
    """Singular values of matrices, the largest first and each divided by it."""
    figure, axes = one()
    for number, (name, series) in enumerate(values.items()):
        spectrum = np.sort(np.asarray(series, np.float64))[::-1]
        line(axes, range(1, len(spectrum) + 1), spectrum / spectrum[0], number, name)
    axes.set(xlabel="singular value", ylabel="share of the largest", ylim=(0, 1.02))
    axes.legend(ncols=2, fontsize=7)
    return figure
