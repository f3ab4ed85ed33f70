"""The files of a byte-level BPE tokenizer, as in Hugging Face: tokenizer.json, or vocab.json with merges.txt.

What would give other ids than `tokenizers` does is refused; `truncation` and `padding` do not change the ids of a text.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import VocabularyError
from ...readers import LARGEST_JSON, read_json, read_json_if_there, read_text
from ..pipeline.added_tokens import AddedToken
from ..pipeline.special import special_of
from ..template import Template, template_of
from ..tokenizer_files import CONFIG, TOKENIZER_JSON, TokenizerFiles, dump_json
from ..vocabulary import Vocabulary
from .alphabet import CHARACTERS
from .layouts import Layout, layout_of
from .spec import MERGES, VOCAB, ByteBPESpec, Settings, continues_word

_VERSION = "#version"


def to_files(spec: ByteBPESpec) -> dict[str, bytes]:
    """The four files. tokenizer.json is complete, for libraries that read only this one."""
    ids, settings = spec.vocabulary.ids, spec.settings
    byte_level = {"type": "ByteLevel", "add_prefix_space": settings.add_prefix_space, "trim_offsets": True,
                  "use_regex": True}
    trimming = {**byte_level, "add_prefix_space": settings.keep_prefix}
    after = spec.template.to_json()
    if settings.trim_offsets:
        after = {"type": "Sequence", "processors": [trimming, after]}
    model = {"type": "BPE", "dropout": None, "unk_token": settings.unk, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
             "ignore_merges": settings.ignore_merges, "vocab": ids, "merges": [f"{a} {b}" for a, b in spec.merges]}
    full = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [token.to_json() for token in sorted(spec.added, key=lambda token: token.id)],
        "normalizer": {"type": "NFC"} if settings.nfc else None,
        "pre_tokenizer": byte_level, "post_processor": after, "decoder": byte_level, "model": model,
    }
    roles = {f"{role}_token": name for role, name in spec.vocabulary.special.roles.items()}
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "add_prefix_space": settings.add_prefix_space, **roles}
    merges = "".join(f"{a} {b}\n" for a, b in spec.merges)
    return {VOCAB: json.dumps(ids, ensure_ascii=False).encode("utf-8"), MERGES: f"{_VERSION}: 0.2\n{merges}".encode(),
            CONFIG: dump_json(config), TOKENIZER_JSON: dump_json(full)}


def from_files(files: TokenizerFiles, lowercase: bool | None = None) -> ByteBPESpec:
    """Read a tokenizer's directory; `lowercase` must not be True, since this kind keeps case."""
    if lowercase:
        raise VocabularyError(f"{files.path} is cased and cannot be opened as uncased (lowercase=True).")
    if files.full is None:
        return _from_vocabulary(files.directory, files.config or {})
    return _from_json(files, files.directory / TOKENIZER_JSON)


# -------------------------------------------------------------------- tokenizer.json

def _from_json(files: TokenizerFiles, path: Path) -> ByteBPESpec:
    full, model = files.full or {}, files.model
    ids = _checked_ids(model.get("vocab"), path, "model.vocab")
    added = _added_tokens(full.get("added_tokens") or [], ids, path)
    pieces = _pieces(ids | {token.content: token.id for token in added}, path)
    every = {piece: i for i, piece in enumerate(pieces)}
    merges = _checked_merges(_split_merges(model.get("merges"), path), ids, path)
    template = template_of(full.get("post_processor"), every, path)
    special = special_of(files.config or {}, [token.content for token in added if token.special], template, every)
    vocabulary = Vocabulary(pieces, str(path), special=special, continues=continues_word)
    return ByteBPESpec(vocabulary, merges, tuple(added), template, _settings(files, path))


def _settings(files: TokenizerFiles, path: Path) -> Settings:
    model = files.model
    for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"):
        if model.get(key) not in (None, False, 0, ""):
            raise _unsupported(path, f"model.{key}", model[key], None)
    normalizers = [part.get("type") for part in files.parts("normalizer")]
    if normalizers not in ([], ["NFC"]) or ((files.full or {}).get("normalizer") is not None and not normalizers):
        raise _unsupported(path, "normalizer", normalizers, "NFC")
    before = files.parts("pre_tokenizer")
    if len(before) != 1:
        raise _unsupported(path, "pre_tokenizer", [part.get("type") for part in before], ["ByteLevel"])
    if (regex := before[0].get("use_regex", True)) is not True:
        raise _unsupported(path, "use_regex of the pre_tokenizer ByteLevel", regex, True)
    after = [part for part in files.parts("post_processor") if part.get("type") in ("ByteLevel", "RobertaProcessing")]
    trims = [part for part in after if _flag(part, "trim_offsets", path, True)]
    unk = model.get("unk_token")
    if not (unk is None or isinstance(unk, str)):
        raise _unsupported(path, "model.unk_token", unk, None)
    if unk and unk not in model["vocab"]:
        raise VocabularyError(f"{path}: model.unk_token is {unk[:60]!r}, which is not in model.vocab.")
    if unk and _flag(model, "fuse_unk", path) and not all(character in model["vocab"] for character in CHARACTERS):
        raise _unsupported(path, "model.fuse_unk of a vocabulary without all bytes", True, False)
    return Settings(_flag(before[0], "add_prefix_space", path, True), bool(trims),
                    _flag(trims[0], "add_prefix_space", path, True) if trims else True,
                    bool(normalizers), unk or None, _flag(model, "ignore_merges", path))


def _flag(content: Mapping[str, Any], key: str, path: Path, default: bool = False) -> bool:
    value = content.get(key, default)
    if not isinstance(value, bool):
        raise VocabularyError(f"{path}: {key} must be true or false, not {json.dumps(value)[:60]}.")
    return value


def _added_tokens(content: Any, ids: Mapping[str, int], path: Path) -> list[AddedToken]:
    found = []
    for entry in content if isinstance(content, list) else [content]:
        if not isinstance(entry, dict) or not isinstance(entry.get("content"), str) or type(entry.get("id")) is not int:
            raise VocabularyError(f"{path}: the entries of added_tokens must be objects with content, id and flags.")
        name, number = entry["content"], entry["id"]
        if _flag(entry, "single_word", path):
            raise _unsupported(path, f"single_word of {name[:60]!r} in added_tokens", True, False)
        if ids.get(name, number) != number:
            raise VocabularyError(f"{path}: the token {name[:60]!r} has the id {number} in added_tokens, and "
                                  f"{ids[name]} in model.vocab.")
        found.append(AddedToken(name, number, *(_flag(entry, key, path) for key in
                                                ("special", "lstrip", "rstrip", "normalized"))))
    return found


# -------------------------------------------------------------------- vocab.json and merges.txt

def _from_vocabulary(directory: Path, config: dict[str, Any]) -> ByteBPESpec:
    source = directory / VOCAB
    ids = _checked_ids(read_json(source, VocabularyError), source, "the file")
    more = read_json_if_there(directory / "added_tokens.json", VocabularyError) or {}
    ids |= _checked_ids(more, directory / "added_tokens.json", "the file") if more else {}
    lines = read_text(directory / MERGES, VocabularyError, largest=LARGEST_JSON).split("\n")
    lines = [line.removesuffix("\r") for line in lines if line.strip() and not line.startswith(_VERSION)]
    merges = _checked_merges(_split_merges(lines, directory / MERGES), ids, directory / MERGES)
    pieces = _pieces(ids, source)
    layout = layout_of(config.get("tokenizer_class"), ids, str(source))
    return spec_of(pieces, merges, layout, _flag(config, "add_prefix_space", directory / CONFIG), str(source))


def spec_of(pieces: Sequence[str], merges: Sequence[tuple[str, str]], layout: Layout, add_prefix_space: bool = False,
            source: str = "The vocabulary") -> ByteBPESpec:
    """The tokenizer of a vocabulary with a layout's special tokens."""
    special = layout.special._replace(others=tuple(name for name in layout.order
                                                   if name not in layout.special.roles.values()))
    vocabulary = Vocabulary(pieces, source, special=special, continues=continues_word)
    added = tuple(AddedToken(name, vocabulary.ids[name], lstrip=name == special.mask) for name in layout.order)
    template = Template.parse(layout.single, layout.pair, vocabulary.ids)
    return ByteBPESpec(vocabulary, tuple(merges), added, template,
                       Settings(add_prefix_space, layout.trim_offsets, add_prefix_space))


# -------------------------------------------------------------------- checks

def _checked_ids(content: Any, path: Path, where: str) -> dict[str, int]:
    if not isinstance(content, dict) or not all(type(number) is int for number in content.values()):
        raise VocabularyError(f"{path}: {where} must map each piece to an id.")
    return dict(content)


def _pieces(ids: Mapping[str, int], path: Path) -> list[str]:
    """The pieces by id, whose ids must be 0, 1, 2, ..."""
    if sorted(ids.values()) != list(range(len(ids))):
        raise VocabularyError(f"{path}: the ids of the pieces and added tokens must be 0 to {len(ids) - 1}.")
    return sorted(ids, key=ids.__getitem__)


def _split_merges(content: Any, path: Path) -> list[tuple[str, str]]:
    """Merges from lines such as "a b", or from pairs."""
    if not isinstance(content, list):
        raise VocabularyError(f"{path}: model.merges must be a list of merges.")
    found = []
    for number, entry in enumerate(content):
        parts = entry.split(" ") if isinstance(entry, str) else entry
        if not isinstance(parts, list) or len(parts) != 2 or not all(isinstance(part, str) and part for part in parts):
            raise VocabularyError(f"{path}: merge {number} is {json.dumps(entry)[:60]}, which is not two pieces.")
        found.append((parts[0], parts[1]))
    return found


def _checked_merges(merges: list[tuple[str, str]], ids: Mapping[str, int], path: Path) -> tuple[tuple[str, str], ...]:
    for number, (a, b) in enumerate(merges):
        missing = next((piece for piece in (a, b, a + b) if piece not in ids), None)
        if missing is not None:
            raise VocabularyError(f"{path}: merge {number} is {f'{a} {b}'[:60]!r}, and the vocabulary lacks "
                                  f"{missing[:60]!r}.")
    return tuple(merges)


def _unsupported(path: Path, key: str, value: Any, wanted: Any) -> VocabularyError:
    return VocabularyError(f"{path}: {key} is {json.dumps(value)[:60]}; only {json.dumps(wanted)} is supported.")
