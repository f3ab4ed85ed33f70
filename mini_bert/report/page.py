"""HTML pages that load nothing from elsewhere: they open without a network and can be sent by e-mail."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from html import escape
from pathlib import Path
from typing import NamedTuple

from ..files import write_files
from ..inference.examples import Example
from ..palette import COLOURS

_STYLE = f"""
:root {{ color-scheme: light dark; --ink: #222; --paper: #fff; --grid: #ddd; --accent: {COLOURS[0]};
        --good: #006b4d; --open: #8a5a00; --bad: #b23b00; --faint: #f4f5f7; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #ddd; --paper: #16181c; --grid: #3a3d44; --accent: {COLOURS[5]};
          --good: #4cc9a0; --open: #f0b429; --bad: #ff8f5e; --faint: #20242b; }}
  .chart polyline, .chart circle, .legend svg {{ filter: brightness(1.4); }} }}
""" + """
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 46rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.4rem; line-height: 1.3; margin: 0 0 .75rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } th, td { padding: .25rem .75rem .25rem 0; text-align: left;
       border-bottom: 1px solid var(--grid); vertical-align: top; } td.number, th.number { text-align: right;
       font-variant-numeric: tabular-nums; } td.number { white-space: nowrap; } td.number small { display: block; }
a { color: var(--accent); }
.verdict { font-size: 1.15rem; margin: 0 0 1rem; padding: .75rem 1rem; background: var(--faint);
           border-left: .4rem solid var(--ink); }
.verdict.good { border-color: var(--good); } .verdict.open { border-color: var(--open); }
.verdict.bad { border-color: var(--bad); }
.origin { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: 0 0 1rem; }
.origin dt { opacity: .75; } .origin dd { margin: 0; min-width: 0; }
code { font: .9em ui-monospace, monospace; background: var(--faint); padding: .1em .3em; }
figure { margin: 1rem 0; } .legend { display: flex; flex-wrap: wrap; gap: .1rem 1.25rem; margin: 0 0 .25rem; padding: 0;
         list-style: none; font-size: .85rem; } .legend svg { width: 2rem; height: .6rem; margin-right: .4rem; }
.axis { font-size: .8rem; margin: .25rem 0; } figcaption { font-size: .85rem; opacity: .8; }
@media (max-width: 40rem) { .origin { grid-template-columns: 1fr; gap: 0; } .origin dd { margin-bottom: .5rem; }
                            .lines text { font-size: 19px; } .lines .minor { display: none; }
                            .wide { min-width: 38rem; } }
.chart { width: 100%; height: auto; display: block; } .lines polyline { vector-effect: non-scaling-stroke; }
.bar { display: inline-block; height: .7em; background: var(--accent); }
.scroll { overflow-x: auto; margin: .75rem 0; } tr.right { font-weight: bold; }
.notes { font-size: .9em; padding-left: 1.2rem; }
"""

BASELINES = ("The baselines predict every token with the same probability (uniform), by its frequency (unigram), or by "
             "its frequency after the previous token (bigram).")


class State(Enum):
    """Of what a page is about."""

    GOOD = "good"
    OPEN = "open"             # it cannot be told yet
    BAD = "bad"


class Step(NamedTuple):
    """What to do next: a few words, and a command if there is one."""

    words: str
    command: str = ""


@dataclass(frozen=True)
class Opening:
    """What a reader wants first: the verdict, the command that made it, its date, and the next steps."""

    verdict: str
    state: State
    command: str = ""
    when: datetime | None = None
    steps: Sequence[Step] = field(default=())

    def html(self) -> str:
        entries = [("Command", f"<code>{escape(self.command)}</code>")] if self.command else []
        if self.when is not None:
            entries.append(("Date", f"{self.when.day} {self.when:%B %Y, %H:%M}"))
        for number, step in enumerate(self.steps):
            command = f": <code>{escape(step.command)}</code>" if step.command else ""
            entries.append(("" if number else "Next", escape(step.words) + command))
        listed = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in entries)
        return (f'<p class="verdict {self.state.value}">{escape(self.verdict)}</p>'
                + (f'<dl class="origin">{listed}</dl>' if listed else ""))


def page(title: str, *sections: str, opening: Opening | None = None) -> str:
    """A complete page; sections are HTML."""
    first = "" if opening is None else opening.html()
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
            f'<body><h1>{escape(title)}</h1>{first}{"".join(sections)}</body></html>\n')


def section(heading: str, *content: str) -> str:
    return f"<section><h2>{escape(heading)}</h2>{''.join(content)}</section>"


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def notes(texts: Sequence[str]) -> str:
    """A list in small print."""
    return f'<ul class="notes">{"".join(f"<li>{escape(text)}</li>" for text in texts)}</ul>' if texts else ""


def facts(values: Mapping[str, object]) -> str:
    """A table of names and values."""
    return table((), [(name, str(value)) for name, value in values.items()])


def table(columns: Sequence[str], content: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A table; the columns `numbers` are aligned to the right."""
    def cell(tag: str, column: int, text: str) -> str:
        kind = ' class="number"' if column in numbers else ""
        return f"<{tag}{kind}>{number_cell(text) if column in numbers else escape(text)}</{tag}>"

    head = "<thead><tr>" + "".join(cell("th", i, text) for i, text in enumerate(columns)) + "</tr></thead>" \
        if columns else ""
    body = "".join("<tr>" + "".join(cell("td", i, text) for i, text in enumerate(row)) + "</tr>" for row in content)
    return f'<div class="scroll"><table>{head}<tbody>{body}</tbody></table></div>'


def number_cell(text: str) -> str:
    """A number, with its interval in brackets, if it has one, on a line below."""
    value, bracket, interval = escape(text).partition(" (")
    return f"{value}<small>({interval}</small>" if bracket else value


def example_html(example: Example) -> str:
    """A sentence, its masked word, and the model's candidates with bars for their probabilities."""
    text = escape(example.text).replace("[MASK]", "<b>[MASK]</b>", 1)
    bars = "".join(
        f'<tr{" class=right" if word.token == example.truth else ""}><td>{escape(word.token)}</td>'
        f'<td class="number">{word.probability:.1%}</td><td style="width:60%">'
        f'<span class="bar" style="width:{100 * word.probability:.1f}%"></span></td></tr>'
        for word in example.candidates)
    return f"<p>{text} <small>(masked: {escape(example.truth)})</small></p><table>{bars}</table>"


def write_page(path: Path, html: str) -> Path:
    """Write a page; a crash leaves no half of it."""
    write_files(path.parent, {path.name: html.encode("utf-8", "backslashreplace")})
    return path
