"""What all commands share: common options, and where output goes.

With --json, one object goes to standard output and everything else to standard error. With --quiet, only
the result is printed.
"""

import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of every random draw.")]
ThreadsOption = Annotated[int, typer.Option("--threads", min=0, help="0 for all cores.")]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Recompute, ignoring cached results.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result.")]


class Output:
    """The console of one command."""

    def __init__(self, as_json: bool, quiet: bool):
        self.as_json, self.quiet = as_json, quiet
        self.console = Console(highlight=False, emoji=False, stderr=as_json)
        if not self.console.is_terminal:      # do not wrap lines that another program reads
            self.console = Console(highlight=False, emoji=False, stderr=as_json, width=200)

    def say(self, *what: Any) -> None:
        """Print a message before the result, unless --json or --quiet is given."""
        if not (self.quiet or self.as_json):
            self._print(*what)

    def _print(self, *what: Any) -> None:
        for item in what:      # sentences are not wrapped, tables fit the width
            self.console.print(item, soft_wrap=isinstance(item, str | Text))

    def result(self, data: dict[str, Any], *shown: Any) -> None:
        """Print the result: `data` with --json, otherwise `shown`."""
        if self.as_json:
            json.dump(data, sys.stdout, indent=2)
            print()
        else:
            self._print(*shown)


def table(*columns: str, right: tuple[str, ...] = (), title: str | None = None) -> Table:
    """A table with these columns; the ones in `right` are right-aligned."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return made


def shown_cost(found: dict[str, Any]) -> str:
    """One line: the time and memory that a result took to compute."""
    seconds, memory = found["cost"]["seconds"], found["cost"]["peak_mb"]
    return f"[dim]Computed in {seconds:,.0f} s with a peak of {memory:,.0f} MB of memory.[/dim]"


def verdict(passed: bool) -> str:
    return "[green]ok[/green]" if passed else "[bold red]FAILED[/bold red]"
