"""The page of an experiment: held-out loss over tokens and over time, and tables of the figures at the end."""

import shlex
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from statistics import mean

from ..lab.comparison import Comparison
from ..lab.figures import EXPLAINED, ZERO_SHOT, amount, tunings
from ..lab.runs import Curve, run_directory, summary
from .chart import Line, line_chart
from .page import Opening, State, Step, page, paragraph, section, table

_AXES = {"tokens": "tokens", "seconds": "seconds of training"}


def lab_page(title: str, found: Comparison, command: str = "", when: datetime | None = None,
             out: Path | None = None) -> str:
    """The legend is in the order of the final losses; `out` is the directory of the runs."""
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
    verdict, state = judged(found)
    steps = [Step(f"{name} failed: {reason}") for name, reason in found.failures.items()]
    if out is not None and found.curves:
        best = min((curve for curve in found.curves if curve.losses), key=lambda curve: curve.losses[-1], default=None)
        if best is not None:
            place = run_directory(out, best.name, best.seed)
            steps.append(Step("Look at the best run", shlex.join(["mini-bert", "report", str(place)])))
    return page(title, *sections, *_ruler(found), opening=Opening(verdict, state, command, when, steps))


def judged(found: Comparison) -> tuple[str, State]:
    """Which run has the lowest held-out loss, and whether the seeds agree about it."""
    rows = summary(found.curves)
    if not rows:
        return f"{len(found.rows)} models were measured; nothing was trained.", State.OPEN
    first, *others = rows
    says = f"{first['name']} has the lowest held-out loss, {first['loss']:.3f}"
    if not others:
        return f"{says}; there is no other run to compare it with.", State.OPEN
    second = others[0]
    says += f", {second['loss'] - first['loss']:.3f} below {second['name']}"
    if min(first["seeds"], second["seeds"]) < 2:
        return f"{says}, with one seed: another seed may change that.", State.OPEN
    if first["highest"] < second["lowest"]:
        return f"{says}: every seed of the first is below every seed of the second.", State.GOOD
    return f"{says}, but their seeds overlap: the order may be chance.", State.OPEN


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
