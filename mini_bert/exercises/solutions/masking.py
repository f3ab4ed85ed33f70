"""Masking for masked language modelling: which tokens are targets, and what the model sees at their positions.

    Of the n ordinary tokens of a row, max(1, round(0.15 n)) are chosen, all sets of this size with equal probability;
    a row without ordinary tokens has none. Special tokens (ids 0 to 4) are never chosen.
    Each chosen token becomes [MASK] with probability 0.8, a random ordinary token with 0.1, and stays with 0.1.

There is no backward here: you write the masking. Draw only from the given generator.
"""

import numpy as np

from mini_bert.core.arrays import BoolArray, IntArray

MASK = 4
SPECIAL = (0, 1, 2, 3, 4)                   # [PAD] [UNK] [CLS] [SEP] [MASK]
SHARE = 0.15


def choose_and_mask(ids: IntArray, vocab_size: int,
                    rng: np.random.Generator) -> tuple[IntArray, IntArray, BoolArray]:
    """ids (B, T) -> what the model sees (B, T), the original ids (B, T), and the chosen positions (B, T)."""
    seen, chosen = ids.copy(), np.zeros(ids.shape, bool)
    ordinary = ~np.isin(ids, SPECIAL)
    for row in range(len(ids)):
        places = np.flatnonzero(ordinary[row])
        count = min(len(places), max(1, round(SHARE * len(places))))
        chosen[row, rng.permutation(places)[:count]] = True
    lot = rng.random(ids.shape)
    others = rng.integers(len(SPECIAL), vocab_size, ids.shape)      # a random ordinary id for every position
    seen[chosen & (lot < 0.8)] = MASK
    swapped = chosen & (lot >= 0.8) & (lot < 0.9)
    seen[swapped] = others[swapped]
    return seen, ids.copy(), chosen         # above 0.9 the token stays, but is a target too
