"""Tokenizer files of other makers: what they ask for must be what we do, or their ids would not be ours.

`truncation`, `padding` and `decoder` are left aside: they are no part of the ids of a text.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...errors import VocabularyError
from ..vocabulary import CONTINUATION, SPECIAL_TOKENS

ROLES = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL_TOKENS, strict=True))
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized")
_WHOLE = {
    "model.type": "WordPiece", "model.unk_token": "[UNK]", "model.continuing_subword_prefix": CONTINUATION,
    "normalizer.type": "BertNormalizer", "normalizer.clean_text": True, "normalizer.handle_chinese_chars": True,
    "pre_tokenizer.type": "BertPreTokenizer",
}
_CLASSES = {f"{name}Tokenizer{fast}" for name in ("Bert", "ConvBert", "DistilBert", "Electra", "MobileBert")
            for fast in ("", "Fast")}


def check_whole(whole: Mapping[str, Any], path: Path, max_word_length: int) -> None:
    """Refuse a tokenizer.json that does not do as BERT does."""
    for place, wanted in {**_WHOLE, "model.max_input_chars_per_word": max_word_length}.items():
        part, key = place.split(".")
        found = whole.get(part)
        value = found.get(key) if isinstance(found, dict) else None
        if value != wanted and not (place == "model.type" and isinstance(found, dict) and key not in found):
            raise _refusal(path, place, value, wanted)
    ids = whole["model"].get("vocab")
    if not isinstance(ids, dict) or not all(isinstance(number, int) for number in ids.values()):
        raise VocabularyError(f"{path}: model.vocab must have an id for each piece.")
    if sorted(ids.values()) != list(range(len(ids))):
        raise VocabularyError(f"{path}: the ids of model.vocab are not 0 to {len(ids) - 1}.")
    _check_added(whole.get("added_tokens") or [], "added_tokens", path, ids)
    pair = ids.get("[CLS]"), ids.get("[SEP]")
    older = {"type": "BertProcessing", "cls": ["[CLS]", pair[0]], "sep": ["[SEP]", pair[1]]}
    if whole.get("post_processor") not in (template(*pair), older):
        raise VocabularyError(f"{path}: post_processor does not make [CLS] A [SEP] B [SEP] with token types 0 and 1; "
                              "no other can be opened.")


def check_config(config: Mapping[str, Any], path: Path, alone: bool) -> None:
    """Refuse a tokenizer_config.json that does not do as BERT does; `alone`: there is no tokenizer.json."""
    for key in ("tokenize_chinese_chars", "do_basic_tokenize"):
        if config.get(key, True) is not True:
            raise _refusal(path, key, config[key], True)
    for role, token in ROLES.items():
        if config.get(role) is not None and _content(config[role]) != token:
            raise _refusal(path, role, _content(config[role]), token)
    for key in ("never_split", "additional_special_tokens", "extra_special_tokens"):
        tokens = config.get(key) or []
        _check_names(tokens.values() if isinstance(tokens, dict) else tokens, key, path)
    decoder = config.get("added_tokens_decoder") or {}
    _check_added(decoder.values() if isinstance(decoder, dict) else decoder, "added_tokens_decoder", path)
    kind = config.get("tokenizer_class")
    if alone and kind is not None and kind not in _CLASSES:
        raise _refusal(path, "tokenizer_class", kind, "BertTokenizer")


def check_added_file(added: Mapping[str, Any], path: Path) -> None:
    """Refuse an added_tokens.json with tokens of its own."""
    _check_names(added, "it", path)


def template(cls: int | None, sep: int | None) -> dict[str, Any]:
    """tokenizer.json's words for [CLS] A [SEP] and [CLS] A [SEP] B [SEP]."""
    def part(kind: str, name: str, type_id: int) -> dict[str, Any]:
        return {kind: {"id": name, "type_id": type_id}}

    single = [part("SpecialToken", "[CLS]", 0), part("Sequence", "A", 0), part("SpecialToken", "[SEP]", 0)]
    return {"type": "TemplateProcessing", "single": single,
            "pair": [*single, part("Sequence", "B", 1), part("SpecialToken", "[SEP]", 1)],
            "special_tokens": {token: {"id": token, "ids": [number], "tokens": [token]}
                               for token, number in (("[CLS]", cls), ("[SEP]", sep))}}


def _check_added(tokens: Any, key: str, path: Path, ids: Mapping[str, int] | None = None) -> None:
    _check_names(tokens, key, path)
    for token in tokens:
        if not isinstance(token, dict):
            raise VocabularyError(f"{path}: {key} must be objects with content and flags.")
        name = token["content"]
        flag = next((flag for flag in _FLAGS if token.get(flag)), None)
        if flag is not None:
            raise _refusal(path, f"{flag} of {name} in {key}", token[flag], False)
        if ids is not None and token.get("id") != ids.get(name):
            raise _refusal(path, f"id of {name} in {key}", token.get("id"), ids.get(name))


def _check_names(tokens: Any, key: str, path: Path) -> None:
    """All of these tokens must be special ones."""
    for token in tokens if isinstance(tokens, Iterable) else [tokens]:
        if _content(token) not in SPECIAL_TOKENS:
            raise VocabularyError(f"{path}: {key} has the token {json.dumps(_content(token))}; only "
                                  f"{' '.join(SPECIAL_TOKENS)} can be opened.")


def _content(token: Any) -> Any:
    """What a token is spelled as; some files have objects with flags in place of strings."""
    return token.get("content") if isinstance(token, dict) else token


def _refusal(path: Path, key: str, value: Any, wanted: Any) -> VocabularyError:
    return VocabularyError(f"{path}: {key} is {json.dumps(value)[:60]}; only {json.dumps(wanted)} can be opened.")
