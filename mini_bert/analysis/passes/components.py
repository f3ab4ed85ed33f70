"""One component at a time: what attention, LayerNorm and the feed-forward network do to the numbers given to them.

The arrays go through core's own operations; nothing here computes a second time what they compute.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from ...core.arrays import Array, BoolArray
from ...core.context import Context
from ...core.hooks import recorder
from ...core.inputs import as_array, check_floats
from ...core.model import MiniBERT
from ...core.ops.attention import attention_forward
from ...core.ops.layernorm import layernorm_forward
from ...core.selection import Selection
from ...errors import InputError
from ...evaluation.probabilities import Floats, entropy
from ...evaluation.result import Result
from ...pretrained import model_directory


@dataclass(frozen=True, eq=False)
class AttentionComputation(Result):
    """Scaled dot-product attention, step by step; arrays (..., queries, keys) or (..., queries, d_k)."""

    products: Array                       # Q K^T
    scale: float                          # 1 / sqrt(d_k)
    scores: Array                         # products * scale, -inf at hidden keys
    attention_weights: Array              # softmax of the scores
    context: Array                        # attention_weights V
    entropy: Floats                       # of each query's weights, in nats
    strongest: npt.NDArray[np.int64]      # the key with the largest weight, by query


@dataclass(frozen=True)
class Distribution(Result):
    """Of rows (N, H): mean and deviation of each row, and figures of all numbers together."""

    row_mean: Floats
    row_deviation: Floats
    mean: float
    deviation: float
    smallest: float
    largest: float


@dataclass(frozen=True)
class LayerNormStatistics(Result):
    """Before, after normalising (mean 0 and deviation 1 in each row), and after gamma and beta."""

    before: Distribution
    normalised: Distribution
    after: Distribution
    shrunk_by: Floats                     # of each row: the deviation that it was divided by


@dataclass(frozen=True)
class FFNPatterns(Result):
    """Which hidden units of a feed-forward network are on, over N tokens. On: what enters the activation is > 0."""

    tokens: int
    share_on: Floats                      # (I,) of the tokens
    mean_activation: Floats               # (I,)
    dead: list[int]                       # on for no token
    always_on: list[int]
    sparsity: float                       # share of units that are off, over all tokens


class MathematicalAnalyzer:
    """Analyses the components of a model, by default of the shipped Mini-BERT."""

    def __init__(self, model: MiniBERT | None = None):
        self.model = model

    def analyze_attention_computation(self, Q: Array, K: Array, V: Array,
                                      key_mask: BoolArray | None = None) -> AttentionComputation:
        """Q, K and V are (T, d_k), (A, T, d_k) or (B, A, T, d_k); key_mask (B, T) is True at real keys."""
        arrays = [as_array(array, name) for array, name in ((Q, "Q"), (K, "K"), (V, "V"))]
        axes = arrays[0].ndim
        if axes not in (2, 3, 4) or any(a.ndim != axes or a.dtype.kind != "f" for a in arrays) \
                or arrays[1].shape != arrays[2].shape or arrays[0].shape[-1] != arrays[1].shape[-1]:
            raise InputError("Q, K and V must be floating-point numbers of shape (..., tokens, d_k), K and V alike, "
                             f"not {', '.join(str(a.shape) for a in arrays)}.")
        q, k, v = (a.reshape((1,) * (4 - axes) + a.shape) for a in arrays)
        seen: dict[str, Array] = {}
        context, _ = attention_forward(q, k, v, key_mask, hook=recorder(seen, np.ndarray.copy))
        weights = seen["attention_weights"]
        whole = {"products": q @ k.transpose(0, 1, 3, 2), "scores": seen["scores"], "attention_weights": weights,
                 "context": context, "entropy": entropy(weights), "strongest": weights.argmax(axis=-1)}
        return AttentionComputation(scale=float(1 / np.sqrt(q.shape[3])),
                                    **{name: array[(0,) * (4 - axes)] for name, array in whole.items()})

    def analyze_layer_norm_statistics(self, x: Array, gamma: Array, beta: Array,
                                      eps: float | None = None) -> LayerNormStatistics:
        """x (..., H), gamma and beta (H,). eps is the model's, or 1e-5 without one."""
        rows, scale, shift = (as_array(array, name) for array, name in ((x, "x"), (gamma, "gamma"), (beta, "beta")))
        H = rows.shape[-1] if rows.ndim else 0
        if rows.dtype.kind != "f" or not rows.size or scale.shape != (H,) or shift.shape != (H,):
            raise InputError(f"x must be numbers (..., H) with gamma and beta (H,), not {rows.shape}, {scale.shape} "
                             f"and {shift.shape}.")
        rows = rows.reshape(-1, H)
        if eps is None:
            eps = 1e-5 if self.model is None else self.model.config.layernorm_eps
        y, (xhat, r, _) = layernorm_forward(rows, scale, shift, eps)
        return LayerNormStatistics(_distribution(rows), _distribution(xhat), _distribution(y),
                                   1 / r.astype(np.float64))

    def analyze_ffn_activation_patterns(self, x: Array, layer: int) -> FFNPatterns:
        """x (..., H) is what enters the feed-forward network of this layer: `ffn_input` of a pass."""
        model = self.model if self.model is not None else _shipped_model()
        feedforward = model.layer(layer).feedforward
        given = as_array(x, "x")
        rows = check_floats(x, "x", (*given.shape[:-1], model.config.hidden_size), dtype=model.dtype)
        seen: dict[str, Array] = {}
        feedforward.forward(model.params, rows, Context(Selection(1, len(rows)), hook=recorder(seen, np.ndarray.copy)))
        return ffn_patterns(seen["ffn_hidden"], seen["ffn_activation"])


@cache
def _shipped_model() -> MiniBERT:
    return MiniBERT.load(model_directory("mini"))


def ffn_patterns(hidden: Array, activation: Array) -> FFNPatterns:
    """From what enters the activation and what leaves it, both (N, I)."""
    on = hidden > 0
    share = on.mean(axis=0)
    return FFNPatterns(len(on), share, activation.mean(axis=0, dtype=np.float64), np.flatnonzero(share == 0).tolist(),
                       np.flatnonzero(share == 1).tolist(), float(1 - on.mean()))


def _distribution(rows: Array) -> Distribution:
    numbers = rows.astype(np.float64)
    return Distribution(numbers.mean(axis=1), numbers.std(axis=1), float(numbers.mean()), float(numbers.std()),
                        float(numbers.min()), float(numbers.max()))
