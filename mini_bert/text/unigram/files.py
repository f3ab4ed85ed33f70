"""The files of a Unigram tokenizer: tokenizer.json, or SentencePiece's .model alone; and what they define."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from ...errors import VocabularyError
from ...readers import LARGEST_JSON, read_bytes, read_json_if_there
from ..pipeline.added_tokens import read_added_tokens
from ..pipeline.aligned import AlignedText
from ..pipeline.decoders import Decoder, read_decoder
from ..pipeline.normalizers import is_local, read_normalizer
from ..pipeline.parts import Pipeline
from ..pipeline.pre_tokenizers import read_pre_tokenizer
from ..pipeline.special import ROLES, content_of, special_of
from ..template import Template, template_of
from ..tokenizer_files import CONFIG, TOKENIZER_JSON, TokenizerFiles, dump_json
from ..vocabulary import Vocabulary
from .conventions import RENUMBERED, convention_of
from .sentencepiece import parse_model, to_tokenizer_json
from .viterbi import Unigram

MODELS = ("spiece.model", "spm.model", RENUMBERED, "tokenizer.model")
ADDED, SPECIAL_MAP = "added_tokens.json", "special_tokens_map.json"       # written by older libraries


@dataclass(frozen=True)
class UnigramSpec:
    """What defines a tokenizer, and the content of tokenizer.json it was made of."""

    content: dict[str, Any]
    model: Unigram
    pipeline: Pipeline
    vocabulary: Vocabulary
    template: Template
    decoders: list[Decoder] | None

    def folds(self, text: str, plain: str) -> bool:
        """Is this text normalised to that one?"""
        return self.pipeline.normalise(AlignedText.of(text)).text.strip(" ▁") == plain

    @classmethod
    def of(cls, content: dict[str, Any], source: str, names: Mapping[str, str] | None = None) -> "UnigramSpec":
        """Read the content of a tokenizer.json; `names` are special tokens by role, where a file has them."""
        model = _model(content.get("model"), source)
        ids = {piece: i for i, (piece, _) in enumerate(model.pieces)}
        if len(ids) < len(model.pieces):
            twice = next(piece for i, (piece, _) in enumerate(model.pieces) if ids[piece] != i)
            raise VocabularyError(f"{source}: model.vocab has the piece {twice[:60]!r} twice.")
        added = read_added_tokens(content.get("added_tokens"), ids, source)
        new = [token.content for token in added if token.content not in ids]
        pieces = [*(piece for piece, _ in model.pieces), *new]
        all_ids = {piece: i for i, piece in enumerate(pieces)}
        names = names or content.get("mini_bert_roles") or {}
        template = template_of(content.get("post_processor"), all_ids, Path(source))
        unknown = {} if model.unk is None else {"unk_token": pieces[model.unk]}
        own = [token.content for token in added if token.special]
        special = special_of({**unknown, **names}, own, template, all_ids)
        normalizers = read_normalizer(content.get("normalizer"), source)
        pipeline = Pipeline(normalizers, read_pre_tokenizer(content.get("pre_tokenizer"), source), added,
                            local=is_local(content.get("normalizer")))
        vocabulary = Vocabulary(pieces, source, special=special, continues=lambda piece: not piece.startswith("▁"))
        return cls({**content, "mini_bert_roles": dict(names)}, model, pipeline, vocabulary, template,
                   read_decoder(content.get("decoder"), source))


def _model(content: Any, source: str) -> Unigram:
    vocab = content.get("vocab") if isinstance(content, dict) else None
    if not isinstance(vocab, list) or not vocab:
        raise VocabularyError(f"{source}: model.vocab must be a list of pieces with their scores.")
    for entry in vocab:
        if not isinstance(entry, list | tuple) or len(entry) != 2 or not isinstance(entry[0], str) \
                or type(entry[1]) not in (int, float) or not isfinite(entry[1]):
            raise VocabularyError(f"{source}: model.vocab has {json.dumps(entry)[:60]}, which is not a piece and its "
                                  "score.")
    unk, fallback = content.get("unk_id"), content.get("byte_fallback", False)
    if unk is not None and (type(unk) is not int or not 0 <= unk < len(vocab)):
        raise VocabularyError(f"{source}: model.unk_id is {json.dumps(unk)[:60]}; it must be an id of model.vocab, or "
                              "null.")
    if not isinstance(fallback, bool):
        raise VocabularyError(f"{source}: model.byte_fallback must be true or false.")
    return Unigram([(piece, float(score)) for piece, score in vocab], unk, byte_fallback=fallback)


# -------------------------------------------------------------------- directories

def claimed(files: TokenizerFiles) -> bool:
    """Is there a tokenizer.json of this kind, or a SentencePiece model and no tokenizer.json?"""
    if files.is_file and files.path.name != TOKENIZER_JSON:
        return files.path.suffix == ".model"
    return files.algorithm == "Unigram" if files.full else any(map(files.has, MODELS))


def read_spec(files: TokenizerFiles, lowercase: bool | None) -> UnigramSpec:
    """The tokenizer of a directory, or of a .model file."""
    older = read_json_if_there(files.directory / SPECIAL_MAP, VocabularyError) or {}
    said = older | (files.config or {})
    names = {key: value for role in ROLES if isinstance(value := content_of(said.get(key := f"{role}_token")), str)}
    if files.full and not (files.is_file and files.path.suffix == ".model"):
        spec = UnigramSpec.of(files.full, str(files.directory / TOKENIZER_JSON), names)
        folded = spec.folds("A", "a")
        if lowercase is not None and lowercase != folded:
            raise VocabularyError(f"{files.directory} is {'uncased' if folded else 'cased'} and cannot be opened as "
                                  f"{'uncased' if lowercase else 'cased'} (lowercase={lowercase}).")
        return spec
    path = files.path if files.is_file else files.directory / next(filter(files.has, MODELS))
    parsed = parse_model(read_bytes(path, VocabularyError, largest=LARGEST_JSON), str(path))
    convention, config = convention_of(files, path.name), files.config or {}
    lower = config.get("do_lower_case", convention.lowercase) if lowercase is None else lowercase
    added = read_json_if_there(files.directory / ADDED, VocabularyError) or {}
    content = to_tokenizer_json(convention.applied(parsed, str(path)), lowercase=lower is True,
                                strip_accents=config.get("keep_accents", not convention.strip_accents) is False,
                                added=added, around=convention.around, source=str(path))
    return UnigramSpec.of(content, str(path), names)


def to_files(spec: UnigramSpec) -> dict[str, bytes]:
    """tokenizer.json, and tokenizer_config.json with the names of the special tokens."""
    content = {key: value for key, value in spec.content.items() if key != "mini_bert_roles"}
    names = {f"{role}_token": name for role, name in spec.vocabulary.special.roles.items()}
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **names}
    return {TOKENIZER_JSON: dump_json(content), CONFIG: dump_json(config)}
