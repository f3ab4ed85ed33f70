"""Progress bars, on standard error so that a result can be piped."""

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn


def progress_bar(*extra: ProgressColumn, quiet: bool = False, of_bytes: bool = False) -> Progress:
    """A bar with counts or bytes, the `extra` columns and the time left; hidden if quiet or not at a terminal."""
    console = Console(stderr=True)
    amount = DownloadColumn() if of_bytes else TextColumn("{task.completed:,.0f}/{task.total:,.0f}")
    return Progress(TextColumn("{task.description}"), BarColumn(), amount, *extra, TimeRemainingColumn(),
                    console=console, disable=quiet or not console.is_interactive, transient=True)
