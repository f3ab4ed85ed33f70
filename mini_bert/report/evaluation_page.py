"""The page of an evaluation: a summary, then one section per part with its table and charts."""

from collections.abc import Mapping
from html import escape
from typing import Any

from ..evaluation.suite.rows import shown
from ..evaluation.suite.suite import LEVELS, EvaluationReport
from .evaluation_sections import SECTIONS
from .page import facts, notes, number_cell, page, paragraph, section, table

_NUMBER = ' class="number"'


def evaluation_page(title: str, about: Mapping[str, Any], found: EvaluationReport) -> str:
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
    return page(title, *parts, section("Arguments", facts(arguments)))


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
