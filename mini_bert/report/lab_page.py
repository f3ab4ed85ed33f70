"""The page about an experiment: held-out loss over tokens and over time, and the table behind it."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from ..training.experiments import Curve
from .chart import Line, line_chart
from .page import page, paragraph, rows, section

AXES = {"tokens": "tokens", "seconds": "seconds of training"}


def lab_page(title: str, curves: Sequence[Curve], summary: Sequence[Mapping[str, Any]]) -> str:
    """`summary` as `training.lab.summary` gives it, the best first: the lines come in its order."""
    names = [str(row["name"]) for row in summary]
    charts = [lab_chart(curves, names, axis) for axis in AXES]
    content = [[row["name"], f"{row['loss']:.4f}", f"{row['lowest']:.4f} to {row['highest']:.4f}", str(row["seeds"]),
                f"{row['tokens']:,}", f"{row['seconds']:,.0f}"] for row in summary]
    return page(title, section("Held-out loss", *charts, paragraph(
        "A line is the mean over the seeds, the band their range.")), section("At the end", rows(
            ["run", "loss", "over seeds", "seeds", "tokens", "seconds"], content, numbers=(1, 2, 3, 4, 5))))


def lab_chart(curves: Sequence[Curve], names: Sequence[str], axis: str = "tokens", *, standalone: bool = False) -> str:
    """Held-out loss of the named runs over `tokens` or `seconds`."""
    lines = [_line(name, [curve for curve in curves if curve.name == name and curve.losses], axis) for name in names]
    return line_chart(lines, x_label=AXES[axis], y_label="held-out loss", standalone=standalone)


def _line(name: str, curves: Sequence[Curve], axis: str) -> Line:
    """The mean of some seeds at each evaluation that all of them have reached, with their range."""
    points = min(len(curve.losses) for curve in curves)
    x = [mean(getattr(curve, axis)[i] for curve in curves) for i in range(points)]
    losses = [[curve.losses[i] for curve in curves] for i in range(points)]
    band = (list(map(min, losses)), list(map(max, losses))) if len(curves) > 1 else (None, None)
    return Line(name, x, list(map(mean, losses)), *band)
