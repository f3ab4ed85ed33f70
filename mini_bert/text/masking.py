"""Masking for masked language modelling.

Of each sequence, 15 % of the ordinary tokens are chosen. Of those, 80 % become [MASK], 10 % a random
token and 10 % stay as they are: the model cannot tell which tokens it will be asked about, so it has to
represent them all.
"""

import numpy as np
import numpy.typing as npt

from ..errors import InputError

NUM_SPECIAL = 5           # ids 0 to 4: [PAD] [UNK] [CLS] [SEP] [MASK]
MASKED, RANDOM = 0.8, 0.1

IntArray = npt.NDArray[np.integer]
BoolArray = npt.NDArray[np.bool_]


def mask_tokens(input_ids: IntArray, vocab_size: int, mask_token_id: int = 4, mask_prob: float = 0.15,
                rng: np.random.Generator | int = 0) -> tuple[IntArray, IntArray, BoolArray]:
    """Choose round(mask_prob * n) of the n ordinary tokens of each sequence, at least one, and hide them.

    input_ids (B, T) -> masked ids (B, T), target ids (B, T), which are the ids as they were, and the
    chosen positions (B, T) as booleans. Special tokens are never chosen. The same `rng` seed gives the
    same choice.
    """
    ids = np.asarray(input_ids)
    if ids.ndim != 2 or ids.dtype.kind not in "iu":
        raise InputError(f"input_ids must be whole numbers of shape (batch, tokens), not {ids.dtype} {ids.shape}.")
    if not 0 <= mask_prob <= 1:
        raise InputError(f"mask_prob must be between 0 and 1, not {mask_prob}.")
    if vocab_size < NUM_SPECIAL or not 0 <= mask_token_id < vocab_size:
        raise InputError(f"mask_token_id={mask_token_id} is not in a vocabulary of {vocab_size}, "
                         f"or that has no room for the {NUM_SPECIAL} special tokens.")
    rng = np.random.default_rng(rng)
    ordinary = ids >= NUM_SPECIAL
    available = ordinary.sum(axis=1)
    wanted = np.rint(mask_prob * available).astype(int)
    if mask_prob > 0:
        wanted = np.minimum(np.maximum(wanted, 1), available)
    # the tokens of a sequence in a random order, special ones last: the first `wanted` are chosen
    order = np.where(ordinary, rng.random(ids.shape), 2.0).argsort(axis=1)
    chosen = np.zeros(ids.shape, bool)
    np.put_along_axis(chosen, order, np.arange(ids.shape[1]) < wanted[:, None], axis=1)

    masked = ids.copy()
    lot = rng.random(ids.shape)
    masked[chosen & (lot < MASKED)] = mask_token_id
    swapped = chosen & (lot >= MASKED) & (lot < MASKED + RANDOM)
    if vocab_size > NUM_SPECIAL:
        masked[swapped] = rng.integers(NUM_SPECIAL, vocab_size, int(swapped.sum()))
    return masked, ids.copy(), chosen
