"""Token order (StructBERT): some runs of three tokens are shuffled, and the model finds the true token of each place.

    loss = sum over the places i of shuffled trigrams of -ln p(x_i)       x_i: the token that was there

One trigram is shuffled for every twenty tokens (`share=0.05`), at least one in a sequence that has three ordinary
tokens side by side, and always into another order. Nothing is hidden: the tokens are there, and their order is asked
for. With `masked + token_order` both are predicted in one pass; a trigram then has no masked token.
Derivation: docs/math/sentence_pairs.md
"""

from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.model import MiniBERT
from ..core.registry import register
from ..errors import ConfigError
from ..randomness import keyed_bits
from ..text.batches import MLMBatch, MLMBatches, unmarked
from ..text.masking import BoolArray, IntArray
from ..text.sequences.sequences import PaddedSequences
from .masked import MaskedLM
from .objective import USUAL_PASSES, PassOptions

LENGTH = 3                    # tokens that are shuffled together
ORDERS = np.array(list(permutations(range(LENGTH)))[1:])      # all but the true one


def shuffled(ids: IntArray, free: BoolArray, lots: npt.NDArray[np.uint64], share: float) -> tuple[IntArray, BoolArray]:
    """ids (B, T) with some trigrams of `free` tokens shuffled, and the places of these (B, T); `lots` decide.

    The trigrams of a sequence begin at every third place from a random one of the first three, so none overlap.
    """
    places = np.arange(ids.shape[1])
    fits = places % LENGTH == (lots[:, :1] % np.uint64(LENGTH)).astype(np.int64)
    for ahead in range(LENGTH):
        fits &= np.pad(free, ((0, 0), (0, ahead)))[:, ahead : ahead + len(places)]
    wanted = np.maximum(1, np.round(share * free.sum(axis=1)))
    rank = np.argsort(np.argsort(np.where(fits, lots >> np.uint64(1), np.iinfo(np.uint64).max), axis=1), axis=1)
    row, start = np.nonzero(fits & (rank < wanted[:, None]))
    orders = ORDERS[(lots[row, start + 1] % np.uint64(len(ORDERS))).astype(np.int64)]         # (trigrams, 3)
    found, chosen = ids.copy(), np.zeros(ids.shape, bool)
    for place in range(LENGTH):
        found[row, start + place] = ids[row, start + orders[:, place]]
        chosen[row, start + place] = True
    return found, chosen


class ShuffledBatches(MLMBatches):
    """Sequences as the masked objective has them, with trigrams shuffled instead; keyed by (seed, epoch, sequence)."""

    def __init__(self, *given: Any, share: float, **settings: Any):
        super().__init__(*given, **settings)
        self.share = share

    def batch(self, rows: PaddedSequences, epoch: int, numbers: IntArray, step: int) -> MLMBatch:
        free = rows.attention_mask & self.sequences.vocabulary.ordinary[rows.ids]
        if rows.taken is not None:
            free &= ~rows.taken
        lots = keyed_bits(numbers, rows.ids.shape[1], self.seed, "trigrams", epoch)
        ids, chosen = shuffled(rows.ids, free, lots, self.share)
        return unmarked(rows)._replace(input_ids=ids, mask_positions=chosen)


@register("objective", "token_order")
class TokenOrder(MaskedLM):
    """Of one model with a head for words, which says what it would say of a mask."""

    main: str = "token_order"
    shares_pass, masks = True, False

    def __init__(self, model: MiniBERT, passes: PassOptions = USUAL_PASSES, *, share: float = 0.05):
        if isinstance(share, bool) or not 0 < share <= 1 / LENGTH:
            raise ConfigError(f"token_order: share must be above 0 and at most 1/{LENGTH} trigrams for each token, not "
                              f"{share}.")
        super().__init__(model, passes)
        self.share, self.made_by = share, partial(ShuffledBatches, share=share)

    def example(self, rng: np.random.Generator) -> MLMBatch:
        batch = super().example(rng)
        ids, chosen = shuffled(batch.target_ids, batch.attention_mask,
                               rng.integers(0, 2**63, batch.input_ids.shape).astype(np.uint64), 0.2)
        return batch._replace(input_ids=ids, mask_positions=chosen)

    def floats(self, sequences: int, masking_rate: float) -> int:
        return super().floats(sequences, LENGTH * self.share)
