"""How hard a sequence is.

    length     its tokens, [CLS] and [SEP] among them
    rarity     the mean of -ln p over its tokens; p is a token's share of the corpus' tokens, each counted once more

A word is made from the sequences that a run draws from (text/batches.py), and called with their numbers. Another
measure is a class or a function like these two, registered in a file of one's own:

    @register("difficulty", "commas")
    def commas(sequences):
        comma = sequences.vocabulary.ids[","]
        return lambda numbers: (sequences.fill(numbers, 0, 0).ids == comma).sum(axis=1)
"""

import numpy as np
import numpy.typing as npt

from ...core.registry import register
from ...text.masking import IntArray
from ...text.sequences.sequences import Sequences

Floats = npt.NDArray[np.float64]


@register("difficulty", "length")
class Length:
    """Short sequences are easy."""

    def __init__(self, sequences: Sequences):
        self.sequences = sequences

    def __call__(self, numbers: IntArray) -> IntArray:
        return self.sequences.lengths(numbers)


@register("difficulty", "rarity")
class Rarity:
    """Sequences of frequent tokens are easy, whatever their length."""

    def __init__(self, sequences: Sequences):
        self.sequences, counts = sequences, sequences.corpus.piece_counts()
        self.costs: Floats = np.log(counts.sum() + len(counts)) - np.log(counts + 1)          # -ln p, by id

    def __call__(self, numbers: IntArray) -> Floats:
        total, tokens = np.zeros(len(numbers)), np.zeros(len(numbers), np.int64)
        for starts, ends in self.sequences.stretches(numbers):
            lengths = ends - starts
            owner = np.repeat(np.arange(len(numbers)), lengths)
            places = np.arange(len(owner)) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
            costs = self.costs[self.sequences.corpus.tokens[places]]
            total += np.bincount(owner, costs, len(numbers))
            tokens += lengths
        return total / np.maximum(tokens, 1)
