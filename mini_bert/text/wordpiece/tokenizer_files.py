"""The files of a tokenizer: vocab.txt, tokenizer_config.json and tokenizer.json, as Hugging Face has them."""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import VocabularyError
from ..vocabulary import CONTINUATION, SPECIAL_TOKENS, Vocabulary
from .tokenizer_checks import ROLES, check_added_file, check_config, check_whole, template

VOCAB, CONFIG, WHOLE = "vocab.txt", "tokenizer_config.json", "tokenizer.json"
ADDED = "added_tokens.json"               # older libraries wrote it


class Settings(NamedTuple):
    """All that makes a tokenizer."""

    vocabulary: Vocabulary
    lowercase: bool
    strip_accents: bool


def to_files(settings: Settings, max_word_length: int) -> dict[str, bytes]:
    """The three files. The last one holds everything, for libraries that read no other."""
    vocabulary, lowercase, strip_accents = settings
    config = {"tokenizer_class": "BertTokenizer", "do_lower_case": lowercase, "strip_accents": strip_accents,
              "tokenize_chinese_chars": True, **ROLES}
    special = [{"id": vocabulary.ids[token], "content": token, "single_word": False, "lstrip": False,
                "rstrip": False, "normalized": False, "special": True}
               for token in sorted(SPECIAL_TOKENS, key=vocabulary.ids.__getitem__)]
    whole = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": special,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": strip_accents, "lowercase": lowercase},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": template(vocabulary.cls, vocabulary.sep),
        "decoder": {"type": "WordPiece", "prefix": CONTINUATION, "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": CONTINUATION,
                  "max_input_chars_per_word": max_word_length, "vocab": vocabulary.ids},
    }
    return {VOCAB: vocabulary.to_text().encode("utf-8"), CONFIG: _dump(config), WHOLE: _dump(whole)}


def require_free(directory: Path, overwrite: bool) -> None:
    """Refuse a directory that cannot take a new tokenizer; with `overwrite` it may hold one, but nothing else."""
    standing = next((place for place in (directory, *directory.parents) if place.exists()), directory)
    if not standing.is_dir() or not os.access(standing, os.W_OK):
        raise VocabularyError(f"{directory} cannot be written: {standing} is not a directory that can be written to.")
    held = {file.name for file in directory.iterdir()} if standing == directory else set()
    if held and not overwrite:
        raise VocabularyError(f"{directory} exists already and is not empty; name another directory, "
                              "or say --overwrite to replace a tokenizer.")
    if others := sorted(held - {VOCAB, CONFIG, WHOLE}):
        raise VocabularyError(f"{directory} holds more than a tokenizer, such as {others[0]}, so it is not "
                              "overwritten; name another directory.")


def from_files(path: Path, lowercase: bool | None, max_word_length: int) -> Settings:
    """The tokenizer in a directory, or over a bare vocabulary file; `lowercase` is for what does not say."""
    if path.is_file() and path.name not in (VOCAB, WHOLE):
        return Settings(Vocabulary.read(path), *_casing(path, {}, {}, lowercase))      # the files beside it say nothing
    directory = path.parent if path.is_file() else path
    if not directory.is_dir():
        raise VocabularyError(f"There is no tokenizer at {path}: it is neither a directory nor a vocabulary file.")
    config, whole, added = (_load(directory / name) for name in (CONFIG, WHOLE, ADDED))
    check_config(config or {}, directory / CONFIG, alone=whole is None)
    check_added_file(added or {}, directory / ADDED)
    if whole is not None:
        check_whole(whole, directory / WHOLE, max_word_length)
    return Settings(_vocabulary(directory, whole), *_casing(directory, config or {}, whole or {}, lowercase))


def _vocabulary(directory: Path, whole: dict[str, Any] | None) -> Vocabulary:
    written = Vocabulary.read(directory / VOCAB) if (directory / VOCAB).exists() else None
    if whole is not None:
        ids: dict[str, int] = whole["model"]["vocab"]
        if written is not None and written.ids != ids:
            raise VocabularyError(f"{directory}: {VOCAB} and model.vocab of {WHOLE} have different pieces; remove one.")
        return written or Vocabulary(sorted(ids, key=ids.__getitem__), str(directory / WHOLE))
    if written is None:
        raise VocabularyError(f"{directory} has neither {VOCAB} nor {WHOLE}, so it is not a tokenizer's directory.")
    return written


def _casing(path: Path, config: dict[str, Any], whole: dict[str, Any], lowercase: bool | None) -> tuple[bool, bool]:
    """(lowercase, strip_accents) as the files store them; null for the second means that it is as the first."""
    normaliser = whole.get("normalizer", {})
    stored = _agreed(path, "do_lower_case", config.get("do_lower_case"), normaliser.get("lowercase"))
    if stored is None and lowercase is None:
        raise VocabularyError(f"Nothing says whether {path} is cased; say it with lowercase=False or lowercase=True, "
                              "on the command line with --cased or --uncased.")
    if stored is not None and lowercase is not None and stored != lowercase:
        raise VocabularyError(f"{path} is stored as {'uncased' if stored else 'cased'}, and cannot be opened as "
                              f"{'uncased' if lowercase else 'cased'} (lowercase={lowercase}).")
    lower = bool(lowercase if stored is None else stored)
    said = [place["strip_accents"] for place in (config, normaliser) if "strip_accents" in place]
    strip = _agreed(path, "strip_accents", *(lower if value is None else value for value in said))
    return lower, lower if strip is None else strip


def _agreed(path: Path, key: str, *said: Any) -> bool | None:
    """What the files say of a setting, None for nothing; they must say the same."""
    values = [value for value in said if value is not None]
    for value in values:
        if not isinstance(value, bool):
            raise VocabularyError(f"{path}: {key} must be true or false, not {json.dumps(value)[:60]}.")
    if len(set(values)) > 1:
        raise VocabularyError(f"{path}: {CONFIG} and {WHOLE} contradict each other in {key}.")
    return values[0] if values else None


def _load(path: Path) -> dict[str, Any] | None:
    """What a JSON file has; None if there is no such file."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise VocabularyError(f"{path} cannot be read: {error}.") from None
    if not isinstance(content, dict):
        raise VocabularyError(f"{path} must hold a JSON object.")
    return content


def _dump(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")
