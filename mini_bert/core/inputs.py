"""What enters a model, checked: a wrong array is refused in one sentence before anything is computed."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .arrays import Array, BoolArray, IntArray
from .config import ModelConfig
from .registry import find


class Group(NamedTuple):
    """Sequences of one length, all (B, T): see MiniBERT.encode_groups."""

    input_ids: IntArray
    token_types: IntArray | None = None
    positions: BoolArray | None = None


def as_array(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    """An array of whatever was given, lists included, if their rows are of one length."""
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(f"{name} has rows of different lengths; pad them to one length.") from None


def check_ids(ids: npt.ArrayLike, limit: int, name: str, of_what: str) -> IntArray:
    """A (B, T) array of whole numbers in [0, limit)."""
    array = as_array(ids, name)
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
    check_length(config, ids.shape[1], "input_ids")
    key_mask = None if attention_mask is None else check_key_mask(attention_mask, ids.shape, "input_ids")
    chosen = None if positions is None else check_mask(positions, ids.shape, "positions", "input_ids")
    if chosen is not None and key_mask is not None and (chosen & ~key_mask).any():
        raise InputError("positions selects padding: a token that attention_mask hides has no prediction.")
    types = None
    if token_types is not None:
        if config.token_types == 0:
            raise InputError("token_types were given, but this model has none (its config says token_types=0).")
        types = check_ids(token_types, config.token_types, "token_types", "the token types")
        if types.shape != ids.shape:
            raise InputError(f"token_types has the shape {types.shape}, but input_ids {ids.shape}.")
    return ids, key_mask, types, chosen


def check_order(order: npt.ArrayLike | None, shape: tuple[int, ...]) -> IntArray | None:
    """The rank of each token (B, T) in the order of a factorisation."""
    if order is None:
        return None
    ranks = as_array(order, "order")
    if ranks.dtype.kind not in "iu" or ranks.shape != shape:
        raise InputError(f"order must be whole numbers of the shape of input_ids, {shape}, not {ranks.dtype} "
                         f"{ranks.shape}.")
    return ranks.astype(np.int64)


def check_rows(rows: npt.ArrayLike | None, B: int, name: str) -> BoolArray | None:
    """A boolean for each sequence (B,); None if it is True of none."""
    if rows is None:
        return None
    chosen = check_mask(rows, (B,), name, f"a batch of {B} sequences")
    return chosen if chosen.any() else None


def check_length(config: ModelConfig, T: int, name: str) -> None:
    """Refuse more tokens than there are positions in a table; positions that are relative have no such end."""
    if config.max_seq_length < T and has_last_position(config):
        raise InputError(f"{name} has {T} tokens a sequence; this model takes at most "
                         f"max_seq_length={config.max_seq_length}.")


def has_last_position(config: ModelConfig) -> bool:
    """Does a part of the model have a table of max_seq_length positions? It says so by its attribute `limited`."""
    return bool(getattr(find("position_embeddings", config.position_embeddings).named, "limited", True)
                or getattr(find("stack", config.stack).named, "limited", False))


def check_key_mask(mask: npt.ArrayLike, shape: tuple[int, ...], beside: str) -> BoolArray | None:
    """The attention mask as booleans; None if it hides nothing."""
    key_mask = check_mask(mask, shape, "attention_mask", beside)
    hidden = np.flatnonzero(~key_mask.any(axis=1))
    if len(hidden):
        raise InputError(f"attention_mask hides every token of sequence {hidden[0]}; "
                         "each sequence needs at least one real token.")
    return None if key_mask.all() else key_mask


def check_mask(mask: npt.ArrayLike, shape: tuple[int, ...], name: str, beside: str) -> BoolArray:
    """A mask of this shape, which is that of `beside`, as booleans; numbers must be 0 or 1."""
    array = as_array(mask, name)
    if array.shape != shape:
        raise InputError(f"{name} has the shape {array.shape}, but {beside} {shape}.")
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be booleans or zeros and ones, not {array.dtype}.")
    if array.dtype.kind != "b" and ((array != 0) & (array != 1)).any():
        raise InputError(f"{name} must contain only zeros and ones.")
    return array.astype(bool)


def check_floats(values: npt.ArrayLike, name: str, *shapes: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Floating-point numbers in one of these shapes, as rows (N, n) in the model's precision."""
    array = as_array(values, name)
    if array.dtype.kind != "f":
        raise InputError(f"{name} must be floating-point numbers, not {array.dtype}.")
    if array.shape not in shapes:
        raise InputError(f"{name} has the shape {array.shape}; it must be {' or '.join(map(str, shapes))}.")
    return np.ascontiguousarray(array, dtype).reshape(-1, array.shape[-1])
