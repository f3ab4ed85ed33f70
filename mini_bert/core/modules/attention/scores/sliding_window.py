"""Local attention: a token sees those at most `reach` tokens away.

    S_ij = -inf  if |i - j| > reach

With `global_every=n`, layers 0, n, 2 n, ... see everything, as in ModernBERT: information from far away arrives through
these. `global_layers='0 3 4'` names such layers one by one.
"""

import numpy as np

from .....errors import ConfigError
from ....arrays import BoolArray
from ....config import ModelConfig
from ....context import Context
from ....registry import register
from .term import Term


def is_global(layer: int, every: int, layers: str) -> bool:
    """Does this layer see everything?"""
    if not isinstance(every, int) or every < 0:
        raise ConfigError(f"global_every must be 0 or a number of layers, not {every}.")
    if not isinstance(layers, str) or not all(part.isdecimal() for part in layers.split()):
        raise ConfigError(f"global_layers must be the numbers of layers, as in '0 3 4', not {layers!r}.")
    return (every > 0 and layer % every == 0) or layer in map(int, layers.split())


@register("score_term", "sliding_window")
class SlidingWindow(Term):
    def __init__(self, config: ModelConfig, layer: int, reach: int = 64, global_every: int = 0,
                 global_layers: str = ""):
        super().__init__(config, layer)
        if not isinstance(reach, int) or reach < 1:
            raise ConfigError(f"sliding_window: reach must be a whole number of at least 1, not {reach}.")
        self.reach, self.everywhere = reach, is_global(layer, global_every, global_layers)

    def allowed(self, ctx: Context) -> BoolArray | None:
        """(1 or B, m, T), once for all layers."""
        if self.everywhere:
            return None
        queries, keys = ctx.query_positions(), ctx.key_positions()

        def compute() -> BoolArray:
            near: BoolArray = np.abs(keys - queries[:, :, None]) <= self.reach
            return near

        return ctx.table(("sliding_window", self.reach, queries.shape, queries.tobytes(), len(keys)), compute)
