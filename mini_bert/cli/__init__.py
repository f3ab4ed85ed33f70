"""The `mini-bert` command."""

import io
import signal
import sys
from types import FrameType
from typing import NoReturn


def main() -> None:
    """Run the command line. Invalid input ends it with one sentence on standard error and exit code 2.

    An error in a variant of the user's own is shown with the lines of the user's files alone, and exit code 1.
    """
    try:
        from .app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f"The command line needs {error.name}: pip install mini-bert, or pip install {error.name}.")
    from ..errors import MiniBertError
    from ..parallel.launch import launched_processes

    if hasattr(signal, "SIGPIPE"):    # end quietly when a reader such as `head` closes the pipe
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, _terminate)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):      # print characters that the terminal cannot show as escapes
            stream.reconfigure(errors="backslashreplace")
    try:
        with launched_processes():
            app(prog_name="mini-bert")
    except MiniBertError as error:
        print(f"mini-bert: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:          # an invalid file name, a folder without permission
        where = f"{str(error.filename)[:200]}: " if error.filename else ""
        print(f"mini-bert: {where}{error.strerror or error}.", file=sys.stderr)
        sys.exit(2)
    except MemoryError as error:      # NumPy's says which array was too large
        print(f"mini-bert: There is not enough memory{f': {error}' if str(error) else ''}.", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        from ..plugins import failure_of_variant  # not above: it brings the core along, which `--help` does not need

        shown = failure_of_variant(error)
        if shown is None:
            raise
        print(f"mini-bert: {shown}", file=sys.stderr)
        sys.exit(1)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    """Turn SIGTERM into an exception, so that partly written files are removed."""
    sys.exit(128 + number)
