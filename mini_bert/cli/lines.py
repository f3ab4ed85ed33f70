"""The text that a command is given: its arguments, or the lines of standard input."""

import re
import sys

from ..errors import InputError

_INVALID = re.compile("[\udc80-\udcff]")      # what surrogateescape makes of a byte that is not UTF-8


def given_lines(given: list[str] | None, strict: bool = False) -> tuple[list[str], int]:
    """The lines, cut at line feeds alone, and how many bytes were not UTF-8 and so were replaced.

    Such bytes are reported on standard error, or refused if `strict`. Arguments are one line.
    """
    data = " ".join(given).encode("utf-8", "surrogateescape") if given else sys.stdin.buffer.read()
    source = "The text" if given else "Standard input"
    try:
        text, invalid = data.decode("utf-8"), 0
    except UnicodeDecodeError as error:
        if strict:
            raise InputError(f"{source}, byte {error.start} is not UTF-8; without --strict it would be replaced.") \
                from None
        text, invalid = data.decode("utf-8", "replace"), len(_INVALID.findall(data.decode("utf-8", "surrogateescape")))
        print(f"mini-bert: {source}: {invalid:,} bytes were not UTF-8 and were replaced; "
              f"the first: byte {error.start}.", file=sys.stderr)
    if given:
        return [text], invalid
    return text.removeprefix("\ufeff").removesuffix("\n").split("\n") if text else [], invalid
