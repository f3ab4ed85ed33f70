"""Opening a teacher, and refusing one that cannot teach."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.model import MiniBERT
from ...core.registry import Word
from ...core.task_model import TaskModel
from ...errors import ConfigError
from ...factory import load
from ...text.corpora.corpus import Corpus
from ...text.opening import has_tokenizer, load_tokenizer
from ...text.tokenizer import Tokenizer


def open_teacher(given: str | Word | MiniBERT | None, objective: str, dtype: npt.DTypeLike) -> MiniBERT:
    """The model that an objective's option `teacher` names, in the student's precision and without a task's head."""
    if given is None:
        raise ConfigError(f"{objective} needs a teacher: {objective}(teacher=mini), or {objective}(teacher='DIR') with "
                          "any model that mini_bert.load opens.")
    model = given if isinstance(given, MiniBERT) else load(str(given), dtype=dtype)
    if isinstance(model, TaskModel):
        source, model = model.source, model.encoder()
        model.source = source
    return model


def tokenizer_of(teacher: MiniBERT) -> Tokenizer | None:
    """The tokenizer next to a teacher's weights, if there is one."""
    if teacher.source is None or not has_tokenizer(teacher.source):
        return None
    return load_tokenizer(teacher.source)


def require_same_tokens(teacher: MiniBERT, corpus: Corpus, objective: str) -> None:
    """Refuse a teacher that reads other ids than the corpus has."""
    own = tokenizer_of(teacher)
    digest = teacher.vocab_digest if own is None else own.vocabulary.digest()
    if digest not in (None, corpus.manifest.vocab_digest):
        raise ConfigError(f"{objective}: the teacher {teacher.source} has another vocabulary than {corpus.directory}, "
                          "so their tokens are not the same; prepare the corpus with the teacher's tokenizer, or learn "
                          "from its sentence vectors, with the objective sentence_vectors.")


def require_length(teacher: MiniBERT, length: int, objective: str) -> None:
    """Refuse sequences that the teacher cannot read."""
    most = teacher.config.max_seq_length
    if most < length:
        raise ConfigError(f"{objective}: the teacher {teacher.source} reads {most} tokens, fewer than the sequences "
                          f"have; set training.max_seq_length={most}.")


def weights_digest(model: MiniBERT) -> str:
    """A digest of a model's config and numbers."""
    digest = blake2b(repr(sorted(model.config.to_dict().items())).encode(), digest_size=16)
    for piece in model.params.pieces():
        digest.update(np.ascontiguousarray(piece).data)
    return digest.hexdigest()


def require_unchanged(state: Mapping[str, Any], digest: str, objective: str) -> None:
    """Refuse to go on with another teacher than a run began with."""
    if state.get("teacher", digest) != digest:
        raise ConfigError(f"{objective}: the teacher has changed since the run began; put its old weights back, or "
                          "begin a new run.")


def weight(name: str, value: Any, objective: str) -> float:
    """The weight of one of the objective's losses, checked."""
    return number(name, value, objective, least=0.0)


def number(name: str, value: Any, objective: str, *, least: float, above: bool = False) -> float:
    """A number at least, or above, `least`."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    if not known or not (least < value if above else least <= value) or not value < float("inf"):
        raise ConfigError(f"{objective}: {name} must be {'above' if above else 'at least'} {least:g}, not {value}.")
    return float(value)


def choice(name: str, value: Any, known: Mapping[str, Any], objective: str) -> str:
    """One of the known words."""
    if str(value) not in known:
        raise ConfigError(f"{objective}: {name} must be one of {', '.join(known)}, not {value}.")
    return str(value)
