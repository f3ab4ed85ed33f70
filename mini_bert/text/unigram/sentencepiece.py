"""SentencePiece's .model files: a protocol buffer with the pieces and the normaliser, read by hand.

A message of a protocol buffer is a sequence of fields. Each begins with a number, its key = 8 × field number + kind:

    kind 0   a whole number, seven bits a byte, the lowest first; the eighth bit says that more follow
    kind 1   eight bytes
    kind 2   a length, and that many bytes: text, or a message inside
    kind 5   four bytes, here a float32

What is read of it is turned into the content of a tokenizer.json, so that there is one way from there on.
"""

import struct
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from ...errors import VocabularyError
from ..template import NOTHING, Template

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)        # types of pieces
_UNIGRAM = 1
_BRACKETED = ("[CLS]", "[SEP]", "[MASK]")
_TEMPLATES = [(_BRACKETED[:2], ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1")),
              (("<cls>", "<sep>"), ("$A <sep> <cls>:2", "$A <sep> $B:1 <sep>:1 <cls>:2"))]


@dataclass
class SentencePieceModel:
    """What a .model file says, as far as it is used; the defaults are those of the format."""

    pieces: list[tuple[str, float, int]] = field(default_factory=list)        # piece, score, type
    model_type: int = _UNIGRAM
    byte_fallback: bool = False
    charsmap: bytes = b""
    dummy_prefix: bool = True
    remove_extra_spaces: bool = True
    escape_spaces: bool = True
    spaces_behind: bool = False                   # ▁ at the end of a word


class _Message:
    """The fields of a message; raises ValueError where it is cut off or malformed."""

    def __init__(self, data: bytes):
        self.data = data

    def __iter__(self) -> Iterator[tuple[int, int | bytes]]:
        place = 0
        while place < len(self.data):
            key, place = self._number(place)
            kind = key & 7
            value: int | bytes
            if kind == 0:
                value, place = self._number(place)
            elif kind in (1, 2, 5):
                size, place = self._number(place) if kind == 2 else (8 if kind == 1 else 4, place)
                value, place = self.data[place : place + size], place + size
                if place > len(self.data):
                    raise ValueError
            else:
                raise ValueError
            yield key >> 3, value

    def _number(self, place: int) -> tuple[int, int]:
        value = 0
        for shift in range(0, 70, 7):
            byte = self.data[place : place + 1]
            if not byte:
                raise ValueError
            place += 1
            value |= (byte[0] & 127) << shift
            if byte[0] < 128:
                return value, place
        raise ValueError


def parse_model(data: bytes, source: str) -> SentencePieceModel:
    """The model in these bytes; what is no SentencePiece model, or one of another kind, is refused."""
    model = SentencePieceModel()
    try:
        for number, value in _Message(data):
            if number == 1:
                model.pieces.append(_piece(_bytes(value)))
            elif number in (2, 3):
                _settings(model, number, _bytes(value))
    except (ValueError, struct.error):
        raise VocabularyError(f"{source} cannot be read as a SentencePiece model: it is cut off or damaged.") from None
    if not model.pieces or model.model_type != _UNIGRAM:
        raise VocabularyError(f"{source} is a SentencePiece model of another type than unigram, and is not supported."
                              if model.pieces else f"{source} is not a SentencePiece model: it has no pieces.")
    kinds = [kind for _, _, kind in model.pieces]
    if kinds.count(UNKNOWN) != 1 or UNUSED in kinds or model.spaces_behind or not model.escape_spaces \
            or not all(isfinite(score) for _, score, _ in model.pieces):
        raise VocabularyError(f"{source}: models with unused pieces, with white space at the ends of words, without "
                              "one unknown piece, or with infinite scores are not supported.")
    return model


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError
    return value


def _piece(data: bytes) -> tuple[str, float, int]:
    text, score, kind = "", 0.0, NORMAL
    for number, value in _Message(data):
        if number == 1:
            text = _bytes(value).decode("utf-8")
        elif number == 2:
            score = struct.unpack("<f", _bytes(value))[0]
        elif number == 3:
            kind = int(value)
    return text, score, kind


_SETTINGS = {(2, 3): "model_type", (2, 24): "spaces_behind", (2, 35): "byte_fallback", (3, 2): "charsmap",
             (3, 3): "dummy_prefix", (3, 4): "remove_extra_spaces", (3, 5): "escape_spaces"}


def _settings(model: SentencePieceModel, message: int, data: bytes) -> None:
    for number, value in _Message(data):
        name = _SETTINGS.get((message, number))
        if name is not None:
            kind = type(getattr(model, name))
            setattr(model, name, _bytes(value) if kind is bytes else kind(value))


# -------------------------------------------------------------------- as a tokenizer.json

def to_tokenizer_json(model: SentencePieceModel, *, lowercase: bool, strip_accents: bool, added: Mapping[str, Any],
                      around: tuple[str, str] | None, source: str) -> dict[str, Any]:
    """The content of a tokenizer.json that gives the same ids; `around` is what stands around one text and two.

    Control and user-defined pieces become added tokens, as do those of added_tokens.json. A vocabulary with [CLS] and
    [SEP] but no [MASK], as DeBERTa's, gets one.
    """
    names = [piece for piece, _, _ in model.pieces]
    tokens = {piece: (i, kind != USER_DEFINED) for i, (piece, _, kind) in enumerate(model.pieces)
              if kind in (UNKNOWN, CONTROL, USER_DEFINED) and piece}
    new = sorted(added, key=lambda name: (len(str(added[name])), str(added[name]))) or \
        ([_BRACKETED[2]] if set(_BRACKETED) - set(names) == {_BRACKETED[2]} else [])
    tokens |= {name: (len(names) + n, True) for n, name in enumerate(name for name in new if name not in names)}
    ids = {name: i for i, name in enumerate(names)} | {name: i for name, (i, _) in tokens.items()}
    if any(ids.get(name) != number for name, number in added.items()):
        raise VocabularyError(f"{source}: the ids in added_tokens.json must follow those of the model, which has "
                              f"{len(names)} pieces.")
    around = around or next((lines for needed, lines in _TEMPLATES if set(needed) <= ids.keys()), None)
    template = NOTHING if around is None else Template.parse(*around, ids)
    within = any("▁" in piece[1:] for piece in names)         # then a piece can go across words
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always" if model.dummy_prefix else "never",
                 "split": not within}
    back: list[dict[str, Any]] = [{"type": "ByteFallback"}] if model.byte_fallback else []
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": name, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": special} for name, (i, special) in sorted(
                              tokens.items(), key=lambda entry: entry[1])],
        "normalizer": {"type": "Sequence", "normalizers": _normalizers(model, lowercase, strip_accents)},
        "pre_tokenizer": metaspace, "post_processor": None if template is NOTHING else template.to_json(),
        "decoder": {"type": "Sequence", "decoders": [*back, metaspace]} if back else metaspace,
        "model": {"type": "Unigram", "unk_id": [kind for _, _, kind in model.pieces].index(UNKNOWN),
                  "vocab": [[piece, score] for piece, score, _ in model.pieces], "byte_fallback": model.byte_fallback},
    }


def _normalizers(model: SentencePieceModel, lowercase: bool, strip_accents: bool) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if strip_accents:
        parts += [{"type": "Replace", "pattern": {"String": marks}, "content": '"'} for marks in ("``", "''")]
        parts += [{"type": "NFKD"}, {"type": "StripAccents"}]
    if lowercase:
        parts.append({"type": "Lowercase"})
    if model.charsmap:
        parts.append({"type": "Precompiled", "precompiled_charsmap": b64encode(model.charsmap).decode("ascii")})
    if model.remove_extra_spaces:
        parts += [{"type": "Strip", "strip_left": True, "strip_right": True},
                  {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]
    return parts
