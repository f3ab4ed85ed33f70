"""The `mini-bert` command."""

import io
import signal
import sys
from types import FrameType
from typing import NoReturn


def main() -> None:
    """Run the command line; a refused input is one sentence on standard error and exit code 2."""
    try:
        from .app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f"The command line needs {error.name}: pip install mini-bert, or pip install {error.name}.")
    from ..errors import MiniBertError

    if hasattr(signal, "SIGPIPE"):    # if the reader of our output goes, as `head` does, go quietly
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, _leave)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):      # a terminal that cannot show a letter is shown its number
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except MiniBertError as error:
        print(f"mini-bert: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:          # a name that no file can have, a folder that may not be read
        where = f"{str(error.filename)[:200]}: " if error.filename else ""
        print(f"mini-bert: {where}{error.strerror or error}.", file=sys.stderr)
        sys.exit(2)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """SIGTERM ends the process as an error does, so that what is half written is removed."""
    sys.exit(128 + number)
