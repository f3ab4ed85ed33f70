"""Batches of token ids for a model: padding, sorting by length, and checking the tokenizer."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ..core.model import MiniBERT
from ..errors import InputError
from ..text.tokenizer import Tokenizer

_SPARE_IDS = 1024             # unused ids that a model of any size may have
Progress = Callable[[int], None]      # called with the number of texts done


def require_vocabulary(model: MiniBERT, tokenizer: Tokenizer) -> None:
    """Refuse a tokenizer that does not belong to the model.

    A model saved with its tokenizer stores the fingerprint of the vocabulary. For other models the sizes are compared:
    1,024 of a model's ids, or a quarter, may be unused, since vocabularies are often padded to a round number.
    """
    size, pieces = model.config.vocab_size, len(tokenizer)
    if pieces > size:
        raise InputError(f"The tokenizer has {pieces} pieces, but the model's vocabulary has only {size}; load both "
                         "from one directory.")
    if model.vocab_digest is not None:
        if tokenizer.vocabulary.digest() != model.vocab_digest:
            raise InputError("The tokenizer does not belong to the model: it is not the vocabulary, or not the order, "
                             "that the model was saved with; load both from one directory.")
    elif size - pieces > max(_SPARE_IDS, size // 4):
        raise InputError(f"The tokenizer does not belong to the model: it has {pieces} pieces, and the model's "
                         f"vocabulary {size}; load both from one directory.")


def opening_ids(tokenizer: Tokenizer) -> list[int]:
    """What a causal model reads before the first piece of a text: the tokenizer's own, or one that stands for it."""
    roles = tokenizer.vocabulary.roles
    return [*tokenizer.template.before] or \
        [next((roles[role] for role in ("cls", "sep", "unk") if role in roles), 0)]


def some_ids(ids: list[int], tokenizer: Tokenizer) -> list[int]:
    """The ids, or that of an unknown token if there are none: a model has to read something."""
    return ids or [tokenizer.vocabulary.roles.get("unk", tokenizer.vocabulary.pad)]


def pad_sequences(rows: Sequence[Sequence[int]], pad: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Rows of ids as one array (B, T), and the attention mask, True at real tokens."""
    lengths = np.array([len(row) for row in rows])
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(mask.shape, pad, np.int64)
    ids[mask] = np.concatenate([np.asarray(row, np.int64) for row in rows])
    return ids, mask


def batches_by_length(rows: Sequence[Sequence[int]], batch_size: int) -> Iterator[npt.NDArray[np.int64]]:
    """The indices of the rows in batches of similar length; the longest, which needs most memory, is first."""
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1, not {batch_size}.")
    order = np.argsort([-len(row) for row in rows], kind="stable")
    return (order[start : start + batch_size] for start in range(0, len(order), batch_size))
