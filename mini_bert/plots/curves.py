"""Figures of lines and bars: training curves, gradients by layer, weights over time, probes by layer."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..palette import COLOURS
from .style import Picture, draw_level, draw_line, label_cells, new_figure, single_axes, styled

Series = Sequence[float]


@styled
def plot_training_curves(records: Sequence[Mapping[str, Any]], baselines: Mapping[str, float] | None = None,
                         reference: Mapping[str, Series] | None = None) -> Picture:
    """Losses with their baselines, learning rate and gradient norm, from the records of a run's log.

    If the objective has several losses, a panel below the main loss has each of them under its name. `reference` is a
    curve to compare with: tokens, mean, and the band low to high, NaN where it has none. Values that are missing or not
    numbers are gaps.
    """
    tokens, raw, smoothed, measured, rates, norms = (
        np.array([_number(record.get(name)) for record in records])
        for name in ("tokens", "loss", "smoothed_loss", "eval_loss", "learning_rate", "grad_norm"))
    trained = np.where(np.isfinite(raw) & np.isfinite(smoothed), smoothed, raw)
    drawn = np.isfinite(tokens) & (np.isfinite(trained) | np.isfinite(measured))
    if not drawn.any():
        raise ValueError("The records have no loss to draw.")
    names = dict.fromkeys(name for record in records if isinstance(record.get("losses"), Mapping)
                          for name in record["losses"])
    figure = new_figure(6.8, 7.5 if names else 6.0)
    loss, *more, rate, norm = figure.subplots(4 if names else 3, 1, sharex=True,
                                              height_ratios=(3, 2, 1, 1) if names else (3, 1, 1))
    for axes in more:
        _draw_losses(axes, records, tokens, list(names))
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
        draw_level(loss, name, value, last)
    loss.set_xlim(0, max(last, 1.0))
    loss.legend()
    loss.set(ylabel="loss")
    rate.set(ylabel="learning rate")
    norm.set(ylabel="gradient norm", xlabel="tokens")
    return figure


def _draw_losses(axes: Any, records: Sequence[Mapping[str, Any]], tokens: npt.NDArray[np.float64],
                 names: Sequence[str]) -> None:
    """Each loss of an objective that has several, in training and held out."""
    for number, name in enumerate(names):
        for key, style in (("losses", {"label": name}),
                           ("eval_losses", {"label": f"{name}, held out", "marker": "o", "markersize": 3})):
            found = [record.get(key) for record in records]
            values = np.array([_number(row.get(name)) if isinstance(row, Mapping) else np.nan for row in found])
            there = np.isfinite(tokens) & np.isfinite(values)
            if there.any():
                draw_line(axes, tokens[there], values[there], number, **style)
    axes.legend(fontsize=7)
    axes.set(ylabel="each loss")


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
    """One bar per layer or parameter, from input to output: the norm of its gradient.

    Values are norms, or arrays whose norms are computed.
    """
    norms = {name: float(np.linalg.norm(np.asarray(value, np.float64))) for name, value in gradients.items()}
    if not norms:
        raise ValueError("There are no gradients to draw.")
    figure, axes = single_axes(max(5.0, 0.24 * len(norms) + 1.5), 3.6)
    axes.bar(range(len(norms)), list(norms.values()), color=COLOURS[0])
    if max(norms.values()) > 100 * min(norms.values()) > 0:
        axes.set_yscale("log")            # norms of similar size stay on a linear axis from zero
    label_cells(axes, list(norms))
    axes.set(title="gradient flow" + ("" if step is None else f" at step {step:,}"), ylabel="gradient norm")
    return figure


@styled
def plot_weight_evolution(steps: Series, values: Mapping[str, Series], what: str = "distance from the first checkpoint",
                          ) -> Picture:
    """One line per parameter, or group of parameters, over the training steps."""
    return _named_lines({name: (steps, series) for name, series in values.items()}, xlabel="step", ylabel=what)


@styled
def plot_loss_components(steps: Series, shares: Mapping[str, Series]) -> Picture:
    """The share of each component in the squared gradient norm, over the training steps; shares add up to 1."""
    if not len(steps) or not shares:
        raise ValueError("There are no shares to draw.")
    return _named_lines({name: (steps, series) for name, series in shares.items()}, {"marker": "o", "markersize": 3},
                        xlabel="step", ylabel="share of the squared gradient norm", ylim=(0, 1.02))


@styled
def plot_probe_accuracy(layers: Sequence[str], accuracy: Mapping[str, Series],
                        intervals: Mapping[str, Series] | None = None,
                        baselines: Mapping[str, float] | None = None) -> Picture:
    """Accuracy by layer: one line per model or probe, with error bars, and one level per baseline."""
    figure, axes = single_axes()
    for number, (name, values) in enumerate(accuracy.items()):
        draw_line(axes, range(len(layers)), values, number, name, marker="o", markersize=4)
        half = (intervals or {}).get(name)
        if half is not None:
            axes.errorbar(range(len(layers)), values, yerr=half, fmt="none", ecolor=COLOURS[number % len(COLOURS)],
                          capsize=3)
    for name, value in (baselines or {}).items():
        draw_level(axes, name, value, len(layers) - 1)
    label_cells(axes, layers)
    axes.set(ylabel="accuracy")
    axes.legend()
    return figure


@styled
def plot_spectrum(values: Mapping[str, Series]) -> Picture:
    """The singular values of each matrix in descending order, relative to the largest."""
    spectra = {name: np.sort(np.asarray(series, np.float64))[::-1] for name, series in values.items()}
    return _named_lines({name: (range(1, len(spectrum) + 1), spectrum / spectrum[0])
                         for name, spectrum in spectra.items()},
                        xlabel="singular value", ylabel="relative to the largest", ylim=(0, 1.02))


def _named_lines(lines: Mapping[str, tuple[Any, Any]], line: Mapping[str, Any] | None = None, **labels: Any) -> Picture:
    """Lines by name, each of its x and y, with a legend in two columns."""
    figure, axes = single_axes()
    for number, (name, (x, y)) in enumerate(lines.items()):
        draw_line(axes, x, y, number, name, **(line or {}))
    axes.set(**labels)
    axes.legend(ncols=2, fontsize=7)
    return figure
