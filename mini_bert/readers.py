"""Reading files that may be wrong or hostile: regular files alone, of bounded size and depth, in strict UTF-8.

A FIFO, a device or a directory in place of a file is refused at once: it is opened without waiting, and looked at
before anything is read. JSON and YAML give plain mappings, lists, text, numbers, booleans and null. What cannot be read
raises the caller's kind of MiniBertError, with one sentence that names the file.
"""

import json
import os
import stat
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .errors import MiniBertError

if TYPE_CHECKING:
    import yaml

AnyPath = str | PathLike[str]
LARGEST_JSON, LARGEST_YAML, LARGEST_TEXT = 1 << 28, 1 << 17, 1 << 30          # bytes
LONGEST_LINE = 1 << 26        # bytes, of a file that is read line by line
DEEPEST = 50                  # lists and mappings inside each other
MOST_DIGITS = 40              # of a whole number
_KINDS = ((stat.S_ISDIR, "a directory"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"),
          (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"))


class _ContentError(ValueError):
    """Why content is refused, without the name of the file."""


def exists(path: Path) -> bool:
    """Is there such a file or directory? False also for a name that none can have."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def is_file(path: Path) -> bool:
    """Is there such a file?"""
    return exists(path) and path.is_file()


def open_file(path: AnyPath, error: type[MiniBertError], absent: str = "") -> IO[bytes]:
    """A regular file, open for reading; `absent` is the sentence if there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise error(absent or f"There is no file {shown(path)}.") from None
    except (OSError, ValueError) as reason:           # ValueError: a name with a zero byte
        raise _unreadable(path, error, reason) from None
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            kind = next((name for test, name in _KINDS if test(mode)), "not a file")
            raise error(f"{shown(path)} cannot be read: it is {kind}, not a regular file.")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def require_file(path: AnyPath, error: type[MiniBertError], absent: str = "") -> None:
    """Refuse what is not a regular file, before a library is given its name."""
    open_file(path, error, absent).close()


def read_bytes(path: AnyPath, error: type[MiniBertError], *, largest: int = LARGEST_TEXT, absent: str = "") -> bytes:
    """The bytes of a regular file of at most `largest` bytes."""
    with open_file(path, error, absent) as file:
        try:
            content = file.read() if os.fstat(file.fileno()).st_size <= largest else None
        except OSError as reason:
            raise _unreadable(path, error, reason) from None
    if content is None:
        raise error(f"{shown(path)} is larger than {largest:,} bytes, and is not read.")
    return content


def read_text(path: AnyPath, error: type[MiniBertError], *, largest: int = LARGEST_TEXT, absent: str = "") -> str:
    """The text of a UTF-8 file."""
    try:
        return read_bytes(path, error, largest=largest, absent=absent).decode("utf-8")
    except UnicodeDecodeError as reason:
        raise error(f"{shown(path)} is not UTF-8: byte {reason.start} is invalid.") from None


def read_lines(path: AnyPath, error: type[MiniBertError], absent: str = "") -> Iterator[bytes]:
    """The lines of a file with their ends, one in memory at a time."""
    with open_file(path, error, absent) as file:
        number = 0
        try:
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise error(f"{shown(path)}, line {number} is longer than {LONGEST_LINE:,} bytes.")
                yield line
        except OSError as reason:
            raise _unreadable(path, error, reason) from None


# -------------------------------------------------------------------- JSON

def read_json(path: AnyPath, error: type[MiniBertError], kind: type = dict, *, absent: str = "") -> Any:
    """The object in a JSON file, or the list if `kind` is list."""
    content = parse_json(read_bytes(path, error, largest=LARGEST_JSON, absent=absent), error, shown(path))
    if not isinstance(content, kind):
        wanted = "a list" if kind is list else "an object"
        raise error(f"{shown(path)} must contain JSON with {wanted} at the top, not {_named(content)}.")
    return content


def read_json_if_there(path: AnyPath, error: type[MiniBertError]) -> dict[str, Any] | None:
    """The object in a JSON file; None if there is no such file."""
    if not os.path.lexists(path):
        return None
    found: dict[str, Any] = read_json(path, error)
    return found


def parse_json(data: bytes | str, error: type[MiniBertError], source: str) -> Any:
    """JSON of bounded depth, without repeated keys, NaN, numbers of thousands of digits, or halves of characters."""
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        content = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
        _require_plain(content)
        if "\\u" in text:
            json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogateescape")    # bytes of file names
    except RecursionError:
        raise error(f"{source} cannot be read as JSON: it is nested more than {DEEPEST} levels deep.") from None
    except UnicodeDecodeError as reason:
        raise error(f"{source} cannot be read as JSON: byte {reason.start} is not UTF-8.") from None
    except UnicodeEncodeError:
        raise error(f"{source} cannot be read as JSON: it has an unpaired surrogate.") from None
    except ValueError as reason:
        raise error(f"{source} cannot be read as JSON: {_line(reason)}.") from None
    return content


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise _ContentError(f"the key {next(n for n in names if names.count(n) > 1)[:100]!r} appears twice")
    return made


def _no_constant(name: str) -> Any:
    raise _ContentError(f"it has {name}, which is not JSON")


def _require_plain(content: Any) -> None:
    """Refuse content that is nested too deep, and whole numbers that no array could hold."""
    level: list[dict[str, Any] | list[Any]] = [[content]]
    for _ in range(DEEPEST + 1):
        values = [value for part in level for value in (part.values() if isinstance(part, dict) else part)]
        if any(type(value) is int and not -10**MOST_DIGITS < value < 10**MOST_DIGITS for value in values):
            raise _ContentError(f"it has a whole number of more than {MOST_DIGITS} digits")
        level = [value for value in values if isinstance(value, dict | list)]
        if not level:
            return
    raise RecursionError


# -------------------------------------------------------------------- YAML

def read_yaml(path: AnyPath, error: type[MiniBertError], *, absent: str = "") -> Any:
    """The content of a YAML file; None if it is empty."""
    return parse_yaml(read_text(path, error, largest=LARGEST_YAML, absent=absent), error, shown(path))


def parse_yaml(text: str, error: type[MiniBertError], source: str) -> Any:
    """YAML without aliases, merge keys, repeated keys, times, dates or tags: only what JSON has, too."""
    import yaml

    try:
        content = yaml.load(text, _plain_loader())
        _require_plain(content)
    except RecursionError:
        raise error(f"{source} is not valid YAML: it is nested more than {DEEPEST} levels deep.") from None
    except (yaml.YAMLError, ValueError) as reason:
        raise error(f"{source} is not valid YAML: {_line(reason)}.") from None
    return content


def _plain_loader() -> "type[yaml.SafeLoader]":
    """A loader that knows seven tags, and follows no alias."""
    import yaml

    global _loader
    if _loader is not None:
        return _loader

    class PlainLoader(yaml.SafeLoader):
        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):     # a few of them can stand for gigabytes
                line = self.peek_event().start_mark.line + 1  # type: ignore[no-untyped-call]
                raise _ContentError(f"line {line} has an alias, which is not supported")
            self.depth += 1
            if self.depth > DEEPEST:
                raise RecursionError
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            made: dict[Any, Any] = {}
            for key_node, value_node in node.value:
                if not isinstance(key_node, yaml.ScalarNode):
                    raise _ContentError(f"line {key_node.start_mark.line + 1} has a key that is not a word")
                key = self.construct_object(key_node, deep=True)
                if key in made:
                    raise _ContentError(f"line {key_node.start_mark.line + 1} has the key {str(key)[:100]!r} again")
                made[key] = self.construct_object(value_node, deep=True)
            return made

        def whole(self, node: Any) -> int:
            return int(self.construct_scalar(node).replace("_", ""), 0)

        def real(self, node: Any) -> float:
            word = self.construct_scalar(node).replace("_", "").lower()
            return float(word.replace(".inf", "inf").replace(".nan", "nan"))

        def truth(self, node: Any) -> bool:
            word = self.construct_scalar(node).lower()
            if word not in self.bool_values:
                raise _ContentError(f"{word[:100]!r} is not true or false")
            return bool(self.bool_values[word])

        def sequence(self, node: Any) -> list[Any]:
            return list(self.construct_sequence(node, deep=True))

        def mapping(self, node: Any) -> dict[Any, Any]:
            if not isinstance(node, yaml.MappingNode):
                raise _ContentError(f"line {node.start_mark.line + 1} is not a mapping")
            return self.construct_mapping(node)

    standard = {name: f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str", "seq", "map")}
    PlainLoader.yaml_constructors = {
        standard["null"]: yaml.SafeLoader.construct_yaml_null, standard["str"]: yaml.SafeLoader.construct_yaml_str,
        standard["bool"]: PlainLoader.truth, standard["int"]: PlainLoader.whole, standard["float"]: PlainLoader.real,
        standard["seq"]: PlainLoader.sequence, standard["map"]: PlainLoader.mapping, None: _no_tag}
    kept = {letter: [(tag, pattern) for tag, pattern in pairs if tag in (standard["null"], standard["bool"])]
            for letter, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()}
    PlainLoader.yaml_implicit_resolvers = kept        # numbers: without 1:59:59, which YAML 1.1 takes for one
    PlainLoader.add_implicit_resolver(standard["int"], _compiled(r"[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)"),
                                      list("-+0123456789"))
    PlainLoader.add_implicit_resolver(
        standard["float"], _compiled(r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?"
                                     r"|\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN)"), list("-+0123456789."))
    _loader = PlainLoader
    return PlainLoader


_loader: "type[yaml.SafeLoader] | None" = None        # made when the first YAML is read: not everybody has yaml


def _compiled(pattern: str) -> Any:
    import re

    return re.compile(f"(?:{pattern})$")


def _no_tag(loader: Any, node: Any) -> Any:
    raise _ContentError(f"line {node.start_mark.line + 1} has the tag {str(node.tag)[-60:]!r}, which is not supported")


# -------------------------------------------------------------------- messages

def shown(path: AnyPath) -> str:
    """A path for a message: bounded, and printable even if its name is not UTF-8."""
    return str(Path(path))[:300].encode("utf-8", "backslashreplace").decode("utf-8")


def _unreadable(path: AnyPath, error: type[MiniBertError], reason: Exception) -> MiniBertError:
    return error(f"{shown(path)} cannot be read: {getattr(reason, 'strerror', None) or reason}.")


def _named(content: Any) -> str:
    return {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}.get(
        type(content), "a number")


def _line(reason: Exception) -> str:
    """What a parser says, in one line of bounded length."""
    return " ".join(str(reason).split())[:300].rstrip(".")
