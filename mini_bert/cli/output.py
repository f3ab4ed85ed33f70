"""What all commands share: common options, and where output goes.

With --json, one object goes to standard output and everything else to standard error. With --quiet, only
the result is printed.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

SeedOption = Annotated[int, typer.Option("--seed", help="Seed of every random draw.")]
ThreadsOption = Annotated[int, typer.Option("--threads", min=0, help="0 for all cores.")]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Recompute, ignoring cached results.")]


class Output:
    """The console of one command; `silent` if nothing but the result is to be printed."""

    def __init__(self, as_json: bool, quiet: bool):
        self.as_json, self.quiet, self.silent = as_json, quiet, as_json or quiet
        self.console = Console(highlight=False, emoji=False, stderr=as_json)
        if not self.console.is_terminal:      # do not wrap lines that another program reads
            self.console = Console(highlight=False, emoji=False, stderr=as_json, width=200)

    def say(self, *what: Any) -> None:
        """Print a message before the result, unless --json or --quiet is given."""
        if not self.silent:
            self._print(*what)

    def _print(self, *what: Any) -> None:
        for item in what:      # sentences are not wrapped, tables fit the width
            self.console.print(item, soft_wrap=isinstance(item, str | Text))

    @contextmanager
    def progress(self, what: str, total: int = 1) -> Iterator[Callable[..., None]]:
        """A progress bar; the callback takes how many are done, and of how many if that is not known before."""
        with progress_bar(quiet=self.quiet) as bar:
            task = bar.add_task(what, total=total)
            yield lambda done, total=total: bar.update(task, completed=done, total=total)

    def result(self, data: dict[str, Any], *shown: Any) -> None:
        """Print the result: `data` with --json, with null for numbers that are not finite; otherwise `shown`."""
        if self.as_json:
            from ..evaluation.result import finite  # not above: it brings NumPy along, which `--help` does not need

            json.dump(finite(data), sys.stdout, indent=2)
            print()
        else:
            self._print(*shown)


def progress_bar(*extra: ProgressColumn, quiet: bool = False, of_bytes: bool = False) -> Progress:
    """A bar with counts or bytes, the `extra` columns and the time left; hidden if quiet or not at a terminal.

    It is on standard error, so that a result can be piped.
    """
    console = Console(stderr=True)
    amount = DownloadColumn() if of_bytes else TextColumn("{task.completed:,.0f}/{task.total:,.0f}")
    return Progress(TextColumn("{task.description}"), BarColumn(), amount, *extra, TimeRemainingColumn(),
                    console=console, disable=quiet or not console.is_interactive, transient=True)


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
