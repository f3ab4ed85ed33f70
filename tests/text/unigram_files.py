"""Small Unigram tokenizers, as the content of a tokenizer.json and as a SentencePiece model."""

import struct
from collections.abc import Sequence
from typing import Any

PIECES = [("<pad>", 0.0), ("<unk>", 0.0), ("[CLS]", 0.0), ("[SEP]", 0.0), ("[MASK]", 0.0), ("▁", -2.0), ("h", -4.0),
          ("u", -4.0), ("g", -4.0), ("hu", -5.0), ("ug", -3.5), ("hug", -9.0), ("▁hug", -6.0), ("s", -3.0), ("i", -4.5),
          ("▁a", -3.0), ("f", -5.0), ("fi", -6.0), ("e", -4.0)]


def tokenizer_json(pieces: Sequence[tuple[str, float]] = PIECES, **changes: Any) -> dict[str, Any]:
    """ALBERT's layout with a few pieces; `changes` replace its parts."""
    tokens = [{"id": i, "content": name, "single_word": False, "lstrip": name == "[MASK]", "rstrip": False,
               "normalized": False, "special": True} for i, (name, _) in enumerate(pieces[:5])]
    around = {name: {"id": name, "ids": [i], "tokens": [name]} for i, name in ((2, "[CLS]"), (3, "[SEP]"))}
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}

    def part(kind: str, name: str, number: int) -> dict[str, Any]:
        return {kind: {"id": name, "type_id": number}}

    single = [part("SpecialToken", "[CLS]", 0), part("Sequence", "A", 0), part("SpecialToken", "[SEP]", 0)]
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens,
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "StripAccents"},
                                                           {"type": "Lowercase"}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace]},
        "post_processor": {"type": "TemplateProcessing", "single": single, "special_tokens": around,
                           "pair": [*single, part("Sequence", "B", 1), part("SpecialToken", "[SEP]", 1)]},
        "decoder": metaspace,
        "model": {"type": "Unigram", "unk_id": 1, "vocab": [list(piece) for piece in pieces], "byte_fallback": False},
        **changes,
    }


def _field(number: int, value: int | bytes | float) -> bytes:
    if isinstance(value, bytes):
        return _number(number << 3 | 2) + _number(len(value)) + value
    if isinstance(value, float):
        return _number(number << 3 | 5) + struct.pack("<f", value)
    return _number(number << 3) + _number(value)


def _number(value: int) -> bytes:
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + _number(rest) if rest else bytes([low])


def sentencepiece_model(pieces: Sequence[tuple[str, float, int]], *, charsmap: bytes = b"", model_type: int = 1,
                        byte_fallback: bool = False) -> bytes:
    """A .model file: pieces with scores and types, and the settings that matter."""
    written = [_field(1, _field(1, piece.encode()) + _field(2, score) + _field(3, kind))
               for piece, score, kind in pieces]
    trainer = _field(3, model_type) + _field(35, int(byte_fallback))
    return b"".join([*written, _field(2, trainer), _field(3, _field(1, b"own") + _field(2, charsmap)), _field(4, b"")])
