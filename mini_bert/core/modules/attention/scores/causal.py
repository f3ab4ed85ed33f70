"""Causal attention: a token sees itself and what comes before it, as in GPT.

    S_ij = -inf  if j > i

It has no parameters and no gradient of its own: a hidden key has the weight 0, and so the gradient 0.
"""

from ....arrays import BoolArray
from ....context import Context
from ....registry import register
from .term import Term


def no_later_keys(ctx: Context) -> BoolArray:
    """The keys that come no later than their query (1 or B, m, T), once for all layers."""
    queries, keys = ctx.query_positions(), ctx.key_positions()

    def compute() -> BoolArray:
        seen: BoolArray = keys <= queries[:, :, None]
        return seen

    return ctx.table(("causal", queries.shape, queries.tobytes(), len(keys)), compute)


@register("score_term", "causal")
class Causal(Term):
    hides_future = True

    def allowed(self, ctx: Context) -> BoolArray:
        return no_later_keys(ctx)
