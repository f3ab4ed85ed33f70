"""Attention that is causal in the sequences of a batch that ask for it, and sees everything in the others.

    S_ij = -inf  if j > i,  where Context.causal is True of the sequence

So one model can learn both to fill masks from both sides and to predict the next token (objectives/hybrid.py): a pass
of `fill-mask` asks for nothing, and one of `generate` asks for causal attention. Like `causal`, the term has no
parameters and no gradient of its own.
"""

from ....arrays import BoolArray
from ....context import Context
from ....registry import register
from .causal import no_later_keys
from .term import Term


@register("score_term", "causal_rows")
class CausalRows(Term):
    hides_future_if_asked = True

    def allowed(self, ctx: Context) -> BoolArray | None:
        """(B, m, T), once for all layers; None if no sequence asks."""
        causal = ctx.causal
        if causal is None:
            return None
        earlier = no_later_keys(ctx)                                             # (1 or B, m, T)
        queries = ctx.query_positions()
        return ctx.table(("causal_rows", queries.shape, queries.tobytes(), earlier.shape[2]),
                         lambda: earlier | ~causal[:, None, None])
