"""What enters a model, checked: a wrong array is refused in one sentence before anything is computed."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .arrays import Array, BoolArray, IntArray
from .config import ModelConfig


def check_ids(ids: npt.ArrayLike, limit: int, name: str, of_what: str) -> IntArray:
    """A (B, T) array of whole numbers in [0, limit)."""
    array = np.asarray(ids)
    if array.dtype.kind not in "iu":
        raise InputError(f"{name} must be whole numbers, not {array.dtype}.")
    if array.ndim != 2:
        raise InputError(f"{name} must have the shape (batch, tokens), not {array.shape}; "
                         f"for one sequence pass {name}[None].")
    if array.size == 0:
        raise InputError(f"{name} is empty: its shape is {array.shape}.")
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= limit:
        raise InputError(f"{name} has the value {low if low < 0 else high}, outside {of_what} of {limit}: "
                         f"valid values are 0 to {limit - 1}.")
    return array


def check_batch(config: ModelConfig, input_ids: npt.ArrayLike, attention_mask: npt.ArrayLike | None,
                token_types: npt.ArrayLike | None, positions: npt.ArrayLike | None,
                ) -> tuple[IntArray, BoolArray | None, IntArray | None, BoolArray | None]:
    """ids, key mask (None where nothing is padding), token types and positions, all (B, T)."""
    ids = check_ids(input_ids, config.vocab_size, "input_ids", "the vocabulary")
    if ids.shape[1] > config.max_seq_length:
        raise InputError(f"input_ids has {ids.shape[1]} tokens a sequence; this model takes at most "
                         f"max_seq_length={config.max_seq_length}.")
    key_mask = None
    if attention_mask is not None:
        key_mask = check_mask(attention_mask, ids.shape, "attention_mask")
        hidden = np.flatnonzero(~key_mask.any(axis=1))
        if len(hidden):
            raise InputError(f"attention_mask hides every token of sequence {hidden[0]}; "
                             "each sequence needs at least one real token.")
        if positions is not None and (check_mask(positions, ids.shape, "positions") & ~key_mask).any():
            raise InputError("positions selects padding: a token that attention_mask hides has no prediction.")
        if key_mask.all():
            key_mask = None
    types = None
    if token_types is not None:
        if config.token_types == 0:
            raise InputError("token_types were given, but this model has none (its config says token_types=0).")
        types = check_ids(token_types, config.token_types, "token_types", "the token types")
        if types.shape != ids.shape:
            raise InputError(f"token_types has the shape {types.shape}, but input_ids {ids.shape}.")
    return ids, key_mask, types, None if positions is None else check_mask(positions, ids.shape, "positions")


def check_mask(mask: npt.ArrayLike, shape: tuple[int, ...], name: str) -> BoolArray:
    """A mask of this shape as booleans; numbers must be 0 or 1."""
    array = np.asarray(mask)
    if array.shape != shape:
        raise InputError(f"{name} has the shape {array.shape}, but input_ids {shape}.")
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be booleans or zeros and ones, not {array.dtype}.")
    booleans = array.astype(bool)
    if array.dtype.kind != "b" and (array != booleans).any():
        raise InputError(f"{name} must hold zeros and ones alone.")
    return booleans


def check_hidden(array: npt.ArrayLike, shape: tuple[int, int], dtype: np.dtype[Any], name: str) -> Array:
    """Floating-point rows (N, n), given in that shape or as (B, T, n), in the model's precision."""
    given = np.asarray(array)
    if given.dtype.kind != "f":
        raise InputError(f"{name} must be floating-point numbers, not {given.dtype}.")
    if given.shape[-1:] != shape[1:] or given.size != shape[0] * shape[1]:
        raise InputError(f"{name} has the shape {given.shape}, which does not fit ({shape[0]} rows, {shape[1]}).")
    return np.ascontiguousarray(given, dtype).reshape(shape)
