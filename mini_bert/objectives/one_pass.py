"""Several losses that read one pass of a model: `masked + next_sentence`, on the same pairs of sentences.

    total = sum over losses j of  weight_j  total_j(h)         dh = sum over j of  d (weight_j total_j) / dh

The losses read rows of the same hidden states h; each sends back a gradient of its own rows, and the sum of these goes
through the encoder once. Of a sum, the objectives that agree on their sequences are put together so: the words of one
that reads any pairs may be read in the pairs that another one needs. Each changes the tokens in its turn, and leaves
alone what an earlier one has changed. Held-out text is measured for each by itself, without what the others change.

An objective takes part if its class says `shares_pass = True` itself: a subclass may have changed its batches or its
gradients, so the word is not inherited.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.context import DropoutKey
from ..core.params import Gradients
from ..core.registry import find, words
from ..core.selection import Selection
from ..text.batches import MLMBatch, MLMBatches
from ..text.corpora.corpus import Corpus
from ..text.sequences.sequences import Sequences
from .masked import MaskedLM, cut
from .objective import Batches, BatchSettings, CorpusObjective
from .weighted_sum import Term, WeightedSum


def in_one_pass(terms: Sequence[Term], sequences: str) -> list[Term]:
    """The terms of a sum, those that can read one pass put together; `sequences` is the word of the config."""
    groups: list[list[Term]] = []
    for term in terms:
        for group in groups:
            if _agree([*(other.objective for other in group), term.objective], sequences):
                group.append(term)
                break
        else:
            groups.append([term])
    return [group[0] if len(group) == 1 else Term(1.0, OnePass(group)) for group in groups]


def _agree(objectives: Sequence[CorpusObjective[Any, Any]], sequences: str) -> bool:
    sharing = [objective for objective in objectives
               if isinstance(objective, MaskedLM) and vars(type(objective)).get("shares_pass", False)]
    return len(sharing) == len(objectives) and _narrowest(sharing, sequences) is not None


def _narrowest(objectives: Sequence[MaskedLM], sequences: str) -> str | type[Sequences] | None:
    """The kind of sequences that is a kind of what each of the objectives needs, if there is one."""
    wanted = list(dict.fromkeys(objective.mode(sequences) for objective in objectives))
    if len(wanted) == 1:
        return wanted[0]
    named = {word: find("sequences", word).named for word in words("sequences")}
    kinds = [named.get(kind) if isinstance(kind, str) else kind for kind in wanted]       # a schedule is no kind
    return next((kind for kind in kinds
                 if kind is not None and all(other is not None and issubclass(kind, other) for other in kinds)), None)


class OnePass(WeightedSum):
    """Objectives of one model on one batch; a part is a tuple with the part of each, whose inputs are the same."""

    objectives: list[MaskedLM]        # type: ignore[assignment]

    def batches(self, corpus: Corpus, config: BatchSettings) -> Batches[tuple[MLMBatch, ...]]:
        kind = _narrowest(self.objectives, config.sequences)
        return _MarkedInTurn([objective.batches(corpus, config, kind) for objective in self.objectives])

    def micro_batches(self, batch: tuple[MLMBatch, ...]) -> list[tuple[MLMBatch, ...]]:
        size = self.objectives[0].rows_at_a_time(batch[0])
        cuts = [cut(own, size) for own in batch]
        return [parts for parts in zip(*cuts, strict=True) if any(self.counts(parts).values())]

    def tokens(self, batch: tuple[MLMBatch, ...]) -> int:
        return self.objectives[0].tokens(batch[0])

    def counts(self, part: tuple[MLMBatch, ...]) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for objective, own in zip(self.objectives, part, strict=True):
            found |= objective.counts(own)
        return found

    def add_gradients(self, part: tuple[MLMBatch, ...], grads: Gradients, key: DropoutKey | None,
                      factors: Mapping[str, float]) -> Mapping[str, Any]:
        model, first = self.objectives[0].model, part[0]
        reads = [objective.reads(own) for objective, own in zip(self.objectives, part, strict=True)]
        read = np.logical_or.reduce(reads)
        hidden, cache = model.encode(first.input_ids, first.attention_mask, token_types=first.token_types,
                                     positions=read, dropout_key=key, **self.objectives[0].passes.keeping)
        dhidden, sums = np.zeros_like(hidden), dict[str, Any]()
        for objective, own, its in zip(self.objectives, part, reads, strict=True):
            if not its.any():
                continue
            rows = its[read]                                                     # of the hidden rows, its own
            ctx = cache.ctx.but(select=Selection(cache.ctx.select.B, cache.ctx.select.T, its))
            own_sums, drows = objective.add_loss(hidden[rows], own, ctx, grads, factors[objective.main])
            sums |= own_sums
            dhidden[rows] += drows
        model.encode_backward(dhidden, cache, grads, forget=True, last=True)
        return sums

    def example(self, rng: np.random.Generator) -> tuple[MLMBatch, ...]:
        """The examples of all, on the inputs of the first."""
        own = [objective.example(rng) for objective in self.objectives]
        types = next((example.token_types for example in own if example.token_types is not None), None)
        return tuple(example._replace(input_ids=own[0].input_ids, token_types=types) for example in own)


class _MarkedInTurn:
    """The sequences of a step, with what each objective has to predict in them."""

    def __init__(self, several: Sequence[MLMBatches]):
        self.several = several

    def __getitem__(self, step: int) -> tuple[MLMBatch, ...]:
        rows, epoch, numbers = self.several[0].rows(step)
        ids, taken, marked = rows.ids, np.zeros_like(rows.attention_mask), list[MLMBatch]()
        for batches in self.several:
            row = rows._replace(ids=ids, taken=taken)
            marked.append(batches.stage(step).batch(row, epoch, numbers, step))
            ids, taken = marked[-1].input_ids, taken | marked[-1].mask_positions
        return tuple(own._replace(input_ids=ids) for own in marked)
