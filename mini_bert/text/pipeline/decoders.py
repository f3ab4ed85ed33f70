"""The decoders of a tokenizer.json: pieces to text. Each is a function of the list of pieces; the result is joined."""

from collections.abc import Callable
from typing import Any

from ...errors import VocabularyError
from .normalizers import read_replacement
from .pre_tokenizers import Metaspace, read_metaspace

Decoder = Callable[[list[str]], list[str]]


def decode_metaspace(pieces: list[str], metaspace: Metaspace) -> list[str]:
    """▁ becomes a space; in the first piece it is dropped, unless the pre-tokenizer never puts one there."""
    mark, dropped = metaspace.replacement, metaspace.prepend != "never"
    return [piece.replace(mark, "" if dropped and not i else " ") for i, piece in enumerate(pieces)]


def decode_bytes(pieces: list[str]) -> list[str]:
    """Runs of pieces such as <0xE2> become the text of these bytes; invalid ones become a � each."""
    texts: list[str] = []
    run = bytearray()
    for piece in [*pieces, ""]:
        byte = _byte(piece)
        if byte is not None:
            run.append(byte)
            continue
        if run:
            try:
                texts.append(run.decode("utf-8"))
            except UnicodeDecodeError:
                texts += ["�"] * len(run)
            run = bytearray()
        texts.append(piece)
    return texts[:-1]


def _byte(piece: str) -> int | None:
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        try:
            return int(piece[3:5], 16)
        except ValueError:
            return None
    return None


def strip_pieces(pieces: list[str], content: str, left: int, right: int) -> list[str]:
    """Up to `left` times `content` removed at the beginning of each piece, and up to `right` times at its end."""
    texts = []
    for piece in pieces:
        start, end = 0, len(piece)
        while start < min(left, end) and piece[start] == content:
            start += 1
        while end > max(len(piece) - right, start) and piece[end - 1] == content:
            end -= 1
        texts.append(piece[start:end])
    return texts


# -------------------------------------------------------------------- reading

def read_decoder(content: Any, source: str) -> list[Decoder] | None:
    """The functions, in order, that the `decoder` of a tokenizer.json describes; None if there is none."""
    if content is None:
        return None
    kind = content.get("type") if isinstance(content, dict) else None
    if kind == "Sequence" and isinstance(content.get("decoders"), list):
        return [function for part in content["decoders"] for function in read_decoder(part, source) or []]
    if kind not in _READERS:
        raise VocabularyError(f"{source}: the decoder {str(kind)[:60]!r} is not supported; {', '.join(_READERS)} and "
                              "Sequence are.")
    return [_READERS[kind](content, f"{source}: the decoder {kind}")]


def _metaspace(content: dict[str, Any], where: str) -> Decoder:
    metaspace = read_metaspace(content, where)
    return lambda pieces: decode_metaspace(pieces, metaspace)


def _replace(content: dict[str, Any], where: str) -> Decoder:
    pattern, new = read_replacement(content, where)
    return lambda pieces: [pattern.sub(lambda match: new, piece) for piece in pieces]


def _strip(content: dict[str, Any], where: str) -> Decoder:
    letter, left, right = content.get("content"), content.get("start"), content.get("stop")
    if not isinstance(letter, str) or len(letter) != 1 or type(left) is not int or type(right) is not int:
        raise VocabularyError(f"{where} must have a content of one character, and whole numbers for start and stop.")
    return lambda pieces: strip_pieces(pieces, letter, left, right)


_READERS: dict[str, Callable[[dict[str, Any], str], Decoder]] = {
    "Metaspace": _metaspace, "Replace": _replace, "Strip": _strip,
    "ByteFallback": lambda content, where: decode_bytes,
    "Fuse": lambda content, where: lambda pieces: ["".join(pieces)],
}
