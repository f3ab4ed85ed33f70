"""The page of an experiment: held-out loss over tokens and over time, and tables of the figures at the end."""

from collections.abc import Sequence
from statistics import mean

from ..lab.comparison import Comparison
from ..lab.figures import EXPLAINED, ZERO_SHOT, amount, tunings
from ..lab.runs import Curve, summary
from .chart import Line, line_chart
from .page import page, paragraph, section, table

_AXES = {"tokens": "tokens", "seconds": "seconds of training"}


def lab_page(title: str, found: Comparison) -> str:
    """The legend is in the order of the final losses."""
    sections = []
    if rows := summary(found.curves):
        names = [str(row["name"]) for row in rows]
        charts = [line_chart([_line(name, found.curves, axis) for name in names], x_label=label,
                             y_label="held-out loss") for axis, label in _AXES.items()]
        content = [[row["name"], f"{row['loss']:.4f}", f"{row['lowest']:.4f} to {row['highest']:.4f}",
                    str(row["seeds"]), f"{row['tokens']:,}", f"{row['seconds']:,.0f}"] for row in rows]
        sections += [section("Held-out loss", *charts, paragraph(
            "Each line is the mean over the seeds, each band their range. The loss is that of the run's own objective; "
            "losses of different objectives cannot be compared.")), section("At the end", table(
                ["run", "loss", "over seeds", "seeds", "tokens", "seconds"], content, numbers=(1, 2, 3, 4, 5)))]
    return page(title, *sections, *_ruler(found))


def _ruler(found: Comparison) -> list[str]:
    """The figures of the ruler, if there are any."""
    if not any(outcome.scores for row in found.rows for outcome in row.outcomes):
        return []
    content = [[row.name, amount(row.parameters), *(figure.shown_range(row.values(figure.key)) for figure in ZERO_SHOT)]
               for row in found.rows]
    content += [[name, "", *(figure.shown_range(figure.of(scores)) for figure in ZERO_SHOT)]
                for name, scores in found.baselines.items() if any(figure.of(scores) for figure in ZERO_SHOT)]
    headings = ["run", "parameters", *(figure.heading for figure in ZERO_SHOT)]
    made = [section("The ruler", table(headings, content, numbers=range(1, len(headings))), paragraph(EXPLAINED))]
    if columns := tunings(found):
        content = [[row.name, *(figure.shown_range(values) for figure in columns
                                for values in (row.values(figure.key), figure.of(row.random)))] for row in found.rows]
        content += [[name, *(cell for figure in columns for cell in (figure.shown_range(figure.of(scores)), ""))]
                    for name, scores in found.baselines.items() if any(figure.of(scores) for figure in columns)]
        headings = ["run", *(heading for figure in columns for heading in (figure.heading, "random weights"))]
        made.append(section("Fine-tuning", paragraph("Accuracy on SST-2, in percent."),
                            table(headings, content, numbers=range(1, len(headings)))))
    return made


def _line(name: str, curves: Sequence[Curve], axis: str) -> Line:
    """The mean and range over a run's seeds, at the evaluations that all of them have reached."""
    seeds = [curve for curve in curves if curve.name == name and curve.losses]
    points = min(len(curve.losses) for curve in seeds)
    x = [mean(getattr(curve, axis)[i] for curve in seeds) for i in range(points)]
    losses = [[curve.losses[i] for curve in seeds] for i in range(points)]
    band = (list(map(min, losses)), list(map(max, losses))) if len(seeds) > 1 else (None, None)
    return Line(name, x, list(map(mean, losses)), *band)
