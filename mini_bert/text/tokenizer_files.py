"""The files of a tokenizer: vocab.txt, tokenizer_config.json and tokenizer.json, as Hugging Face has them."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import VocabularyError
from .vocabulary import CONTINUATION, SPECIAL_TOKENS, Vocabulary

VOCAB, CONFIG, WHOLE = "vocab.txt", "tokenizer_config.json", "tokenizer.json"
_ROLES = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL_TOKENS, strict=True))


class Settings(NamedTuple):
    """All that makes a tokenizer."""

    vocabulary: Vocabulary
    lowercase: bool
    strip_accents: bool


def to_files(settings: Settings, max_word_length: int) -> dict[str, bytes]:
    """The three files. The last one holds everything, for libraries that read no other."""
    vocabulary, lowercase, strip_accents = settings
    config = {"tokenizer_class": "BertTokenizer", "do_lower_case": lowercase, "strip_accents": strip_accents,
              "tokenize_chinese_chars": True, **_ROLES}
    special = [{"id": vocabulary.ids[token], "content": token, "single_word": False, "lstrip": False,
                "rstrip": False, "normalized": False, "special": True}
               for token in sorted(SPECIAL_TOKENS, key=vocabulary.ids.__getitem__)]

    def part(kind: str, name: str, type_id: int) -> dict[str, Any]:
        return {kind: {"id": name, "type_id": type_id}}

    cls, sep = (part("SpecialToken", token, 0) for token in ("[CLS]", "[SEP]"))
    whole = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": special,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": strip_accents, "lowercase": lowercase},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [cls, part("Sequence", "A", 0), sep],
            "pair": [cls, part("Sequence", "A", 0), sep, part("Sequence", "B", 1), part("SpecialToken", "[SEP]", 1)],
            "special_tokens": {token: {"id": token, "ids": [vocabulary.ids[token]], "tokens": [token]}
                               for token in ("[CLS]", "[SEP]")}},
        "decoder": {"type": "WordPiece", "prefix": CONTINUATION, "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": CONTINUATION,
                  "max_input_chars_per_word": max_word_length, "vocab": vocabulary.ids},
    }
    return {VOCAB: vocabulary.to_text().encode("utf-8"), CONFIG: _dump(config), WHOLE: _dump(whole)}


def from_files(path: Path, lowercase: bool) -> Settings:
    """The tokenizer in a directory, or over a bare vocabulary file, for which `lowercase` is as given."""
    if path.is_file():
        return Settings(Vocabulary.read(path), lowercase, lowercase)
    if not path.is_dir():
        raise VocabularyError(f"There is no tokenizer at {path}: it is neither a directory nor a vocabulary file.")
    config = _load(path / CONFIG) if (path / CONFIG).exists() else {}
    whole = _load(path / WHOLE) if (path / WHOLE).exists() else {}
    if (path / VOCAB).exists():
        vocabulary = Vocabulary.read(path / VOCAB)
    elif whole:
        vocabulary = _vocabulary_of(whole, path / WHOLE)
    else:
        raise VocabularyError(f"{path} has neither {VOCAB} nor {WHOLE}, so it is not a tokenizer's directory.")
    normaliser = whole.get("normalizer") or {}
    cased = config.get("do_lower_case", normaliser.get("lowercase", lowercase))
    strip = config.get("strip_accents", normaliser.get("strip_accents"))
    if not isinstance(cased, bool) or not (strip is None or isinstance(strip, bool)):
        raise VocabularyError(f"{path / CONFIG}: do_lower_case and strip_accents must be true or false.")
    if config.get("tokenize_chinese_chars", True) is not True:
        raise VocabularyError(f"{path / CONFIG}: tokenize_chinese_chars must be true; other tokenizers are not opened.")
    return Settings(vocabulary, cased, cased if strip is None else strip)


def _vocabulary_of(whole: dict[str, Any], path: Path) -> Vocabulary:
    model = whole.get("model")
    if not isinstance(model, dict) or model.get("type", "WordPiece") != "WordPiece" \
            or not isinstance(model.get("vocab"), dict):
        raise VocabularyError(f"{path} is not a WordPiece tokenizer.")
    by_id = sorted(model["vocab"].items(), key=lambda item: item[1])
    if [number for _, number in by_id] != list(range(len(by_id))):
        raise VocabularyError(f"{path}: the ids of the vocabulary are not 0 to {len(by_id) - 1}.")
    return Vocabulary((piece for piece, _ in by_id), str(path))


def _load(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise VocabularyError(f"{path} cannot be read: {error}.") from None
    if not isinstance(content, dict):
        raise VocabularyError(f"{path} must hold a JSON object.")
    return content


def _dump(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")
