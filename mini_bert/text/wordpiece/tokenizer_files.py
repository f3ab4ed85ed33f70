"""The files of a tokenizer, as in Hugging Face: vocab.txt, tokenizer_config.json and tokenizer.json."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import VocabularyError
from ...readers import read_json_if_there
from ..tokenizer_files import CONFIG, TOKENIZER_JSON, TokenizerFiles, dump_json
from ..vocabulary import CONTINUATION, SPECIAL_TOKENS, Vocabulary
from .tokenizer_checks import ROLES, check_added_file, check_config, check_tokenizer_json, template

VOCAB = "vocab.txt"
ADDED = "added_tokens.json"               # written by older libraries


class TokenizerSpec(NamedTuple):
    """What defines a tokenizer."""

    vocabulary: Vocabulary
    lowercase: bool
    strip_accents: bool


def to_files(spec: TokenizerSpec, max_word_length: int) -> dict[str, bytes]:
    """The three files. tokenizer.json is complete, for libraries that read only this one."""
    vocabulary, lowercase, strip_accents = spec
    config = {"tokenizer_class": "BertTokenizer", "do_lower_case": lowercase, "strip_accents": strip_accents,
              "tokenize_chinese_chars": True, **ROLES}
    special = [{"id": vocabulary.ids[token], "content": token, "single_word": False, "lstrip": False,
                "rstrip": False, "normalized": False, "special": True}
               for token in sorted(SPECIAL_TOKENS, key=vocabulary.ids.__getitem__)]
    full = {
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
    return {VOCAB: vocabulary.to_text().encode("utf-8"), CONFIG: dump_json(config), TOKENIZER_JSON: dump_json(full)}


def from_files(files: TokenizerFiles, lowercase: bool | None, max_word_length: int) -> TokenizerSpec:
    """Read a tokenizer's directory, or a bare vocabulary file; `lowercase` is needed if no file says it."""
    path = files.path
    if files.is_file and path.name not in (VOCAB, TOKENIZER_JSON):
        return TokenizerSpec(Vocabulary.read(path), *_casing(path, {}, {}, lowercase))      # other files are ignored
    directory, config, full = files.directory, files.config or {}, files.full
    check_config(config, directory / CONFIG, alone=full is None)
    check_added_file(read_json_if_there(directory / ADDED, VocabularyError) or {}, directory / ADDED)
    if full is not None:
        check_tokenizer_json(full, directory / TOKENIZER_JSON, max_word_length)
    return TokenizerSpec(_vocabulary(directory, full), *_casing(directory, config, full or {}, lowercase))


def _vocabulary(directory: Path, full: dict[str, Any] | None) -> Vocabulary:
    written = Vocabulary.read(directory / VOCAB) if (directory / VOCAB).exists() else None
    if full is not None:
        ids: dict[str, int] = full["model"]["vocab"]
        if written is not None and written.ids != ids:
            raise VocabularyError(f"{directory}: {VOCAB} and model.vocab of {TOKENIZER_JSON} have different pieces; "
                                  "remove one of the files.")
        return written or Vocabulary(sorted(ids, key=ids.__getitem__), str(directory / TOKENIZER_JSON))
    if written is None:
        raise VocabularyError(f"{directory} is not the directory of a tokenizer: it has neither {VOCAB} nor "
                              f"{TOKENIZER_JSON}.")
    return written


def _casing(path: Path, config: dict[str, Any], full: dict[str, Any], lowercase: bool | None) -> tuple[bool, bool]:
    """(lowercase, strip_accents) from the files; null for strip_accents means the same as lowercase."""
    normaliser = full.get("normalizer", {})
    stored = _agreed(path, "do_lower_case", config.get("do_lower_case"), normaliser.get("lowercase"))
    if stored is None and lowercase is None:
        raise VocabularyError(f"No file says whether {path} is cased; pass lowercase=False or lowercase=True, "
                              "on the command line --cased or --uncased.")
    if stored is not None and lowercase is not None and stored != lowercase:
        raise VocabularyError(f"{path} is {'uncased' if stored else 'cased'} and cannot be opened as "
                              f"{'uncased' if lowercase else 'cased'} (lowercase={lowercase}).")
    lower = bool(lowercase if stored is None else stored)
    values = [place["strip_accents"] for place in (config, normaliser) if "strip_accents" in place]
    strip = _agreed(path, "strip_accents", *(lower if value is None else value for value in values))
    return lower, lower if strip is None else strip


def _agreed(path: Path, key: str, *values: Any) -> bool | None:
    """The value of a setting on which the files agree; None if no file has it."""
    given = [value for value in values if value is not None]
    for value in given:
        if not isinstance(value, bool):
            raise VocabularyError(f"{path}: {key} must be true or false, not {json.dumps(value)[:60]}.")
    if len(set(given)) > 1:
        raise VocabularyError(f"{path}: {CONFIG} and {TOKENIZER_JSON} disagree about {key}.")
    return given[0] if given else None
