"""Settings that come from files and command lines: a dataclass whose values are checked by their fields' types.

YAML reads 1e-4 as a string, so a string that spells a number is one; an unknown key is an error that names
the nearest valid one.
"""

import reprlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from typing import Any, ClassVar, Self

from .errors import ConfigError

LARGEST = (1 << 63) - 1               # of a whole number: what arrays and saved states hold


@dataclass(frozen=True)
class Settings:
    """The base of a frozen dataclass whose fields all have defaults."""

    TITLE: ClassVar[str] = "The settings"             # what an error calls them

    def __post_init__(self) -> None:
        for field in fields(self):
            value = self._coerced(field.name, getattr(self, field.name), type(field.default))
            object.__setattr__(self, field.name, value)

    def _coerced(self, name: str, value: Any, kind: type) -> Any:
        """The value of a field; for settings that may have values of another kind than their default."""
        return coerce(name, value, kind)

    def _check_words(self) -> None:
        """Refuse words that name nothing; for tables that are built on the class itself."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: str | None = None) -> Self:
        """Settings from a mapping; an unknown key is an error that names the nearest valid one."""
        source = cls.TITLE if source is None else source
        if not isinstance(values, Mapping):
            raise ConfigError(f"{source} must be a mapping of names to values, not {type(values).__name__}.")
        known = [field.name for field in fields(cls)]
        for key in values:
            if key not in known:
                near = get_close_matches(str(key)[:100], known, n=1, cutoff=0.0)[0]
                raise ConfigError(f"{source} has an unknown key {_shown(key)}; the nearest valid key is {near!r}.")
        try:
            settings = cls(**values)
            settings._check_words()
        except ConfigError as error:
            raise ConfigError(f"{source}: {error}") from None
        return settings

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def coerce(name: str, value: Any, kind: type) -> Any:
    """`value` as `kind`: bool, str, int or float."""
    if kind is bool:
        words = {"true": True, "false": False}
        accepted = words.get(value.lower()) if isinstance(value, str) else value
        if not isinstance(accepted, bool):
            raise ConfigError(f"{name} must be true or false, not {_shown(value)}.")
        return accepted
    if kind is str:
        if not isinstance(value, str):
            raise ConfigError(f"{name} must be a word, not {_shown(value)}.")
        return value
    what = "a whole number" if kind is int else "a number"
    try:
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise TypeError
        number = kind(value)
        if kind is int and not isinstance(value, str) and number != value:
            raise ValueError
        if kind is int and not -LARGEST <= number <= LARGEST:
            what = f"a whole number up to {LARGEST}"
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"{name} must be {what}, not {_shown(value)}.") from None
    return number


def _shown(value: Any) -> str:
    """A value for a message, not longer than a line."""
    return reprlib.repr(value)
