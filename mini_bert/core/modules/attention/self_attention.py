"""Multi-head self-attention: project to Q, K, V, attend in each head, join, project back.

    MHA(x) = concat_a(softmax(Q_a K_a^T / sqrt(d_k)) V_a) W_O,     Q = x W_Q,  K = x W_K,  V = x W_V

Only the selected rows ask (Q); every real token answers (K, V), the remembered ones of an earlier part of the text
included. The config's score terms come in order: each may change Q and K before the product, add to the scores behind
it, and hide keys.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ...arrays import Array, BoolArray, Deferred
from ...config import ModelConfig
from ...context import Context, joined
from ...formulas import Formula, Steps, StepSpec, Terms
from ...hooks import no_hook
from ...module import Layout, ScoreTerm, Sizes
from ...ops.attention import WEIGHTED_SUM, scores_formula
from ...ops.blockwise_attention import (
    BlockwiseCache,
    blockwise_attention_backward,
    blockwise_attention_forward,
    blockwise_attention_value,
    keeps_weights,
)
from ...ops.softmax import FORMULA as SOFTMAX
from ...params import Gradients, Parameters
from ...registry import make, parse_words, register
from ...selection import Selection
from ..linear import Linear

TO_HEADS = Formula("to heads", "split({0} {W} + {b})", ("join(d{y}) {W}^T",),
                   {"W": "{0}^T join(d{y})", "b": "sum_t(join(d{y}))"}, terms=Terms.LINEAR, page="model",
                   back="The heads are joined again, and the gradient goes back through the same weights.",
                   why="Each head gets dimensions of its own, so that it can look for something of its own.")
FROM_HEADS = Formula("from heads", "join({0}) {W} + {b}", ("split(d{y} {W}^T)",),
                     {"W": "join({0})^T d{y}", "b": "sum_t(d{y})"}, terms=Terms.LINEAR, page="model",
                     back="The gradient goes back through the same weights, and is split among the heads.",
                     why="The heads have worked apart; this product mixes what they found into one vector per token.")
# what the projections to heads are for
_ROLES = {"Q": "What each token looks for: one query per head.",
          "K": "What each token can be found by: a query that points the same way as its key gives a high score.",
          "V": "What each token hands over to the tokens that attend to it."}


@register("attention", "multi_head")
class SelfAttention:
    """With `key_bias=false`, the keys alone have no bias: one that is the same for all keys moves no softmax."""

    reads_weights: ClassVar[bool] = False         # does something else than the context need the attention weights?

    def __init__(self, config: ModelConfig, layer: int, key_bias: bool = True):
        H = config.hidden_size
        self.num_heads, self.head_size, self.rate = config.num_heads, config.head_size, config.attention_dropout
        self.terms: list[ScoreTerm] = [make("score_term", word, config, layer)
                                       for word in parse_words(config.score_terms, "score_terms")]

        def projection(letter: str, std: float) -> Linear:
            biased = config.attention_bias and (key_bias or letter != "K")
            bias = f"b_{letter}_{layer}" if biased else None
            return Linear(f"W_{letter}_{layer}", bias, H, H, std, component="attention", layer=layer,
                          symbol=f"W_{letter}")

        self.query, self.key, self.value = (projection(letter, config.init_std) for letter in "QKV")
        self.output = projection("O", config.residual_std)

    @property
    def causal(self) -> bool:
        """Does a token see what comes before it alone?"""
        return any(term.hides_future for term in self.terms)

    @property
    def can_be_causal(self) -> bool:
        """Is it causal, or in the sequences that ask for it?"""
        return any(term.hides_future or term.hides_future_if_asked for term in self.terms)

    def layout(self) -> Layout:
        for projection in (self.query, self.key, self.value, self.output):
            yield from projection.layout()
        for term in self.terms:
            yield from term.layout()

    def _split(self, x: Array) -> Array:
        B, T, H = x.shape
        return x.reshape(B, T, self.num_heads, H // self.num_heads).transpose(0, 2, 1, 3)   # (B, A, T, d_k)

    @staticmethod
    def _join(x: Array) -> Array:
        B, A, T, d_k = x.shape
        return x.transpose(0, 2, 1, 3).reshape(B, T, A * d_k)                                # (B, T, H)

    def forward(self, params: Parameters, x: Array, ctx: Context) -> tuple[Array, dict[str, Any]]:
        """x (B*T, H) -> y (M, H), one row for each selected token."""
        select, H = ctx.select, x.shape[1]
        x = ctx.hook("attention_input", x)
        source = select.keys(x)                                                  # (B*T, H)
        if ctx.memory is not None:                                               # and what was remembered, before it
            source = ctx.memory.rows(source.reshape(select.B, select.T, H)).reshape(-1, H)
        asking = select.take(x)                                                  # (M, H)
        q, query = self.query.forward(params, asking)
        k, key = self.key.forward(params, source)
        v, value = self.value.forward(params, source)
        attended = [self._attend(params, q[ask], k[rows], v[rows], one) for one, ask, rows in ctx.parts()]
        _, kept, inner = attended[0]
        gated, gate = self._gate(params, joined([found for found, _, _ in attended]), asking, ctx)       # (M, H)
        y, output = self.output.forward(params, gated)
        return ctx.hook("attention_output", y), {**kept, "_ops": (query, key, value, *inner, gate, output)}

    def _attend(self, params: Parameters, q: Array, k: Array, v: Array,
                ctx: Context) -> tuple[Array, dict[str, Any], tuple[Any, ...]]:
        """Rows of queries (M, H), keys and values (B*T, H) -> the joined context (M, H), and what is kept."""
        select, hook, (B, H) = ctx.select, ctx.hook, (ctx.select.B, q.shape[1])
        Q = hook("Q", self._split(select.to_grid(q)))                            # (B, A, m, d_k)
        K = hook("K", self._split(k.reshape(B, -1, H)))                          # (B, A, T, d_k)
        V = hook("V", self._split(v.reshape(B, -1, H)))
        if ctx.memory is not None:
            K, V = ctx.memory.keys_values(K, V)
        rotated_Q, rotated_K, bias, terms = self._apply_terms(params, Q, K, ctx)
        rng = ctx.dropout("attention_weights", self.rate)
        if ctx.forward_only and hook is no_hook and rng is None and not self.reads_weights:
            context = blockwise_attention_value(rotated_Q, rotated_K, V, ctx.real_keys(), bias=bias,
                                                allowed=self._allowed(ctx))
            return select.from_grid(self._join(context)), {}, (None, None, None)
        context, attend = blockwise_attention_forward(
            rotated_Q, rotated_K, V, ctx.real_keys(), self.rate, rng, hook, bias=bias, allowed=self._allowed(ctx))
        context, more = self._more_values(params, context, attend, ctx)
        context = hook("context", context)                                       # (B, A, m, d_k)
        return select.from_grid(self._join(context)), {
            "Q": Q, "K": K, "V": V, "scores": Deferred(lambda: attend.scores),
            "attention_weights": Deferred(lambda: attend.weights), "context": context}, (terms, attend, more)

    def backward(self, dy: Array, cache: dict[str, Any], grads: Gradients, ctx: Context) -> Array:
        """dy (M, H) -> dx (B*T, H)."""
        query, key, value, terms, attend, more, gate, output = cache["_ops"]
        select, hook = ctx.select, ctx.hook
        B, T = select.B, select.T
        dy = hook("attention_output", dy)
        djoined = self.output.backward(dy, output, grads)                        # y = joined W_O
        djoined, dasking = self._gate_backward(djoined, gate, grads, ctx)
        dcontext = hook("context", self._split(select.to_grid(djoined)))         # joined = from_grid(join(context))
        dweights = self._more_values_backward(dcontext, more, grads, ctx)
        dQ, dK, dV, *dbias = blockwise_attention_backward(dcontext, attend, hook, dweights=dweights)
        dQ, dK = self._apply_terms_backward(dQ, dK, dbias, terms, grads, ctx)
        dQ, dK, dV = hook("Q", dQ), hook("K", dK), hook("V", dV)
        dq = select.from_grid(self._join(dQ))                                    # Q = split(to_grid(q))
        rows, H = B * dK.shape[2], dy.shape[1]
        dsource = self.key.backward(self._join(dK).reshape(rows, -1), key, grads)        # k = source W_K
        dsource += self.value.backward(self._join(dV).reshape(rows, -1), value, grads)   # v = source W_V
        if ctx.memory is not None:                                               # nothing flows into what is past
            dsource = np.ascontiguousarray(dsource.reshape(B, -1, H)[:, -T:]).reshape(B * T, H)
        dx = select.keys_backward(dsource)                                       # source = keys(x)
        dasked = self.query.backward(dq, query, grads)                           # q = take(x) W_Q
        dx = select.take_backward(dasked if dasking is None else dasked + dasking, dx)
        return hook("attention_input", dx)

    def _more_values(self, params: Parameters, context: Array, attend: BlockwiseCache,
                     ctx: Context) -> tuple[Array, Any]:
        """The context (B, A, m, d_k), with whatever else the weights are taken of than the values."""
        return context, None

    def _more_values_backward(self, dcontext: Array, cache: Any, grads: Gradients, ctx: Context) -> Array | None:
        """The gradient of the weights, if something else was taken."""
        return None

    def _gate(self, params: Parameters, joined: Array, asking: Array, ctx: Context) -> tuple[Array, Any]:
        """The joined context (M, H) as it enters W_O; `asking` are the rows of x whose queries it answers."""
        return joined, None

    def _gate_backward(self, dgated: Array, cache: Any, grads: Gradients, ctx: Context) -> tuple[Array, Array | None]:
        """The gradients of the joined context, and of the asking rows, if a gate reads them."""
        return dgated, None

    def _allowed(self, ctx: Context) -> BoolArray | None:
        """The keys that a query may see by the order of the pass and by every term (1 or B, m, T); None if all are."""
        masks = [mask for mask in (ctx.seen(), *(term.allowed(ctx) for term in self.terms))
                 if mask is not None]
        return np.logical_and.reduce(masks) if len(masks) > 1 else masks[0] if masks else None

    def _apply_terms(self, params: Parameters, Q: Array, K: Array,
                     ctx: Context) -> tuple[Array, Array, Array | None, list[Any]]:
        """Q and K as they enter the product, the sum of all biases, and the terms' caches."""
        total, caches = None, []
        for term in self.terms:
            bias, bias_cache = term.bias(params, Q, K, ctx)
            Q, K, rotate_cache = term.rotate(params, Q, K, ctx)
            caches.append((rotate_cache, bias_cache, bias is not None))
            total = bias if total is None else total if bias is None else total + bias
        return Q, K, total, caches

    def _apply_terms_backward(self, dQ: Array, dK: Array, dbias: list[Array], caches: list[Any], grads: Gradients,
                              ctx: Context) -> tuple[Array, Array]:
        """The gradients of Q and K as they were before the terms."""
        for term, (rotate_cache, bias_cache, biased) in zip(reversed(self.terms), reversed(caches), strict=True):
            dQ, dK = term.rotate_backward(dQ, dK, rotate_cache, grads, ctx)
            more = term.bias_backward(dbias[0], bias_cache, grads, ctx) if biased else (None, None)
            # the bias may have been computed from Q and K too
            dQ, dK = (dx if also is None else dx + also for dx, also in zip((dQ, dK), more, strict=True))
        return dQ, dK

    def steps(self, x: str) -> Steps:
        for letter, title, part in (("Q", "Queries", self.query), ("K", "Keys", self.key), ("V", "Values", self.value)):
            yield part.step(letter, title, letter, x, "attention", TO_HEADS, why=_ROLES[letter])
        Q, K, biases = "Q", "K", list[str]()
        for term in self.terms:
            steps, Q, K, bias = term.steps(Q, K)
            yield from steps
            biases += [] if bias is None else [bias]
        yield StepSpec("scores", "Scores", "S", scores_formula(len(biases), self._hide()), (Q, K, *biases), (),
                       "attention", ("key",))
        yield StepSpec("attention_weights", "Attention weights", "A", SOFTMAX, ("scores",), (), "attention",
                       ("key",))
        yield from self._context_steps()
        yield from self._output_steps(x)

    def _context_steps(self) -> Steps:
        """From the weights to the context."""
        yield StepSpec("context", "Context: weighted values", "C", WEIGHTED_SUM, ("attention_weights", "V"), (),
                       "attention")

    def _output_steps(self, x: str) -> Steps:
        """From the context to the result."""
        yield self.output.step("attention_output", "Heads joined and projected", "O", "context", "attention",
                               FROM_HEADS)

    def _hide(self) -> Callable[[Array], Array] | None:
        """For the formula: -inf where a query may not see a key, in the scores (A, T, T) of one text."""
        if self._allowed(Context(Selection(1, 1))) is None:
            return None

        def hide(scores: Array) -> Array:
            allowed = self._allowed(Context(Selection(1, scores.shape[1])))
            return scores if allowed is None else np.where(allowed, scores, -np.inf)

        return hide

    def floats(self, sizes: Sizes) -> int:
        H = self.query.shape[1]
        weights = self.num_heads * sizes.length if keeps_weights(sizes.length, sizes.length) else 0
        dropped = weights // 4 if self.rate else 0                   # a mask of one byte per element
        bias = weights if any(term.steps("Q", "K")[3] is not None for term in self.terms) else 0      # the sum of all
        return 2 * H * sizes.tokens + sizes.rows * (2 * H + weights + dropped + bias) \
            + sum(term.floats(sizes) for term in self.terms)
