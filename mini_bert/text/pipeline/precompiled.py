"""SentencePiece's precompiled character map: NFKC and more, as a trie of bytes and a list of replacements.

The file's bytes are

    size of the trie in bytes (4) | units of the trie (4 each) | replacements, each ending in a zero byte

The trie is a double array: a node is a place in the array of units, and its child for the byte b is at

    child = place XOR offset(unit[place]) XOR b         if the lowest byte of unit[child] is b

A node where a key ends has bit 8, and the unit at `place XOR offset` is the place of its replacement.

`tokenizers` asks for each grapheme cluster (what a reader sees as one character) of less than six bytes, and takes the
replacement of the *shortest* key that the cluster begins with; where there is none, it asks for each character.
SentencePiece itself takes the longest key at each place, whatever the clusters are; `replacements` gives both.
"""

import re
from functools import cache, cached_property

import numpy as np

from ...errors import VocabularyError
from .aligned import AlignedText, Change
from .unicode_tables import CONSONANTS, CONTROLS, JOINED, LINKERS, PICTURES, PREPENDED

_CACHED = 1 << 16
_SHORT = 6                    # bytes: longer clusters are looked at character by character


class CharacterMap:
    """The keys of a precompiled map and their replacements."""

    def __init__(self, data: bytes, source: str):
        size = int.from_bytes(data[:4], "little")
        if len(data) < 4 or size % 4 or not 4 <= size <= len(data) - 4:
            raise VocabularyError(f"{source}: precompiled_charsmap is cut off, or not a character map.")
        self._units: list[int] = np.frombuffer(data, "<u4", size // 4, 4).tolist()
        self._text = data[4 + size :]
        self._cache: dict[str, str | None] = {}
        try:
            self._text.decode("utf-8")
        except UnicodeDecodeError:
            raise VocabularyError(f"{source}: the replacements of precompiled_charsmap are not UTF-8.") from None

    def prefixes(self, key: bytes) -> list[tuple[int, str]]:
        """(length, replacement) of every key that these bytes begin with, the shortest first."""
        units, found = self._units, []
        place = self._offset(units[0])
        for length, byte in enumerate(key, 1):
            place ^= byte
            if byte == 0 or place >= len(units):
                break
            unit = units[place]
            if unit & 0x800000FF != byte:
                break
            place ^= self._offset(unit)
            if unit >> 8 & 1 and place < len(units):
                found.append((length, self._replacement(units[place] & 0x7FFFFFFF)))
        return found

    @staticmethod
    def _offset(unit: int) -> int:
        return (unit >> 10) << ((unit & 512) >> 6)

    def _replacement(self, place: int) -> str:
        end = self._text.find(b"\0", place)
        return self._text[place : end if end >= 0 else len(self._text)].decode("utf-8", "replace")

    def shortest(self, cluster: str) -> str | None:
        """The replacement of a cluster or a character, as `tokenizers` finds it."""
        if cluster in self._cache:
            return self._cache[cluster]
        found = self.prefixes(cluster.encode("utf-8"))
        if len(self._cache) >= _CACHED:
            self._cache.clear()
        self._cache[cluster] = answer = found[0][1] if found else None
        return answer

    @cached_property
    def _ascii(self) -> dict[int, str] | None:
        """A table of the printable ASCII characters; None if one of them does not become one character."""
        table = {c: found for c in range(32, 127) if (found := self.shortest(chr(c))) is not None}
        return table if all(len(found) == 1 for found in table.values()) else None

    def normalise(self, text: AlignedText) -> AlignedText:
        """The text as the normalizer `Precompiled` changes it."""
        if text.text.isascii() and text.text.isprintable() and self._ascii is not None:
            return text.map(self._ascii)
        changes: list[Change] = []
        for cluster in _clusters().findall(text.text):
            new = self.shortest(cluster) if len(cluster.encode("utf-8")) < _SHORT else None
            if new is not None:
                _replace(changes, len(cluster), new)
            else:
                for character in cluster:
                    new = self.shortest(character)
                    if new is None:
                        changes.append((character, 0))
                    else:
                        _replace(changes, 1, new)
        return text.change(changes)


def _replace(changes: list[Change], old: int, new: str) -> None:
    """Write `new` for `old` characters; with nothing to write, the character before takes the deletion along."""
    changes.extend((letter, int(n >= old)) for n, letter in enumerate(new))
    if len(new) < old and changes:
        letter, change = changes[-1]
        changes[-1] = letter, change + len(new) - old


@cache
def _clusters() -> re.Pattern[str]:
    """Grapheme clusters (Unicode's annex 29), as far as those of less than six bytes can be told from them.

    Flags are left out: a pair of regional indicators has eight bytes.
    """
    controls, before = CONTROLS.pattern(), PREPENDED.pattern()
    joined, virama = f"[{JOINED.pattern()}]", f"[{LINKERS.pattern()}]"
    consonant, picture = f"[{CONSONANTS.pattern()}]", f"[{PICTURES.pattern()}]"
    leading, vowel = "[\u1100-\u115f\ua960-\ua97c]", "[\u1160-\u11a7\ud7b0-\ud7c6]"
    trailing, open_syllable = "[\u11a8-\u11ff\ud7cb-\ud7fb]", f"[{''.join(map(chr, range(0xAC00, 0xD7A4, 28)))}]"
    bases = [f"{picture}(?:{joined}*\u200d{picture})*",
             f"{consonant}(?:(?:(?!{virama}){joined})*{virama}{joined}*{consonant})*",
             f"{leading}*(?:{open_syllable}{vowel}*|[\uac00-\ud7a3]|{vowel}+){trailing}*",
             f"{leading}+", f"{trailing}+", f"[^{controls}{before}]"]
    return re.compile(f"\r\n|[{controls}]|[{before}]*(?:{'|'.join(bases)}){joined}*|[{before}]+{joined}*")
