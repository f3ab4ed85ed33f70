"""How well a causal model predicts long texts that it reads in segments, with a memory of earlier tokens and without.

Every document is [CLS] tokens [SEP], cut into segments of equal length. Each token is predicted from those before it in
its segment and, with a memory (core/memory.py), from what the layers remember of the segments before. Both are measured
on the same tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.model import MiniBERT
from ..core.ops.cross_entropy import target_losses
from ..errors import InputError
from ..objectives.causal import next_tokens, read_in_segments
from ..parallel.processes import Spread, world
from ..text.corpora.corpus import Corpus
from ..text.sequences.sequences import PackedSequences
from ..workers import workers

_TOGETHER = 8                 # documents of similar length that are read at a time
_LONGEST = 1_000_000          # tokens of a document; a longer one is read as several


@dataclass(frozen=True)
class SegmentLosses:
    """The mean loss of all predicted tokens for each length of memory."""

    length: int
    documents: int
    tokens: int
    losses: Mapping[int, float]

    def to_dict(self) -> dict[str, Any]:
        return {"length": self.length, "documents": self.documents, "tokens": self.tokens, "by_memory": [
            {"memory": memory, "loss": loss, "perplexity": exp(min(loss, 700.0))}
            for memory, loss in self.losses.items()]}


def segment_losses(model: MiniBERT, corpus: Corpus, *, split: str = "heldout", length: int = 64,
                   memory: int | None = None, documents: int | None = None, threads: int = 0) -> SegmentLosses:
    """The losses without a memory and, if the model can have one, with one of `memory` tokens, by default `length`.

    `documents` limits the number of documents.
    """
    if not model.modules.causal:
        raise InputError("Reading in segments predicts the next token, so it needs a causal model; this one sees later "
                         "tokens too.")
    if not 1 <= length <= model.config.max_seq_length:
        raise InputError(f"A segment must have 1 to {model.config.max_seq_length} tokens for this model, not {length}.")
    if memory is not None and (memory < 1 or not model.modules.stack.remembers):
        raise InputError(f"A memory of {memory} tokens is not possible: it needs at least one token, and a model "
                         "whose stack is recurrent.")
    texts = PackedSequences(corpus, split, _LONGEST)
    numbers = np.arange(len(texts))[:documents]
    numbers = numbers[np.argsort(texts.lengths(numbers), kind="stable")]
    lengths = [0, memory or length] if model.modules.stack.remembers else [0]

    def one(work: tuple[int, npt.NDArray[np.int64]]) -> npt.NDArray[np.float64]:
        remembered, some = work
        rows = texts.fill(some, 0, 0)
        batch = next_tokens(rows.ids, rows.attention_mask)
        return np.concatenate([target_losses(part.logits, part.targets) for part in
                               read_in_segments(model, batch, length, remembered, forward_only=True)])

    groups = [numbers[start : start + _TOGETHER] for start in range(0, len(numbers), _TOGETHER)]
    losses: dict[int, float] = {}
    with workers(threads) as threads_here:
        team = Spread(world(), threads_here)
        for remembered in lengths:
            found = np.concatenate(team.map(one, [(remembered, group) for group in groups]))
            losses[remembered] = float(found.mean())
    return SegmentLosses(length, len(numbers), len(found), losses)
