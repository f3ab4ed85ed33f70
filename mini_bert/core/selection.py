"""Which tokens of a batch are computed to the end.

The MLM loss reads masked positions alone. Below the last layer every token matters, as a key and a value; above
that, only the selected rows do. A Selection carries the rows of a (B, T) batch, in reading order, through the last
layer. Selecting all of them is the same code with no copies. Streams have rows that ask beside those that answer.
"""

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from .arrays import Array, BoolArray, IntArray


class SeveralLengthsError(AttributeError):
    """A part of a model asked for the one length of a batch that has several."""


class Selection:
    """The selected tokens of a (B, T) batch: `positions` is (B, T), True where selected; None for all."""

    def __init__(self, B: int, T: int, positions: BoolArray | None = None):
        self.B, self.T, self.positions = B, T, positions
        self.tokens = B * T
        if positions is None:
            self.rows, self.m, self._slots = None, T, None
            self.M = B * T
            return
        self.rows = np.flatnonzero(positions)                   # (M,)
        self.M = len(self.rows)
        counts = positions.sum(axis=1)
        self.m = int(counts.max(initial=0))                     # columns of the grid of queries
        # where each selected row is in the (B, m) grid; None if all sequences fill it
        uneven = bool((counts != self.m).any())
        self._slots = np.flatnonzero(np.arange(self.m) < counts[:, None]) if uneven else None

    def __getattr__(self, name: str) -> NoReturn:
        raise SeveralLengthsError(f"{type(self).__name__} has no {name}: see one_after_another")

    def everything(self) -> "Selection":
        """All tokens of the same batch."""
        return self if self.rows is None else Selection(self.B, self.T)

    def mask(self) -> BoolArray:
        """(B, T), True at the selected tokens."""
        return np.ones((self.B, self.T), bool) if self.positions is None else self.positions

    def counts(self) -> IntArray:
        """How many tokens of each sequence are selected (B,)."""
        counts: IntArray = self.mask().sum(axis=1)
        return counts

    def query_positions(self) -> IntArray:
        """The position of each query in its sequence: (1, T), or (B, m), zeros where the grid is not filled."""
        if self.rows is None:
            return np.arange(self.T)[None]
        if self._slots is None:
            return (self.rows % self.T).reshape(self.B, self.m)
        grid = np.zeros(self.B * self.m, np.int64)
        grid[self._slots] = self.rows % self.T
        return grid.reshape(self.B, self.m)

    def keys(self, x: Array) -> Array:
        """The rows of x that attention can read: the B*T tokens."""
        return x

    def keys_backward(self, dkeys: Array) -> Array:
        """dkeys (B*T, H) -> dx, to which `take_backward` adds what the queries send back."""
        return dkeys

    def take(self, x: Array) -> Array:
        """x (B*T, H) -> its selected rows (M, H)."""
        if self.rows is None:
            return x
        return x[self.rows]

    def take_backward(self, dy: Array, dx: Array) -> Array:
        """Add dy (M, H) to the selected rows of dx (B*T, H)."""
        if self.rows is None:
            dx += dy
        else:
            dx[self.rows] += dy                                 # rows are distinct
        return dx

    def to_grid(self, y: Array) -> Array:
        """y (M, H) -> (B, m, H), zeros where a sequence has fewer than m selected tokens."""
        if self._slots is None:
            return y.reshape(self.B, self.m, y.shape[1])
        grid = np.zeros((self.B * self.m, y.shape[1]), y.dtype)
        grid[self._slots] = y
        return grid.reshape(self.B, self.m, y.shape[1])

    def from_grid(self, grid: Array) -> Array:
        """(B, m, H) -> (M, H): the way back, and the gradient of `to_grid` (as it is of this)."""
        rows = grid.reshape(self.B * self.m, grid.shape[2])
        return rows if self._slots is None else rows[self._slots]

    def sees_itself(self) -> BoolArray:
        """For each column of the grid of queries (m,): may it read its own token? See Context.seen."""
        return np.ones(self.m, bool)


def one_after_another(selections: Sequence[Selection]) -> Selection:
    """Of several batches, each of a length of its own, whose rows lie one after the other: for `keys` and `take`.

    What arranges rows as (B, T) or (B, m) is asked of each batch's own selection; this one has no B, T or m.
    """
    first = selections[0]
    joined = object.__new__(type(first))
    joined.tokens, joined.M = sum(each.tokens for each in selections), sum(each.M for each in selections)
    joined.rows = None
    if any(each.rows is not None for each in selections):
        starts = np.cumsum([0, *(each.tokens for each in selections)])
        joined.rows = np.concatenate([start + (np.arange(each.tokens) if each.rows is None else each.rows)
                                      for start, each in zip(starts.tolist(), selections, strict=False)])
    return joined


class Streams(Selection):
    """Queries that are no rows of the keys: x is the B*T rows that attention can read, and a row for each query below.

    DeBERTa's decoder asks with rows that know their absolute positions, and reads rows that do not; XLNet's second
    stream asks with rows that do not know their own token. A block runs as it is, and returns the M rows of queries.
    """

    def everything(self) -> Selection:
        return Selection(self.B, self.T)

    def keys(self, x: Array) -> Array:
        return x[: self.tokens]

    def keys_backward(self, dkeys: Array) -> Array:
        return np.concatenate([dkeys, np.zeros((self.M, dkeys.shape[1]), dkeys.dtype)])

    def take(self, x: Array) -> Array:
        """x (B*T + M, H) -> the rows of the queries (M, H)."""
        return x[self.tokens :]

    def take_backward(self, dy: Array, dx: Array) -> Array:
        dx[self.tokens :] += dy
        return dx

    def sees_itself(self) -> BoolArray:
        return np.zeros(self.m, bool)


class TwoStreams(Streams):
    """Both streams ask: the B*T rows of content, and below them the M rows of queries. A block returns all of them."""

    def __init__(self, B: int, T: int, positions: BoolArray | None = None):
        super().__init__(B, T, positions)
        self.queries = Streams(B, T, positions)                 # the second stream alone
        self.m += T

    def query_positions(self) -> IntArray:
        """(1 or B, T + m): of the content, then of the queries."""
        queries = self.queries.query_positions()
        content = np.broadcast_to(np.arange(self.T), (len(queries), self.T))
        return np.concatenate([content, queries], axis=1)

    def take(self, x: Array) -> Array:
        return x

    def take_backward(self, dy: Array, dx: Array) -> Array:
        dx += dy
        return dx

    def to_grid(self, y: Array) -> Array:
        """y (B*T + M, H) -> (B, T + m, H)."""
        content, queries = y[: self.B * self.T], y[self.B * self.T :]
        return np.concatenate([content.reshape(self.B, self.T, -1), self.queries.to_grid(queries)], axis=1)

    def from_grid(self, grid: Array) -> Array:
        content, queries = grid[:, : self.T], grid[:, self.T :]
        return np.concatenate([content.reshape(self.B * self.T, -1), self.queries.from_grid(queries)])

    def sees_itself(self) -> BoolArray:
        return np.arange(self.m) < self.T
