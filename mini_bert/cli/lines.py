"""The text that a command gets: its arguments, or the lines of standard input."""

import re
import sys

from ..errors import InputError

_INVALID = re.compile("[\udc80-\udcff]")      # bytes that are not UTF-8, as surrogateescape decodes them


def read_lines(given: list[str] | None, strict: bool = False) -> tuple[list[str], int]:
    """The lines, split only at line feeds, and the number of bytes replaced because they were not UTF-8.

    Such bytes are reported on standard error, or with `strict` an error. Arguments count as one line.
    """
    data = " ".join(given).encode("utf-8", "surrogateescape") if given else sys.stdin.buffer.read()
    source = "The text" if given else "Standard input"
    try:
        text, invalid = data.decode("utf-8"), 0
    except UnicodeDecodeError as error:
        if strict:
            raise InputError(f"{source}, byte {error.start} is not UTF-8. Without --strict it is replaced.") from None
        text, invalid = data.decode("utf-8", "replace"), len(_INVALID.findall(data.decode("utf-8", "surrogateescape")))
        print(f"mini-bert: {source}: {invalid:,} bytes were not UTF-8 and were replaced, "
              f"the first at byte {error.start}.", file=sys.stderr)
    if given:
        return [text], invalid
    return text.removeprefix("\ufeff").removesuffix("\n").split("\n") if text else [], invalid
