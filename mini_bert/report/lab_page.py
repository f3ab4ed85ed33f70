"""The page of an experiment: held-out loss over tokens and over time, and a table of the final losses."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from ..lab.runs import Curve
from .chart import Line, line_chart
from .page import page, paragraph, section, table

_AXES = {"tokens": "tokens", "seconds": "seconds of training"}


def lab_page(title: str, curves: Sequence[Curve], summary: Sequence[Mapping[str, Any]]) -> str:
    """`summary` is that of `lab.runs`, best run first; the legend keeps its order."""
    names = [str(row["name"]) for row in summary]
    charts = [line_chart([_line(name, curves, axis) for name in names], x_label=label, y_label="held-out loss")
              for axis, label in _AXES.items()]
    content = [[row["name"], f"{row['loss']:.4f}", f"{row['lowest']:.4f} to {row['highest']:.4f}", str(row["seeds"]),
                f"{row['tokens']:,}", f"{row['seconds']:,.0f}"] for row in summary]
    return page(title, section("Held-out loss", *charts, paragraph(
        "Each line is the mean over the seeds, each band their range.")), section("At the end", table(
            ["run", "loss", "over seeds", "seeds", "tokens", "seconds"], content, numbers=(1, 2, 3, 4, 5))))


def _line(name: str, curves: Sequence[Curve], axis: str) -> Line:
    """The mean and range over a run's seeds, at the evaluations that all of them have reached."""
    seeds = [curve for curve in curves if curve.name == name and curve.losses]
    points = min(len(curve.losses) for curve in seeds)
    x = [mean(getattr(curve, axis)[i] for curve in seeds) for i in range(points)]
    losses = [[curve.losses[i] for curve in seeds] for i in range(points)]
    band = (list(map(min, losses)), list(map(max, losses))) if len(seeds) > 1 else (None, None)
    return Line(name, x, list(map(mean, losses)), *band)
