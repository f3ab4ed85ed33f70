"""Results as plain data: nested dictionaries and lists, as JSON holds them."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import Any, ClassVar

import numpy as np


class Result:
    """The base of a dataclass that is given out as plain data: its fields, and the properties named in `also`.

    A number that is not finite becomes None.
    """

    also: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        names = (*(field.name for field in fields(self)), *self.also)       # type: ignore[arg-type]
        return {name: finite(plain(getattr(self, name))) for name in names}


def plain(value: Any) -> Any:
    """Dataclasses and named tuples as dictionaries, arrays as lists; a value with `to_dict` is what that returns."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Enum):
        return value.value
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def finite(value: Any) -> Any:
    """Plain data with null for every number that is not finite, which JSON does not have."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def to_json(value: Any) -> bytes:
    """JSON has no NaN and no infinity: such a number becomes null."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:
        return json.dumps(finite(value), allow_nan=False, separators=(",", ":")).encode()
