"""What a pass knows besides its input: one object instead of a long list of arguments.

The same Context goes down through all modules of a pass, forward and backward. A stack hands each layer its own
version (`in_layer`), whose hook and dropout carry the layer's number. A module stores nothing about a pass, so it can
be applied twice, or by two threads.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from ..errors import InputError
from ..randomness import generator
from .arrays import Array, BoolArray, IntArray
from .hooks import Hook, in_layer, no_hook
from .precision.activations import AS_COMPUTED, Activations
from .selection import Selection, one_after_another

DropoutKey = tuple[Any, ...]              # a seed, then words or whole numbers
Table = TypeVar("Table")
ALL = slice(None)


@dataclass(frozen=True)
class Dropout:
    """Where dropout draws from: the generator of each place, or None where dropout is off.

    The key, such as (seed, step, micro-batch), is all that decides; a repeated pass drops the same elements.
    """

    key: DropoutKey | None = None
    layer: str | int = "input"

    def __post_init__(self) -> None:
        if self.key is not None and (not isinstance(self.key, tuple) or not self.key):
            raise InputError(f"dropout_key must be a tuple such as (seed, step), not {self.key!r}.")

    def __call__(self, place: str, rate: float) -> np.random.Generator | None:
        """The generator for a place that drops at this rate."""
        if self.key is None or not rate:
            return None
        seed, *purpose = self.key
        return generator(seed, "dropout", *purpose, self.layer, place)


class Memory(Protocol):
    """Earlier tokens that attention reads in addition to those of the pass, for a text that is read part by part.

    `length` of them come before the first token of the pass. A recurrent stack keeps the rows that its layers were
    given, and their keys are computed again; a generator keeps the keys and values themselves.
    """

    @property
    def length(self) -> int: ...

    def in_layer(self, layer: int) -> "Memory": ...

    def rows(self, x: Array) -> Array:
        """x (B, T, H) -> with the earlier rows of this layer in front (B, length + T, H), or as it is."""

    def keys_values(self, K: Array, V: Array) -> tuple[Array, Array]:
        """(B, A, T, d_k) -> with the earlier keys and values in front (B, A, length + T, d_k), or as they are."""


@dataclass(frozen=True, eq=False)
class Context:
    """A batch of B sequences of T tokens, and how its pass is run."""

    select: Selection                     # the tokens that are computed to the end: the queries of attention
    key_mask: BoolArray | None = None     # (B, T), True at real tokens; None if nothing is padding
    ids: IntArray | None = None           # (B, T), the tokens
    types: IntArray | None = None         # (B, T), the segment of each token, where segments are told apart
    memory: Memory | None = None          # what attention reads of earlier tokens
    order: IntArray | None = None         # (B, T), the rank of each token in a factorisation: see `seen`
    causal: BoolArray | None = None       # (B,), the sequences in which no token may see a later one, if asked for
    hook: Hook = no_hook
    dropout: Dropout = Dropout()
    recompute: bool = False               # keep each layer's input alone, and compute the rest again in the backward
    forward_only: bool = False            # keep the layers' outputs alone: there will be no backward
    activations: Activations = AS_COMPUTED                # how what is kept of a layer is stored
    own: bool = False                     # does even padding see its own token, as in XLNet?
    last: bool = False                    # of a backward: no other will add to the same gradients, so they are complete
    tables: dict[Any, Any] = field(default_factory=dict)       # what layers share: see `table`
    groups: "tuple[Context, ...]" = ()    # the batches of a pass over several, each of its own length: see `together`

    @classmethod
    def whole(cls, sequences: int, tokens: int) -> "Context":
        """Of a pass that computes all tokens of its sequences to the end, with nothing hidden."""
        return cls(Selection(sequences, tokens))

    def but(self, **changes: Any) -> "Context":
        """The same context with other values of these fields: dataclasses.replace, faster, as every layer needs it."""
        made = object.__new__(Context)
        vars(made).update(vars(self), **changes)
        return made

    def each(self, change: "Callable[[Context], Context]") -> "Context":
        """The context that `change` makes of this one; in a pass over groups, of each group's."""
        return together([change(group) for group in self.groups]) if self.groups else change(self)

    def parts(self) -> "Iterator[tuple[Context, slice, slice]]":
        """The context of each batch of sequences of one length, where its selected rows are among the M rows, and where
        its tokens are among all. What mixes the tokens of a sequence runs part by part; all else works on rows."""
        if not self.groups:
            yield self, ALL, ALL
        asking = tokens = 0
        for group in self.groups:
            select = group.select
            yield group, slice(asking, asking + select.M), slice(tokens, tokens + select.tokens)
            asking, tokens = asking + select.M, tokens + select.tokens

    def in_layer(self, layer: int, *, last: bool) -> "Context":
        """For one layer: all tokens are computed in it, unless it is the last."""
        return self.but(select=self.select if last else self.select.everything(), hook=in_layer(self.hook, layer),
                        dropout=Dropout(self.dropout.key, layer),
                        memory=None if self.memory is None else self.memory.in_layer(layer))

    def in_part(self, part: str) -> "Context":
        """For a head or another part that is no layer: its dropout is drawn under its own name."""
        return self.but(dropout=Dropout(self.dropout.key, part))

    @property
    def earlier(self) -> int:
        """How many tokens come before the first one of this pass."""
        return 0 if self.memory is None else self.memory.length

    def query_positions(self) -> IntArray:
        """The position of each query in its text: (1, T), or (B, m), where the grid is not filled that of no token."""
        return self.select.query_positions() + self.earlier

    def key_positions(self) -> IntArray:
        """The position of each key in its text, the remembered ones first: (earlier + T,)."""
        return np.arange(self.earlier + self.select.T)

    def real_keys(self) -> BoolArray | None:
        """(B, earlier + T), True at the keys that are not padding; None if none is, or if `seen` tells."""
        if self.key_mask is None or self.own or not self.earlier:
            return None if self.own else self.key_mask
        return np.concatenate([np.ones((len(self.key_mask), self.earlier), bool), self.key_mask], axis=1)

    def seen(self) -> BoolArray | None:
        """The keys that a query may see in the factorisation order (B, m, earlier + T); None if there is no order.

        A token sees those of lower rank, those of its own rank and itself; the query of a token sees lower ranks alone.
        Whatever the query of a token reads has therefore never seen the token.
        """
        order, select, padded = self.order, self.select, self.own and self.key_mask is not None
        if order is None and not padded:
            return None

        def compute() -> BoolArray:
            places = np.broadcast_to(select.query_positions(), (select.B, select.m))
            seen = np.ones((select.B, select.m, select.T), bool)
            if order is not None:
                ranks = np.take_along_axis(order, places, axis=1)
                seen = order[:, None, :] < (ranks + select.sees_itself())[:, :, None]
            if self.key_mask is not None and padded:
                own = (np.arange(select.T) == places[:, :, None]) & select.sees_itself()[:, None]
                seen = (seen & self.key_mask[:, None, :]) | own
            remembered = np.ones((select.B, select.m, self.earlier), bool)
            return np.concatenate([remembered, seen], axis=2)

        return self.table(("seen", type(select), select.query_positions().tobytes()), compute)

    def table(self, key: Any, compute: Callable[[], Table]) -> Table:
        """What `compute` gives, computed once per pass for all layers that ask with the same key."""
        if key not in self.tables:
            self.tables[key] = compute()
        found: Table = self.tables[key]
        return found


def joined(parts: Sequence[Array]) -> Array:
    """The rows of all parts, one after the other."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def together(contexts: Sequence[Context]) -> Context:
    """One context for a forward-only pass over batches of different lengths, whose rows lie one after the other.

    No sequence is padded to the length of another. Linear layers, norms and activations see all rows at once; parts
    that need the sequences themselves ask for `parts`.
    """
    first = contexts[0]
    if len(contexts) == 1:
        return first
    return first.but(select=one_after_another([each.select for each in contexts]), ids=None, types=None,
                     groups=tuple(contexts))
