"""Checks of tokenizer files from elsewhere: settings that would give other ids than ours are refused.

`truncation`, `padding` and `decoder` are not checked, since they do not change the ids of a text.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...errors import VocabularyError
from ..vocabulary import CONTINUATION, SPECIAL_TOKENS

ROLES = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL_TOKENS, strict=True))
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized")
_REQUIRED = {
    "model.type": "WordPiece", "model.unk_token": "[UNK]", "model.continuing_subword_prefix": CONTINUATION,
    "normalizer.type": "BertNormalizer", "normalizer.clean_text": True, "normalizer.handle_chinese_chars": True,
    "pre_tokenizer.type": "BertPreTokenizer",
}
_CLASSES = {f"{name}Tokenizer{fast}" for name in ("Bert", "ConvBert", "DistilBert", "Electra", "MobileBert")
            for fast in ("", "Fast")}


def check_tokenizer_json(content: Mapping[str, Any], path: Path, max_word_length: int) -> None:
    """Refuse a tokenizer.json whose settings are not BERT's."""
    for place, wanted in {**_REQUIRED, "model.max_input_chars_per_word": max_word_length}.items():
        part, key = place.split(".")
        found = content.get(part)
        value = found.get(key) if isinstance(found, dict) else None
        if value != wanted and not (place == "model.type" and isinstance(found, dict) and key not in found):
            raise _unsupported(path, place, value, wanted)
    ids = content["model"].get("vocab")
    if not isinstance(ids, dict) or not all(type(number) is int for number in ids.values()):
        raise VocabularyError(f"{path}: model.vocab must map each piece to an id.")
    if sorted(ids.values()) != list(range(len(ids))):
        raise VocabularyError(f"{path}: the ids of model.vocab must be 0 to {len(ids) - 1}.")
    _check_added(content.get("added_tokens") or [], "added_tokens", path, ids)
    pair = ids.get("[CLS]"), ids.get("[SEP]")
    older = {"type": "BertProcessing", "cls": ["[CLS]", pair[0]], "sep": ["[SEP]", pair[1]]}
    if content.get("post_processor") not in (template(*pair), older):
        raise VocabularyError(f"{path}: post_processor must make [CLS] A [SEP] B [SEP] with token types 0 and 1; "
                              "other templates are not supported.")


def check_config(config: Mapping[str, Any], path: Path, alone: bool) -> None:
    """Refuse a tokenizer_config.json whose settings are not BERT's; `alone` if there is no tokenizer.json."""
    for key in ("tokenize_chinese_chars", "do_basic_tokenize"):
        if config.get(key, True) is not True:
            raise _unsupported(path, key, config[key], True)
    for role, token in ROLES.items():
        if config.get(role) is not None and _content(config[role]) != token:
            raise _unsupported(path, role, _content(config[role]), token)
    for key in ("never_split", "additional_special_tokens", "extra_special_tokens"):
        tokens = config.get(key) or []
        _check_special(tokens.values() if isinstance(tokens, dict) else tokens, key, path)
    decoder = config.get("added_tokens_decoder") or {}
    _check_added(decoder.values() if isinstance(decoder, dict) else decoder, "added_tokens_decoder", path)
    kind = config.get("tokenizer_class")
    if alone and kind is not None and (not isinstance(kind, str) or kind not in _CLASSES):
        raise _unsupported(path, "tokenizer_class", kind, "BertTokenizer")


def check_added_file(added: Mapping[str, Any], path: Path) -> None:
    """Refuse an added_tokens.json with other than the special tokens."""
    _check_special(added, "the file", path)


def template(cls: int | None, sep: int | None) -> dict[str, Any]:
    """The post-processor of tokenizer.json for [CLS] A [SEP] and [CLS] A [SEP] B [SEP]."""
    def part(kind: str, name: str, type_id: int) -> dict[str, Any]:
        return {kind: {"id": name, "type_id": type_id}}

    single = [part("SpecialToken", "[CLS]", 0), part("Sequence", "A", 0), part("SpecialToken", "[SEP]", 0)]
    return {"type": "TemplateProcessing", "single": single,
            "pair": [*single, part("Sequence", "B", 1), part("SpecialToken", "[SEP]", 1)],
            "special_tokens": {token: {"id": token, "ids": [number], "tokens": [token]}
                               for token, number in (("[CLS]", cls), ("[SEP]", sep))}}


def _check_added(tokens: Any, key: str, path: Path, ids: Mapping[str, int] | None = None) -> None:
    _check_special(tokens, key, path)
    for token in tokens:
        if not isinstance(token, dict):
            raise VocabularyError(f"{path}: the tokens of {key} must be objects with content and flags.")
        name = token["content"]
        flag = next((flag for flag in _FLAGS if token.get(flag)), None)
        if flag is not None:
            raise _unsupported(path, f"{flag} of {name} in {key}", token[flag], False)
        if ids is not None and token.get("id") != ids.get(name):
            raise _unsupported(path, f"id of {name} in {key}", token.get("id"), ids.get(name))


def _check_special(tokens: Any, key: str, path: Path) -> None:
    """Refuse tokens other than the special ones."""
    for token in tokens if isinstance(tokens, Iterable) else [tokens]:
        if _content(token) not in SPECIAL_TOKENS:
            raise VocabularyError(f"{path}: {key} has the token {json.dumps(_content(token))}; only "
                                  f"{' '.join(SPECIAL_TOKENS)} are supported.")


def _content(token: Any) -> Any:
    """The spelling of a token, which is a string or an object with flags."""
    return token.get("content") if isinstance(token, dict) else token


def _unsupported(path: Path, key: str, value: Any, wanted: Any) -> VocabularyError:
    return VocabularyError(f"{path}: {key} is {json.dumps(value)[:60]}; only {json.dumps(wanted)} is supported.")
