"""Texts on their way into a model: ids, in batches of similar length."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ..core.model import MiniBERT
from ..errors import InputError
from ..text.wordpiece.tokenizer import WordPieceTokenizer

_SPARE_IDS = 1024             # that a model may have beyond its tokenizer's, whatever its size
Progress = Callable[[int], None]      # called with the number of texts done


def require_vocabulary(model: MiniBERT, tokenizer: WordPieceTokenizer) -> None:
    """Refuse a tokenizer whose ids mean something else to the model, or nothing.

    A model that was saved with its tokenizer knows the fingerprint of its vocabulary. For others the sizes are
    compared: a model may have some ids more than there are pieces, to fill up a round number, but not a quarter.
    """
    size, pieces = model.config.vocab_size, len(tokenizer)
    if pieces > size:
        raise InputError(f"The tokenizer has {pieces} pieces, but the model knows {size}.")
    if model.vocab_digest is not None:
        if tokenizer.vocabulary.digest() != model.vocab_digest:
            raise InputError(f"The tokenizer does not belong to the model: its {pieces} pieces are not those that the "
                             "model was saved with, or are in another order; load both from one directory.")
    elif size - pieces > max(_SPARE_IDS, size // 4):
        raise InputError(f"The tokenizer has {pieces} pieces, and the model {size}: it is not the model's; load both "
                         "from one directory.")


def pad_sequences(rows: Sequence[Sequence[int]], pad: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Rows of ids as one array (B, T), and the mask that is True at real tokens."""
    lengths = np.array([len(row) for row in rows])
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(mask.shape, pad, np.int64)
    ids[mask] = np.concatenate([np.asarray(row, np.int64) for row in rows])
    return ids, mask


def batches_by_length(rows: Sequence[Sequence[int]], batch_size: int) -> Iterator[npt.NDArray[np.int64]]:
    """The numbers of the rows in batches of similar length, the longest first: what needs most memory comes at once."""
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1, not {batch_size}.")
    order = np.argsort([-len(row) for row in rows], kind="stable")
    return (order[start : start + batch_size] for start in range(0, len(order), batch_size))
