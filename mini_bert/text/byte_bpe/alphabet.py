"""GPT-2's alphabet: a printable character for each of the 256 bytes, in which pieces are written into files.

A byte that is a printable character of Latin-1 stands for itself: "a" is the byte 97. The other 68, white space and
control characters, take the characters from 256 on, in order: the line end, byte 10, is "Ċ" (266), and the space, byte
32, is "Ġ" (288).
"""

from ...errors import VocabularyError

_PRINTABLE = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
CHARACTERS = "".join(chr(byte) if byte in _PRINTABLE else chr(256 + _OTHERS.index(byte)) for byte in range(256))
BYTES = {character: byte for byte, character in enumerate(CHARACTERS)}
SPACE = CHARACTERS[ord(" ")]              # Ġ


def to_characters(data: bytes) -> str:
    """Bytes as they are written in a vocabulary."""
    return data.decode("latin-1").translate(_TABLE)


def to_bytes(piece: str) -> bytes | None:
    """The bytes of a piece; None if it has another character, as special tokens may have."""
    try:
        return bytes(map(BYTES.__getitem__, piece))
    except KeyError:
        return None


def require_bytes(piece: str, source: str) -> bytes:
    """The bytes of a piece that is merged from others."""
    found = to_bytes(piece)
    if found is None:
        raise VocabularyError(f"{source} merges the piece {piece[:60]!r}, which has characters that stand for no byte.")
    return found


_TABLE = dict(enumerate(CHARACTERS))
