"""The normalizers of a tokenizer.json: each is a function of a text with its alignment.

`read_normalizer` makes one function of the description in the file:

    {"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]}
"""

import binascii
import re
from base64 import b64decode
from collections.abc import Callable
from functools import partial
from re import Pattern
from typing import Any

from ...errors import VocabularyError
from ..wordpiece.unicode_tables import LOWER
from .aligned import AlignedText
from .patterns import SPACES, compile_pattern
from .precompiled import CharacterMap
from .unicode_forms import to_form
from .unicode_tables import ACCENTS

Normalizer = Callable[[AlignedText], AlignedText]


class _Lowered(dict[int, str]):
    """A table for `str.translate`: every character in lower case by itself, unlike `str.lower`, which looks around."""

    def __missing__(self, code: int) -> str:
        self[code] = lowered = LOWER.get(code) or chr(code).lower()
        return lowered


_LOWERED = _Lowered()
# what Nmt deletes, and what it turns into a space
_NMT_DELETED = re.compile("[\x01-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]")
_NMT_SPACES = dict.fromkeys([9, 10, 12, 13, 0x1680, *range(0x200B, 0x2010), 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD],
                            " ")


def lowercase(text: AlignedText) -> AlignedText:
    return text.map(_LOWERED)


def strip_accents(text: AlignedText) -> AlignedText:
    return text if text.text.isascii() else text.keep(character not in ACCENTS for character in text.text)


def strip(text: AlignedText, left: bool, right: bool) -> AlignedText:
    """White space deleted at the ends."""
    start, end = 0, len(text.text)
    while left and start < end and text.text[start] in SPACES:
        start += 1
    while right and end > start and text.text[end - 1] in SPACES:
        end -= 1
    kept = slice(start, end)
    return text if end - start == len(text.text) else AlignedText(text.text[kept], text.spans[kept], text.start)


def nmt(text: AlignedText) -> AlignedText:
    """The cleaning of SentencePiece's nmt rules: control characters deleted, invisible spaces made visible."""
    return text.keep(not _NMT_DELETED.match(character) for character in text.text).map(_NMT_SPACES)


# -------------------------------------------------------------------- reading

def read_normalizer(content: Any, source: str) -> list[Normalizer]:
    """The functions, in order, that the `normalizer` of a tokenizer.json describes."""
    if content is None:
        return []
    kind = content.get("type") if isinstance(content, dict) else None
    if kind == "Sequence" and isinstance(content.get("normalizers"), list):
        return [function for part in content["normalizers"] for function in read_normalizer(part, source)]
    if kind not in _READERS:
        raise VocabularyError(f"{source}: the normalizer {str(kind)[:60]!r} is not supported; "
                              f"{', '.join(_READERS)} and Sequence are.")
    return [_READERS[kind](content, f"{source}: the normalizer {kind}")]


def _replace(content: dict[str, Any], where: str) -> Normalizer:
    pattern, new = read_replacement(content, where)
    return lambda text: text.replace(pattern, new)


def read_replacement(content: dict[str, Any], where: str) -> tuple[Pattern[str], str]:
    """The pattern and the new text of a Replace."""
    pattern, new = content.get("pattern"), content.get("content")
    kind, value = next(iter(pattern.items())) if isinstance(pattern, dict) and len(pattern) == 1 else ("", None)
    if kind not in ("String", "Regex") or not isinstance(value, str) or not value or not isinstance(new, str):
        raise VocabularyError(f"{where} must have a pattern, a String or a Regex, and a content.")
    return compile_pattern(value, where) if kind == "Regex" else re.compile(re.escape(value)), new


def _strip(content: dict[str, Any], where: str) -> Normalizer:
    left, right = content.get("strip_left"), content.get("strip_right")
    if not isinstance(left, bool) or not isinstance(right, bool):
        raise VocabularyError(f"{where} must have strip_left and strip_right, each true or false.")
    return partial(strip, left=left, right=right)


def _precompiled(content: dict[str, Any], where: str) -> Normalizer:
    data = content.get("precompiled_charsmap")
    try:
        return CharacterMap(b64decode(data if isinstance(data, str) else "", validate=True), where).normalise
    except binascii.Error:
        raise VocabularyError(f"{where}: precompiled_charsmap is not base64.") from None
    except ValueError as reason:                  # characters outside ASCII
        if isinstance(reason, VocabularyError):
            raise
        raise VocabularyError(f"{where}: precompiled_charsmap is not base64.") from None


def _prepend(content: dict[str, Any], where: str) -> Normalizer:
    new = content.get("prepend")
    if not isinstance(new, str):
        raise VocabularyError(f"{where} must have a text to prepend.")
    return lambda text: text.prepend(new)


_READERS: dict[str, Callable[[dict[str, Any], str], Normalizer]] = {
    **{form: lambda content, where, form=form: partial(to_form, form)                     # type: ignore[misc]
       for form in ("NFC", "NFD", "NFKC", "NFKD")},
    "Lowercase": lambda content, where: lowercase, "StripAccents": lambda content, where: strip_accents,
    "Nmt": lambda content, where: nmt, "Replace": _replace, "Strip": _strip, "Precompiled": _precompiled,
    "Prepend": _prepend,
}


def is_local(content: Any) -> bool:
    """Does what the `normalizer` does to a word not depend on the words around it, behind single spaces?"""
    if content is None:
        return True
    kind: str = content["type"]
    pattern: dict[str, str] = content.get("pattern") or {}
    if kind == "Sequence":
        return all(map(is_local, content["normalizers"]))
    if kind != "Replace":
        return kind != "Prepend"
    if "String" in pattern:
        return " " not in pattern["String"]
    compiled, new = read_replacement(content, "")
    only_spaces = not re.sub(r"\\[snrtfv]|\{\d*,?\d*\}|[ \[\]|+\t\n\r]", "", pattern["Regex"])
    return only_spaces and compiled.sub(new, " ") == " "
