"""Scaled dot-product attention, for every sequence and head at once.

    S = Q K^T / sqrt(d_k) + bias      S = -inf at hidden keys      P = softmax(S)      C = drop(P) V

    dV = drop(P)^T dC      dP = drop'(dC V^T)      dS = softmax'(dP) = dbias
    dQ = dS K / sqrt(d_k)  dK = dS^T Q / sqrt(d_k)

Hidden are keys that are padding, and those that a query may not see. They have P = 0 exactly, hence dS = 0: nothing
flows into them. There may be fewer queries than keys, and no bias. Derivation: docs/math/attention.md
"""

from collections.abc import Callable
from math import sqrt
from typing import NamedTuple

import numpy as np

from ..arrays import Array, BoolArray
from ..formulas import Formula, Terms
from ..gradcheck import Check
from ..hooks import Hook, no_hook
from .dropout import DropoutCache, dropout_backward, dropout_forward
from .softmax import common_shift, softmax_backward, softmax_forward, still_serves

_CELLS = 1 << 17          # scores that are computed at a time where nothing is kept: half a megabyte


class AttentionCache(NamedTuple):
    Q: Array
    K: Array
    V: Array
    key_mask: BoolArray | None
    allowed: BoolArray | None
    bias: Array | None
    weights: Array            # P, before dropout
    dropout: DropoutCache

    @property
    def dropped(self) -> Array:
        """drop(P) again: dropout is its own transpose."""
        return dropout_backward(self.weights, self.dropout)

    @property
    def scores(self) -> Array:
        """S, for the reader: the backward does not need it, so it is computed again."""
        return _scores(self.Q, self.K, self.key_mask, self.allowed, self.bias)[0]


def _scores(Q: Array, K: Array, key_mask: BoolArray | None, allowed: BoolArray | None,
            bias: Array | None) -> tuple[Array, float | None]:
    """S, and the shift for its softmax: found before -inf comes in, which would leave each row with its own."""
    scores: Array = Q @ K.transpose(0, 1, 3, 2)                # (B, A, Tq, T)
    scores *= 1 / sqrt(Q.shape[3])
    if bias is not None:
        scores += bias
    shift = common_shift(scores)
    if key_mask is not None:
        scores += np.where(key_mask, 0, -np.inf).astype(Q.dtype)[:, None, None, :]
    if allowed is not None:
        scores += np.where(allowed, 0, -np.inf).astype(Q.dtype)[:, None]
    return scores, shift


def heads_last(shape: tuple[int, ...], like: Array) -> Array:
    """An empty (B, A, T, d_k) whose memory is (B, T, A, d_k): joining the heads is then free."""
    B, A, T, d_k = shape
    return np.empty((B, T, A, d_k), like.dtype).transpose(0, 2, 1, 3)


def attention_forward(Q: Array, K: Array, V: Array, key_mask: BoolArray | None = None, rate: float = 0.0,
                      rng: np.random.Generator | None = None, hook: Hook = no_hook, *,
                      bias: Array | None = None,
                      allowed: BoolArray | None = None) -> tuple[Array, AttentionCache]:
    """Q (B, A, Tq, d_k), K and V (B, A, T, d_k), key_mask (B, T), True at real tokens -> C like Q.

    `bias` is added to the scores (B, A, Tq, T) and broadcast to their shape, which its gradient has. `allowed`
    (1 or B, Tq, T) is True at the keys that a query may see.
    """
    scores, shift = _scores(Q, K, key_mask, allowed, bias)
    if hook is not no_hook:
        scores = hook("scores", scores)
        shift = shift if still_serves(shift, scores) else None
    weights, _ = softmax_forward(scores, out=scores, shift=shift)
    weights = hook("attention_weights", weights)
    dropped, dropout = dropout_forward(weights, rate, rng)
    context = np.matmul(dropped, V, out=heads_last(Q.shape, Q))
    return context, AttentionCache(Q, K, V, key_mask, allowed, bias, weights, dropout)


def attention_value(Q: Array, K: Array, V: Array, key_mask: BoolArray | None = None, *, bias: Array | None = None,
                    allowed: BoolArray | None = None, out: Array | None = None) -> Array:
    """C alone, for a pass without a backward, in the memory of `out` if that is given.

    The scale is on Q and the sum of a softmax divides C, which are d_k wide instead of T; the sequences are taken a few
    at a time, so that their scores stay in the processor's cache.
    """
    B, A, m, d_k = Q.shape
    context = heads_last(Q.shape, Q) if out is None else out
    ones = np.ones((K.shape[2], 1), Q.dtype)
    step = max(1, _CELLS // (A * m * K.shape[2]))
    for start in range(0, B, step):
        some = slice(start, start + step)
        scores: Array = (Q[some] * Q.dtype.type(1 / sqrt(d_k))) @ K[some].transpose(0, 1, 3, 2)
        if bias is not None:
            scores += bias if len(bias) == 1 else bias[some]
        shift = common_shift(scores)
        if key_mask is not None:
            scores += np.where(key_mask[some], 0, -np.inf).astype(Q.dtype)[:, None, None, :]
        if allowed is not None:
            scores += np.where(allowed if len(allowed) == 1 else allowed[some], 0, -np.inf).astype(Q.dtype)[:, None]
        if shift is None:                              # each row its own
            scores -= np.maximum(scores.max(axis=-1, keepdims=True), np.finfo(Q.dtype).min)
        elif shift:
            scores -= shift
        weights = np.exp(scores, out=scores)
        np.divide(weights @ V[some], np.maximum(weights @ ones, np.finfo(Q.dtype).tiny), out=context[some])
    return context


def attention_backward(dcontext: Array, cache: AttentionCache, hook: Hook = no_hook, *,
                       dweights: Array | None = None) -> tuple[Array, ...]:
    """dcontext (B, A, Tq, d_k) -> dQ, dK, dV, and dbias if there was a bias.

    `dweights` (B, A, Tq, T) is the gradient of drop(P) from whatever else reads it.
    """
    Q, K, V, _, _, bias, weights, dropout = cache
    # context = dropped V
    dV = np.matmul(cache.dropped.transpose(0, 1, 3, 2), dcontext, out=heads_last(K.shape, Q))
    ddropped = dcontext @ V.transpose(0, 1, 3, 2)
    if dweights is not None:
        ddropped += dweights
    # dropped = drop(softmax(scores)), and at hidden keys weights = 0 stops the gradient
    dweights = hook("attention_weights", dropout_backward(ddropped, dropout))
    dscores = hook("scores", softmax_backward(dweights, weights, out=dweights))
    # scores = Q K^T / sqrt(d_k) + bias
    dbias = () if bias is None else (dscores.copy(),)
    dscores *= 1 / sqrt(Q.shape[3])
    dQ = np.matmul(dscores, K, out=heads_last(Q.shape, Q))
    dK = np.matmul(dscores.transpose(0, 1, 3, 2), Q, out=heads_last(K.shape, Q))
    return dQ, dK, dV, *dbias


FORMULA = Formula("attention", "softmax({0} {1}^T / sqrt(d_k)) {2}")
WEIGHTED_SUM = Formula("weighted sum", "{0} {1}", ("d{y} {1}^T", "{0}^T d{y}"), terms=Terms.WEIGHTED,
                       page="attention",
                       back="Values get the gradients of those who attended to them; weights get how well each value "
                            "fits what was wanted.",
                       why="Each token collects the values of the tokens that it attends to, in proportion to the "
                           "weights. Only here do tokens learn of each other.")


def scores_formula(biases: int = 0, hide: Callable[[Array], Array] | None = None) -> Formula:
    """The scores of queries {0} and keys {1} with this number of biases added; `hide` puts -inf at hidden keys."""
    score = "{0} {1}^T / sqrt(d_k)" + "".join(f" + {{{i + 2}}}" for i in range(biases))
    return Formula("scores", score if hide is None else f"hide({score})",
                   ("d{y} {1} / sqrt(d_k)", "d{y}^T {0} / sqrt(d_k)", *("d{y}",) * biases), terms=Terms.SCORES,
                   functions={} if hide is None else {"hide": hide}, page="attention",
                   back="A query is moved towards the keys that should have scored higher, and a key towards such "
                        "queries.",
                   why="A large product means that the key fits the query. Dividing by the root of d_k keeps the "
                       "scores of wide heads from growing, so that softmax does not settle on one token at once.")


_MASK = np.array([[True, True, True, False], [True, False, False, False]])
CHECKS = [
    Check("no padding", lambda rng: list(rng.standard_normal((3, 2, 2, 3, 4)))),
    Check("padding", lambda rng: list(rng.standard_normal((3, 2, 2, 4, 3))), key_mask=_MASK),
    Check("fewer queries", lambda rng: [rng.standard_normal((2, 2, n, 3)) for n in (2, 4, 4)], key_mask=_MASK),
    Check("dropout", lambda rng: list(rng.standard_normal((3, 2, 2, 4, 3))), key_mask=_MASK, rate=0.3, rng=9),
    Check("bias", lambda rng: [*rng.standard_normal((3, 2, 2, 4, 3)), rng.standard_normal((2, 2, 4, 4))],
          names=("Q", "K", "V", "bias"), key_mask=_MASK),
    Check("hidden keys", lambda rng: list(rng.standard_normal((3, 2, 2, 4, 3))), key_mask=_MASK,
          allowed=np.tril(np.ones((1, 4, 4), bool), -1)),      # the first query sees nothing
]
