"""Permuted language modelling (XLNet): predict tokens one after the other, in an order that is drawn at random.

    loss = sum over k > c of -ln p(x_(z_k) | x_(z_1) ... x_(z_(k-1)))                z: a random order of the tokens

Only the last sixth of the order is predicted, where most is known. What comes before, and the special tokens, is
context: all of it has rank 0 and sees all of itself. The tokens to predict have the ranks 1, 2, ...; each is predicted
from the context and from those of lower rank, with its place and without itself. Derivation: docs/math/xlnet.md
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..core.model import MiniBERT
from ..core.registry import register
from ..errors import ConfigError
from ..randomness import keyed_bits
from ..text.batches import MLMBatch, MLMBatches
from ..text.masking import BoolArray, IntArray
from ..text.sequences.sequences import PaddedSequences
from .masked import MaskedLM

SHARE = 6                     # one in this many tokens is predicted


def permuted_ranks(ordinary: BoolArray, lots: npt.NDArray[np.uint64]) -> IntArray:
    """The ranks (B, T): 1, 2, ... for the tokens to predict, in the order of their lots (B, T); 0 for context."""
    last = np.iinfo(np.uint64).max
    place = np.argsort(np.argsort(np.where(ordinary, lots >> np.uint64(1), last), axis=1, kind="stable"), axis=1)
    counts = ordinary.sum(axis=1)
    wanted = np.minimum(counts, np.maximum(1, np.round(counts / SHARE)))[:, None]
    ranks: IntArray = np.where(place < wanted, place + 1, 0)
    return ranks


class PermutedBatches(MLMBatches):
    """Sequences as the masked objective has them, each with an order keyed by (seed, epoch, sequence)."""

    def batch(self, rows: PaddedSequences, epoch: int, numbers: IntArray, step: int) -> MLMBatch:
        ordinary = rows.attention_mask & self.sequences.vocabulary.ordinary[rows.ids]
        ranks = permuted_ranks(ordinary, keyed_bits(numbers, rows.ids.shape[1], self.seed, "permutation", epoch))
        return MLMBatch(rows.ids, rows.ids, ranks > 0, rows.attention_mask, rows.token_types, order=ranks)


@register("objective", "permuted")
class PermutedLM(MaskedLM):
    """Of one model with two streams."""

    main: str = "permuted"
    made_by = PermutedBatches
    masks = False                 # it chooses tokens by an order
    needs: ClassVar[Mapping[str, Any]] = {"stack": "two_stream", "score_terms": "relative"}

    def require_suitable(self, model: MiniBERT) -> None:
        if not model.modules.stack.orders:
            raise ConfigError("The objective permuted needs a model that can predict in any order; its stack must be "
                              f"two_stream, not {model.config.stack}.")
        if model.modules.causal:
            raise ConfigError("The objective permuted needs a model that sees later tokens too; this one's score_terms "
                              "have causal.")
        super().require_suitable(model)

    def example(self, rng: np.random.Generator) -> MLMBatch:
        batch = super().example(rng)
        ranks = permuted_ranks(batch.attention_mask, rng.integers(0, 2**63, batch.input_ids.shape).astype(np.uint64))
        return batch._replace(input_ids=batch.target_ids, mask_positions=ranks > 0, order=ranks)

    def floats(self, sequences: int, masking_rate: float) -> int:
        return super().floats(sequences, 1 / SHARE) * (SHARE + 1) // SHARE       # one query for every sixth token
