"""Causal language modelling: predict the next token from those before it.

    loss = sum over positions t but the last of -ln p(x_(t+1) | x_1 ... x_t)      divided once by their number

The model must be causal: one that sees the next token has nothing to predict. With `segments=n`, each sequence is read
in n parts, and every part has the parts before it as its memory (core/memory.py), which nothing flows back into: so
Transformer-XL learns to use a memory, from running text. Derivation: docs/math/transformer_xl.md
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import exp
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..core.arrays import Array
from ..core.cache import Cache
from ..core.config import MASK, PAD
from ..core.context import DropoutKey
from ..core.memory import SegmentMemory, memory_after
from ..core.model import MiniBERT
from ..core.ops.cross_entropy import cross_entropy_backward, cross_entropy_forward, target_losses
from ..core.params import Gradients
from ..core.registry import register
from ..errors import ConfigError
from ..text.batches import MLMBatch, MLMBatches
from ..text.masking import BoolArray, IntArray
from ..text.sequences.sequences import PaddedSequences
from .masked import MaskedLM
from .objective import USUAL_PASSES, PassOptions, Team


def next_tokens(ids: IntArray, mask: BoolArray) -> MLMBatch:
    """Sequences (B, T) as a batch in which every token but the last predicts the one behind it."""
    targets, predicts = np.full_like(ids, PAD), np.zeros_like(mask)
    targets[:, :-1], predicts[:, :-1] = ids[:, 1:], mask[:, 1:]
    return MLMBatch(ids, targets, predicts, mask)


class Segment(NamedTuple):
    """The pass over one part of some sequences: logits (M, V) and the true next tokens (M,)."""

    logits: Array
    targets: IntArray
    cache: Cache
    last: bool


def read_in_segments(model: MiniBERT, batch: MLMBatch, length: int, memory_length: int,
                     dropout_key: DropoutKey | None = None, **options: Any) -> Iterator[Segment]:
    """Pass over `length` tokens of the sequences at a time, each part with a memory of `memory_length` before it."""
    memory: SegmentMemory | None = None
    ends = np.flatnonzero(batch.mask_positions.any(axis=0)).max(initial=-1) + 1       # nothing is predicted behind it
    rows = np.arange(len(batch.input_ids))
    for start in range(0, ends, length):
        some = slice(start, min(start + length, ends))
        going = np.flatnonzero(batch.mask_positions[rows, some].any(axis=1))          # the others have ended
        rows, memory = rows[going], None if memory is None else memory.of(going)
        predicts = batch.mask_positions[rows, some]
        types = None if batch.token_types is None else batch.token_types[rows, some]
        logits, cache = model.forward(batch.input_ids[rows, some], batch.attention_mask[rows, some], token_types=types,
                                      positions=predicts, memory=memory, **options,
                                      dropout_key=None if dropout_key is None else (*dropout_key, start))
        memory = memory_after(cache, memory_length) if memory_length else None
        yield Segment(logits, batch.target_ids[rows, some][predicts], cache, some.stop == ends)


class NextTokenBatches(MLMBatches):
    """Sequences as the masked objective has them, with nothing masked."""

    def batch(self, rows: PaddedSequences, epoch: int, numbers: IntArray, step: int) -> MLMBatch:
        return next_tokens(rows.ids, rows.attention_mask)._replace(token_types=rows.token_types)


class RunningTextBatches(MLMBatches):
    """Windows of running text: [CLS] only where a document begins, [SEP] only where it ends.

    A model that always sees [CLS] first comes to lean on it, and fails in the middle of a text.
    """

    def batch(self, rows: PaddedSequences, epoch: int, numbers: IntArray, step: int) -> MLMBatch:
        sequences = self.sequences
        begins = sequences.locate(numbers)[1] == 0
        ends = (numbers + 1 == len(sequences)) | (sequences.locate(np.minimum(numbers + 1, len(sequences) - 1))[1] == 0)
        lengths = rows.attention_mask.sum(axis=1) - ~begins - ~ends
        mask = np.arange(int(lengths.max())) < lengths[:, None]
        places = np.minimum(np.arange(mask.shape[1]) + ~begins[:, None], rows.ids.shape[1] - 1)
        return next_tokens(np.where(mask, np.take_along_axis(rows.ids, places, axis=1), PAD), mask)


@register("objective", "causal")
class CausalLM(MaskedLM):
    """Of one causal model. Every real token but the last of its sequence has a loss."""

    main: str = "causal"
    masks = False
    needs: ClassVar[Mapping[str, Any]] = {"score_terms": "causal"}

    def __init__(self, model: MiniBERT, passes: PassOptions = USUAL_PASSES, *, segments: int = 1):
        if isinstance(segments, bool) or not isinstance(segments, int) or segments < 1:
            raise ConfigError(f"causal: segments must be a whole number of at least 1, not {segments}.")
        self.segments = segments
        self.made_by = RunningTextBatches if segments > 1 else NextTokenBatches
        if not model.modules.causal:
            raise ConfigError("The objective causal needs a model that sees no later tokens; this one does. Its "
                              "score_terms must have causal.")
        if segments > 1 and not model.modules.stack.remembers:
            raise ConfigError(f"causal: segments={segments} needs a model with a memory; its stack must be recurrent, "
                              f"not {model.config.stack}.")
        super().__init__(model, passes)

    def _segments(self, part: MLMBatch, key: DropoutKey | None = None, **options: Any) -> Iterator[Segment]:
        T = part.input_ids.shape[1]
        return read_in_segments(self.model, part, -(-T // self.segments), T if self.segments > 1 else 0, key, **options)

    def add_gradients(self, part: MLMBatch, grads: Gradients, key: DropoutKey | None,
                      factors: Mapping[str, float]) -> Mapping[str, float]:
        total = 0.0
        for logits, targets, cache, last in self._segments(part, key, **self.passes.keeping):
            loss, found = cross_entropy_forward(logits, targets, overwrite=True)
            dlogits = cross_entropy_backward(factors[self.main], found, overwrite=True)
            self.model.backward(dlogits, cache, grads, forget=True, last=last)
            total += loss
        return {self.main: total}

    def evaluate(self, parts: Sequence[MLMBatch], team: Team) -> dict[str, float]:
        def one(part: MLMBatch) -> list[tuple[Any, BoolArray]]:
            return [(target_losses(logits, targets), logits.argmax(axis=1) == targets)
                    for logits, targets, _, _ in self._segments(part, forward_only=True)]

        found = chain.from_iterable(team.map(one, parts))
        losses, right = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        loss = float(losses.mean())
        return {self.main: loss, "perplexity": exp(min(loss, 700.0)), "accuracy": float(right.mean())}

    def example(self, rng: np.random.Generator) -> MLMBatch:
        mask = np.arange(7) < np.array([7, 4, 2])[:, None]
        return next_tokens(np.where(mask, rng.integers(MASK + 1, self.model.config.vocab_size, mask.shape), PAD), mask)

    def floats(self, sequences: int, masking_rate: float) -> int:
        return super().floats(sequences, 1.0)                 # every row has logits
