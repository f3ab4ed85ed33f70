"""What a pass knows beside its input: one object instead of a long list of arguments.

The same Context goes down through all modules of a pass, forward and backward. A stack hands each layer its own
version (`in_layer`), whose hook and dropout carry the layer's number. Nothing of a pass is kept on a module, so one
module can be applied twice, or by two threads.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from ..errors import InputError
from ..randomness import generator
from .arrays import BoolArray
from .hooks import Hook, in_layer, no_hook
from .selection import Selection

DropoutKey = tuple[Any, ...]              # a seed, then words or whole numbers
Table = TypeVar("Table")


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


@dataclass(frozen=True, eq=False)
class Context:
    """A batch of B sequences of T tokens, and how its pass is run."""

    select: Selection                     # the tokens that are computed to the end: the queries of attention
    key_mask: BoolArray | None = None     # (B, T), True at real tokens; None if nothing is padding
    hook: Hook = no_hook
    dropout: Dropout = Dropout()
    recompute: bool = False               # keep each layer's input alone, and compute the rest again in the backward
    forward_only: bool = False            # keep the layers' outputs alone: there will be no backward
    last: bool = False                    # of a backward: no other will add to the same gradients, so they are complete
    tables: dict[Any, Any] = field(default_factory=dict)       # what layers share: see `table`

    def but(self, **changes: Any) -> "Context":
        """The same context with other values of these fields: dataclasses.replace, faster, as every layer needs it."""
        made = object.__new__(Context)
        vars(made).update(vars(self), **changes)
        return made

    def in_layer(self, layer: int, *, last: bool) -> "Context":
        """For one layer: all tokens are computed in it, unless it is the last."""
        return self.but(select=self.select if last else self.select.everything(), hook=in_layer(self.hook, layer),
                        dropout=Dropout(self.dropout.key, layer))

    def in_part(self, part: str) -> "Context":
        """For a head or another part that is no layer: its dropout is drawn under its own name."""
        return self.but(dropout=Dropout(self.dropout.key, part))

    def table(self, key: Any, compute: Callable[[], Table]) -> Table:
        """What `compute` gives, computed once per pass for all layers that ask with the same key."""
        if key not in self.tables:
            self.tables[key] = compute()
        found: Table = self.tables[key]
        return found
