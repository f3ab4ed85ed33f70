"""The page of an evaluation: a summary, then one section per part with its table and charts."""

import shlex
from collections.abc import Mapping
from datetime import datetime
from html import escape
from typing import Any

from ..evaluation.suite.rows import LOWER, interval, shown
from ..evaluation.suite.suite import LEVELS, EvaluationReport
from .evaluation_sections import SECTIONS
from .page import Opening, State, Step, facts, notes, number_cell, page, paragraph, section, table

_NUMBER = ' class="number"'
_NAMED = 4                    # parts, in the verdict


def evaluation_page(title: str, about: Mapping[str, Any], found: EvaluationReport, *, command: str = "",
                    when: datetime | None = None) -> str:
    """`about` says what was asked: the model, the text, the folder of tasks."""
    parts = [section("Summary", _summary(found), paragraph(
        "Scores are in percent unless they have three decimals. ± is half the width of a 95 % interval; an asymmetric "
        "interval is written out. Random init is a model of the same shape with random weights, measured or trained in "
        "the same way."))]
    parts += [section(f"{LEVELS[part['level']]}: {part['title']}", *_part(part)) for part in found.parts]
    if found.not_measured:
        parts.append(section("Not measured", table(["part", "reason"], [[part["title"], part["reason"]]
                                                                       for part in found.not_measured])))
    arguments = {name: _listed(value) for name, value in about.items() if value is not None}
    left = len(found.not_measured)
    steps = [Step(f"Measure what needs other data, {left} part{'s' if left > 1 else ''}: see Not measured below")] \
        if left else []
    steps.append(Step("Explore the model", shlex.join(["mini-bert", "explore", "--model", str(about.get("model"))])))
    return page(title, *parts, section("Arguments", facts(arguments)),
                opening=Opening(*judged(found), command, when, steps))


def judged(found: EvaluationReport) -> tuple[str, State]:
    """In how many figures the model is better than its best baseline, and where it is not."""
    compared = [row for row in found.summary() if row["baselines"] and row["better"] is not None]
    if not compared:
        return "Nothing could be compared with a baseline.", State.OPEN
    better = [row for row in compared if _is_better(row)]
    says = f"The model is better than the best baseline in {len(better)} of {len(compared)} figures"
    worse = list(dict.fromkeys(row["title"] for row in compared if not _is_better(row)))
    state = State.GOOD if not worse else State.OPEN if 2 * len(better) >= len(compared) else State.BAD
    return says + (f"; not in: {', '.join(worse[:_NAMED])}{' and others' if len(worse) > _NAMED else ''}." if worse
                   else "."), state


def _is_better(row: Mapping[str, Any]) -> bool:
    value, *others = (interval(figure).mean for figure in (row["value"], *row["baselines"].values()))
    return value < min(others) if row["better"] == LOWER else value > max(others)


def _listed(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _summary(found: EvaluationReport) -> str:
    """One table, with a line above the parts of each level."""
    head = "".join(f'<th{kind}>{name}</th>' for name, kind in (
        ("part", ""), ("figure", ""), ("score", _NUMBER), ("baselines", ""), ("random init", _NUMBER)))
    lines = []
    for level, title in LEVELS.items():
        chosen = [row for row in found.summary() if row["level"] == level]
        if chosen:
            lines.append(f'<tr class="right"><td colspan="5">{escape(title)}</td></tr>')
        before = ""
        for row in chosen:
            name, score, others, random = _cells(row)
            part = "" if row["part"] == before else f'<a href="#{row["part"]}">{escape(row["title"])}</a>'
            lines.append(f"<tr><td>{part}</td><td>{escape(name)}</td><td{_NUMBER}>{number_cell(score)}</td>"
                         f"<td>{escape(others)}</td><td{_NUMBER}>{number_cell(random)}</td></tr>")
            before = row["part"]
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _cells(row: dict[str, Any]) -> tuple[str, str, str, str]:
    unit = row["unit"]
    others = "; ".join(f"{name} {shown(value, unit)}" for name, value in row["baselines"].items())
    return row["figure"], shown(row["value"], unit), others, shown(row["random_init"], unit)


def _part(part: dict[str, Any]) -> list[str]:
    more = SECTIONS[part["name"]](part["details"]) if part["name"] in SECTIONS else []
    scores = table(["figure", "score", "baselines", "random init", "measured on"],
                   [[*_cells(row), row["sample"]] for row in part["rows"]], numbers=(1, 3))
    return [f'<a id="{part["name"]}"></a>', scores, *more, notes(part["notes"])]
