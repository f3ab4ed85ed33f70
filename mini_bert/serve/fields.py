"""The fields of a request: each kind of value is read and described for OpenAPI in one place.

A value of another kind is refused with a sentence that names the field. So is a field that the address does not know,
since a misspelt one would otherwise be ignored.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from ..errors import InputError

Schema = dict[str, Any]
_REQUIRED: Any = object()


@dataclass(frozen=True)
class Kind:
    """A kind of value: `read(value, name)` returns it or raises InputError."""

    schema: Schema
    read: Callable[[Any, str], Any]


@dataclass(frozen=True)
class Field:
    """A field of a JSON object; without a default it must be given. null is the default."""

    name: str
    kind: Kind
    about: str
    default: Any = _REQUIRED

    @property
    def required(self) -> bool:
        return self.default is _REQUIRED

    def schema(self) -> Schema:
        default = {} if self.required or self.default is None else {"default": self.default}
        return {**self.kind.schema, "description": self.about, **default}


def read_fields(fields: Sequence[Field], given: Any) -> dict[str, Any]:
    """The values of all fields from the JSON of a request."""
    if not isinstance(given, dict):
        raise InputError(f"The request must be one JSON object, not {_named(given)}.")
    names = [field.name for field in fields]
    for name, value in given.items():
        if name not in names and value is not None:
            near = get_close_matches(name[:100], names, n=1)
            meant = f"did you mean {near[0]}?" if near else f"the fields are {', '.join(names)}."
            raise InputError(f"There is no field {name[:100]!r} here: {meant}")
    found = {}
    for field in fields:
        value = given.get(field.name)
        if value is None and field.required:
            raise InputError(f"The field {field.name} is missing.")
        found[field.name] = field.default if value is None else field.kind.read(value, field.name)
    return found


def object_schema(fields: Sequence[Field]) -> Schema:
    """The schema of a request."""
    return {"type": "object", "additionalProperties": False,
            "required": [field.name for field in fields if field.required],
            "properties": {field.name: field.schema() for field in fields}}


# -------------------------------------------------------------------- kinds

def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"The field {name} must be text, not {_named(value)}.")
    return value


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"The field {name} must be true or false, not {_named(value)}.")
    return value


def whole(least: int, most: int) -> Kind:
    """A whole number in a range."""
    def read(value: Any, name: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            shown = value if isinstance(value, int | float) and not isinstance(value, bool) else _named(value)
            raise InputError(f"The field {name} must be a whole number from {least} to {most}, not {shown}.")
        return value

    return Kind({"type": "integer", "minimum": least, "maximum": most}, read)


def one_of(**words: str) -> Kind:
    """One of a few words, each with its meaning."""
    def read(value: Any, name: str) -> str:
        if value not in words or not isinstance(value, str):
            shown = repr(value[:40]) if isinstance(value, str) else _named(value)
            raise InputError(f"The field {name} must be {' or '.join(words)}, not {shown}.")
        return value

    return Kind({"type": "string", "enum": list(words)}, read)


def _texts(value: Any, name: str) -> list[str]:
    """A text or a list of texts, as a list."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list):
        raise InputError(f"The field {name} must be a text or a list of texts, not {_named(value)}.")
    if not texts:
        raise InputError(f"The field {name} is an empty list; give at least one text.")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"Element {number} of {name} must be text, not {_named(text)}.")
    return texts


def _inputs(value: Any, name: str) -> list[str | list[int]]:
    """A text, a list of texts, the ids of a text, or a list of those, as a list."""
    if isinstance(value, list) and value and _is_ids(value):
        return [value]
    if not isinstance(value, list) or not any(isinstance(item, list) for item in value):
        found: list[Any] = _texts(value, name)
        return found
    for number, item in enumerate(value):
        if not isinstance(item, str) and not _is_ids(item):
            raise InputError(f"Element {number} of {name} must be a text or a list of ids of tokens.")
    return value


def _is_ids(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


Single = tuple[str, str | None]


@dataclass(frozen=True)
class Asked:
    """What is to be predicted: texts or pairs of texts, and whether they came as a list."""

    records: list[Single]
    many: bool


def _records(value: Any, name: str) -> Asked:
    """As text-embeddings-inference reads it: "a", ["a", "its pair"], or a list of [["a"], ["a", "its pair"], ...]."""
    if isinstance(value, str):
        return Asked([(value, None)], False)
    if not isinstance(value, list) or not value:
        raise InputError(f"The field {name} must be a text, a pair of texts, or a list of lists of one or two texts.")
    if all(isinstance(item, str) for item in value):
        if len(value) > 2:
            raise InputError(f"A list of texts in {name} is a pair; give several as a list of lists: "
                             '[["one text"], ["another", "and its pair"]].')
        return Asked([(value[0], value[1] if len(value) == 2 else None)], False)
    records: list[Single] = []
    for number, item in enumerate(value):
        texts = [item] if isinstance(item, str) else item
        if not isinstance(texts, list) or len(texts) not in (1, 2) or not all(isinstance(one, str) for one in texts):
            raise InputError(f"Element {number} of {name} must be a list of one or two texts.")
        records.append((texts[0], texts[1] if len(texts) == 2 else None))
    return Asked(records, True)


_STRING: Schema = {"type": "string"}
_IDS: Schema = {"type": "array", "items": {"type": "integer", "minimum": 0}}
TEXT = Kind(_STRING, _text)
FLAG = Kind({"type": "boolean"}, _flag)
TEXTS = Kind({"oneOf": [_STRING, {"type": "array", "items": _STRING, "minItems": 1}]}, _texts)
INPUTS = Kind({"oneOf": [_STRING, {"type": "array", "items": _STRING, "minItems": 1}, _IDS,
                         {"type": "array", "items": _IDS, "minItems": 1}]}, _inputs)
_PAIR: Schema = {"type": "array", "items": _STRING, "minItems": 1, "maxItems": 2}
RECORDS = Kind({"oneOf": [_STRING, _PAIR, {"type": "array", "items": {"oneOf": [_STRING, _PAIR]}}]}, _records)


def _named(value: Any) -> str:
    return {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}.get(
        type(value), "a number")
