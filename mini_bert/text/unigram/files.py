"""The files of a Unigram tokenizer: tokenizer.json, or SentencePiece's .model alone; and what they define."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from ...errors import VocabularyError
from ...readers import LARGEST_JSON, read_bytes, read_json_if_there
from ..added_tokens import AddedToken, read_added_tokens
from ..template import Template, template_of
from ..tokenizer_files import CONFIG, TOKENIZER_JSON, TokenizerFiles, dump_json
from ..vocabulary import Special, Vocabulary
from .decoders import Decoder, read_decoder
from .normalizers import is_local, read_normalizer
from .pipeline import Pipeline
from .pre_tokenizers import read_pre_tokenizer
from .sentencepiece import parse_model, to_tokenizer_json
from .viterbi import Unigram

MODELS = ("spiece.model", "spm.model", "sentencepiece.bpe.model", "tokenizer.model")
ADDED, SPECIAL_MAP = "added_tokens.json", "special_tokens_map.json"       # written by older libraries
ROLES = {"pad": ("[PAD]", "<pad>"), "unk": (), "cls": ("[CLS]", "<cls>", "<s>"), "sep": ("[SEP]", "<sep>", "</s>"),
         "mask": ("[MASK]", "<mask>")}


@dataclass(frozen=True)
class UnigramSpec:
    """What defines a tokenizer, and the content of tokenizer.json it was made of."""

    content: dict[str, Any]
    model: Unigram
    pipeline: Pipeline
    vocabulary: Vocabulary
    template: Template
    decoders: list[Decoder] | None

    @classmethod
    def of(cls, content: dict[str, Any], source: str, names: Mapping[str, str] | None = None) -> "UnigramSpec":
        """Read the content of a tokenizer.json; `names` are special tokens by role, where a file has them."""
        model = _model(content.get("model"), source)
        ids = {piece: i for i, (piece, _) in enumerate(model.pieces)}
        added = read_added_tokens(content.get("added_tokens"), ids, source)
        new = [token.content for token in added if token.content not in ids]
        pieces = [*(piece for piece, _ in model.pieces), *new]
        all_ids = {piece: i for i, piece in enumerate(pieces)}
        names = names or content.get("mini_bert_roles") or {}
        special = _special(pieces, all_ids, model, added, names)
        normalizers = read_normalizer(content.get("normalizer"), source)
        pipeline = Pipeline(normalizers, read_pre_tokenizer(content.get("pre_tokenizer"), source), added,
                            local=is_local(content.get("normalizer")))
        vocabulary = Vocabulary(pieces, source, special=special, continues=lambda piece: not piece.startswith("▁"))
        template = template_of(content.get("post_processor"), all_ids, Path(source))
        return cls({**content, "mini_bert_roles": dict(names)}, model, pipeline, vocabulary, template,
                   read_decoder(content.get("decoder"), source))


def _model(content: Any, source: str) -> Unigram:
    vocab = content.get("vocab") if isinstance(content, dict) else None
    if not isinstance(vocab, list) or not vocab:
        raise VocabularyError(f"{source}: model.vocab must be a list of pieces with their scores.")
    for entry in vocab:
        if not isinstance(entry, list | tuple) or len(entry) != 2 or not isinstance(entry[0], str) \
                or type(entry[1]) not in (int, float) or not isfinite(entry[1]):
            raise VocabularyError(f"{source}: model.vocab has {json.dumps(entry)[:60]}, which is not a piece and its score.")
    unk, fallback = content.get("unk_id"), content.get("byte_fallback", False)
    if unk is not None and (type(unk) is not int or not 0 <= unk < len(vocab)):
        raise VocabularyError(f"{source}: model.unk_id is {json.dumps(unk)[:60]}; it must be an id of model.vocab or null.")
    if not isinstance(fallback, bool):
        raise VocabularyError(f"{source}: model.byte_fallback must be true or false.")
    return Unigram([(piece, float(score)) for piece, score in vocab], unk, byte_fallback=fallback)


def _special(pieces: list[str], ids: Mapping[str, int], model: Unigram, added: list[AddedToken],
             names: Mapping[str, str]) -> Special:
    """The special tokens by role: as a file names them, or by their usual names."""
    special = {token.content for token in added if token.special}
    found = {role: next((name for name in (names.get(role), *usual) if name in special or
                         (name in ids and name == names.get(role))), None) for role, usual in ROLES.items()}
    if found["unk"] is None and model.unk is not None:
        found["unk"] = pieces[model.unk]
    return Special(**found, others=tuple(sorted(special, key=ids.__getitem__)))           # type: ignore[arg-type]


# -------------------------------------------------------------------- directories

def claimed(files: TokenizerFiles) -> bool:
    """Is there a tokenizer.json of this kind, or a SentencePiece model and no tokenizer.json?"""
    if files.is_file and files.path.name != TOKENIZER_JSON:
        return files.path.suffix == ".model"
    return files.model_type == "Unigram" if files.full else any(map(files.has, MODELS))


def read_spec(files: TokenizerFiles, lowercase: bool | None) -> UnigramSpec:
    """The tokenizer of a directory, or of a .model file."""
    names = {role: name for role in ROLES if (name := _name(files, f"{role}_token")) is not None}
    if files.full and not (files.is_file and files.path.suffix == ".model"):
        spec = UnigramSpec.of(files.full, str(files.directory / TOKENIZER_JSON), names)
        folded = spec.pipeline.added is not None and _folds(spec)
        if lowercase is not None and lowercase != folded:
            raise VocabularyError(f"{files.directory} is {'uncased' if folded else 'cased'} and cannot be opened as "
                                  f"{'uncased' if lowercase else 'cased'} (lowercase={lowercase}).")
        return spec
    path = files.path if files.is_file else files.directory / next(filter(files.has, MODELS))
    parsed = parse_model(read_bytes(path, VocabularyError, largest=LARGEST_JSON), str(path))
    config = files.config or {}
    lower = config.get("do_lower_case") if lowercase is None else lowercase
    added = read_json_if_there(files.directory / ADDED, VocabularyError) or {}
    content = to_tokenizer_json(parsed, lowercase=lower is True, strip_accents=config.get("keep_accents") is False,
                                added=added, source=str(path))
    return UnigramSpec.of(content, str(path), names)


def _folds(spec: UnigramSpec) -> bool:
    from .aligned import AlignedText

    return spec.pipeline.normalise(AlignedText.of("A")).text.strip(" ▁") == "a"


def _name(files: TokenizerFiles, key: str) -> str | None:
    older = read_json_if_there(files.directory / SPECIAL_MAP, VocabularyError) or {}
    value = (files.config or {}).get(key, older.get(key))
    value = value.get("content") if isinstance(value, dict) else value
    return value if isinstance(value, str) else None


def to_files(spec: UnigramSpec) -> dict[str, bytes]:
    """tokenizer.json, and tokenizer_config.json with the names of the special tokens."""
    content = {key: value for key, value in spec.content.items() if key != "mini_bert_roles"}
    names = {f"{role}_token": name for role, name in spec.vocabulary.special.roles.items()}
    return {TOKENIZER_JSON: dump_json(content), CONFIG: dump_json({"tokenizer_class": "PreTrainedTokenizerFast", **names})}
