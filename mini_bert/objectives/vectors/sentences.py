"""What objectives of sentence vectors share: one sentence a row, in batches of similar length, and groups of negatives.

A sentence is compared with others of its micro-batch. Which these are must not depend on the number of threads, nor on
how much memory a machine has, so the objective cuts a batch into groups by itself: as few as it can of at most `group`
sentences, all of about the same size, whatever training.micro_batch_size says. A batch of 128 sentences with group=64
has two, which two threads compute side by side.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core.arrays import Array, BoolArray
from ...core.config import MASK, PAD
from ...core.model import MiniBERT
from ...core.module import Sizes
from ...core.params import Parameters
from ...errors import ConfigError
from ...text.batches import MLMBatches
from ...text.corpora.corpus import Corpus
from ...text.masking import IntArray
from ...text.sequences.sequences import Sequences
from ..masked import EVAL_SEED
from ..objective import Batches, BatchSettings, CorpusObjective, PassOptions


class SentenceBatch(NamedTuple):
    """Sentences, padded (B, T), and the teacher's vectors of them (B, D), if there is a teacher."""

    input_ids: IntArray
    attention_mask: BoolArray
    vectors: Array | None = None


class SentenceBatches(MLMBatches):
    """Sentences of a split in batches of similar length, with nothing masked: `sentences(step)`."""

    def __init__(self, corpus: Corpus, split: str, config: BatchSettings, *, batch_size: int, seed: int,
                 some: Sequences | None = None):
        """`some` are those of the split's sentences that are used, unless it is all."""
        self._some = some
        super().__init__(corpus, split, max_seq_length=config.at(1.0).max_seq_length, batch_size=batch_size,
                         mode="sentences", bucket=True, seed=seed,
                         curriculum=config.ordering() if split == "train" else None)

    def _sequences(self, corpus: Corpus, mode: str, T: int) -> Sequences:
        return super()._sequences(corpus, mode, T) if self._some is None else self._some

    def _bucketed(self, mean_length: float) -> int:
        """As many sentences, whatever their lengths: a group is a number of sentences."""
        return self._largest

    def sentences(self, step: int) -> tuple[SentenceBatch, IntArray]:
        """The batch of a step, and the numbers of its sentences."""
        epoch, numbers = self.numbers(step)
        rows = self.sequences.fill(numbers, epoch, self.seed)
        return SentenceBatch(rows.ids, rows.attention_mask), numbers


class PlainSentences:
    """The batches of an objective that needs no teacher."""

    def __init__(self, source: SentenceBatches):
        self.source = source

    def __getitem__(self, step: int) -> SentenceBatch:
        return self.source.sentences(step)[0]

    def __len__(self) -> int:
        return len(self.source)


class SentenceObjective(CorpusObjective[SentenceBatch, SentenceBatch]):
    """An objective whose micro-batches are groups of at most `group` sentences."""

    def __init__(self, model: MiniBERT, passes: PassOptions, name: str, group: int):
        if isinstance(group, bool) or not isinstance(group, int) or group < 2:
            raise ConfigError(f"{name}: group must be a whole number of at least 2, not {group}.")
        if model.modules.causal:
            raise ConfigError(f"The objective {name} needs a model whose tokens see the whole sentence; this one's "
                              "score_terms have causal.")
        self.model, self.passes, self.group = model, passes, group
        self.params: Parameters = model.params

    def batches(self, corpus: Corpus, config: BatchSettings) -> Batches[SentenceBatch]:
        return PlainSentences(SentenceBatches(corpus, "train", config, batch_size=config.at(1.0).batch_size,
                                              seed=config.seed))

    def heldout(self, corpus: Corpus, config: BatchSettings) -> list[SentenceBatch]:
        if not corpus.manifest.heldout_documents:
            return []
        source = SentenceBatches(corpus, "heldout", config, batch_size=self.group, seed=EVAL_SEED)
        wanted = min(len(source), -(-config.eval_sequences // self.group))
        return [part for step in range(wanted) for part in self.micro_batches(source.sentences(step)[0])]

    def micro_batches(self, batch: SentenceBatch) -> list[SentenceBatch]:
        return groups(batch, self.group)

    def tokens(self, batch: SentenceBatch) -> int:
        return int(batch.attention_mask.sum())

    def example(self, rng: np.random.Generator) -> SentenceBatch:
        mask = np.arange(7) < np.array([7, 4, 3, 5, 6])[:, None]
        ids = rng.integers(MASK + 1, self.model.config.vocab_size, mask.shape)
        return SentenceBatch(np.where(mask, ids, PAD), mask)

    def floats(self, sequences: int, masking_rate: float) -> int:
        config = self.model.config
        tokens = sequences * config.max_seq_length
        inside = tokens * (5 * config.hidden_size + 2 * config.intermediate_size)
        return self.model.modules.floats(Sizes(tokens, tokens, config.max_seq_length)) + inside


def groups(batch: SentenceBatch, most: int) -> list[SentenceBatch]:
    """The batch in parts of at most `most` sentences and of about the same size, each as wide as its longest."""
    parts = []
    for rows in np.array_split(np.arange(len(batch.input_ids)), -(-len(batch.input_ids) // most)):
        width = int(batch.attention_mask[rows].sum(axis=1).max())
        parts.append(SentenceBatch(batch.input_ids[rows, :width], batch.attention_mask[rows, :width],
                                   None if batch.vectors is None else batch.vectors[rows]))
    return parts


def off_diagonal(matrices: Sequence[Array]) -> Array:
    """The elements of square matrices that are not on their diagonals, one after the other."""
    return np.concatenate([np.zeros(0), *(matrix[~np.eye(len(matrix), dtype=bool)] for matrix in matrices)])
