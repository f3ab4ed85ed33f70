"""Exercise: the backward of a whole layer."""

from typing import Any

import numpy as np

from ...core.arrays import Array, BoolArray
from ...core.gradcheck import Check
from ...core.ops.attention import attention_backward
from ...core.ops.layernorm import layernorm_backward
from ...core.ops.linear import linear_backward
from ...core.ops.relu import relu_backward
from ..compared import BackwardExercise
from ..exercise import Clues, Pieces, Wrong
from ..solutions.block import block_forward, join, split

_PADDED = np.array([[True, True, True], [True, True, False]])
_FULL = np.ones((1, 4), bool)
_ATTENTION = "dW_Q dW_K dW_V dW_O"
_BELOW = f"dx {_ATTENTION} dln1_gamma dln1_beta"


def _pieces(p: Pieces) -> dict[str, Any]:
    arguments: list[Any] = [*p.inputs, p.key_mask, p.num_heads]
    _, cache = block_forward(*arguments)
    dsum2, *_ = layernorm_backward(p.dy, cache[-1])
    dhidden, _, _ = linear_backward(dsum2, cache[10])
    through, _, _ = linear_backward(relu_backward(dhidden, cache[9]), cache[8])
    return {"cache": cache, "dsum2": dsum2, "through": through, **_below(cache, through + dsum2)}


def _below(cache: Any, dmiddle: Array, rearranged: bool = False) -> dict[str, Any]:
    """All gradients below the middle of the layer, from a correct or wrong dmiddle."""
    B, A, query, key, value, attend, output, ln1, *_ = cache
    dsum1, dln1_gamma, dln1_beta = layernorm_backward(dmiddle, ln1)
    djoined, dW_O, _ = linear_backward(dsum1, output)
    dcontext = split(djoined, B, A)
    if rearranged:                                        # a reshape to (B, A, T, d_k) without the transpose
        dcontext = djoined.reshape(dcontext.shape)
    dQ, dK, dV = attention_backward(dcontext, attend)
    dx_q, dW_Q, _ = linear_backward(join(dQ), query)
    dx_k, dW_K, _ = linear_backward(join(dK), key)
    dx_v, dW_V, _ = linear_backward(join(dV), value)
    return {"dx": dsum1 + dx_q + dx_k + dx_v, "dW_Q": dW_Q, "dW_K": dW_K, "dW_V": dW_V, "dW_O": dW_O,
            "dln1_gamma": dln1_gamma, "dln1_beta": dln1_beta, "dsum1": dsum1, "dx_q": dx_q, "dx_k": dx_k, "dx_v": dx_v}


def _some(values: dict[str, Any], names: str) -> tuple[Any, ...]:
    return tuple(values[name] for name in names.split())


def _inputs(rng: np.random.Generator, mask: BoolArray, heads: int, H: int, I: int) -> list[Array]:
    """Inputs that keep ReLU's input away from its kink, where finite differences mix two slopes."""
    B, T = mask.shape
    shapes = ((B * T, H), (H, H), (H, H), (H, H), (H, H), (H, I), (I,), (I, H), (H,), (H,), (H,), (H,), (H,))
    while True:
        x, *weights = (rng.standard_normal(shape) for shape in shapes)
        inputs: list[Array] = [x, *(0.5 * weight for weight in weights)]
        arguments: list[Any] = [*inputs, mask, heads]
        middle = block_forward(*arguments)[1][8][0]
        if np.abs(middle @ inputs[5] + inputs[6]).min() > 1e-3:
            return inputs


EXERCISE = BackwardExercise(
    "block", "a whole layer: attention and feed-forward, each with a residual connection", 5, "math/model.md",
    hints=("You have written every part. Read block_forward from its last line to its first, and write the backward "
           "of each line in that order.",
           "middle is used twice, by the network and by the sum after it; x is used four times, by W_Q, W_K, W_V and "
           "the sum. Where a value is used several times, its gradients add up.",
           "split and join only rearrange numbers, so the backward of join is split and that of split is join. The "
           "last line is dx = dsum1 + the gradients through W_Q, W_K and W_V."),
    checks=[
        Check("padding", lambda rng: _inputs(rng, _PADDED, 2, 4, 6), num_heads=2, key_mask=_PADDED),
        Check("three heads", lambda rng: _inputs(rng, _FULL, 3, 6, 5), num_heads=3, key_mask=_FULL),
    ],
    pieces=_pieces,
    clues=Clues(
        sizes=lambda p: {"the number of rows B*T": len(p.x), "the number of heads A": p.num_heads},
        wrong=[
            Wrong("dx", "The residual path around the attention is missing: x is added to its result, so dx has dsum1.",
                  lambda p: p.dx - p.dsum1),
            Wrong("dx", "The paths through the attention are missing: dx has the gradients through W_Q, W_K and W_V.",
                  lambda p: p.dsum1),
            Wrong("dx", "The path through the queries is missing: W_Q is applied to x.", lambda p: p.dx - p.dx_q),
            Wrong("dx", "The path through the keys is missing: W_K is applied to x.", lambda p: p.dx - p.dx_k),
            Wrong("dx", "The path through the values is missing: W_V is applied to x.", lambda p: p.dx - p.dx_v),
            Wrong(_BELOW, "The residual path around the feed-forward network is missing: middle is added to its "
                          "result, so dmiddle has dsum2.", lambda p: _some(_below(p.cache, p.through), _BELOW)),
            Wrong(_BELOW, "The path through the feed-forward network is missing: dmiddle has its gradient.",
                  lambda p: _some(_below(p.cache, p.dsum2), _BELOW)),
            Wrong(_BELOW, "dy is used for the residual path around the feed-forward network; LN2 is between dy and "
                          "the sum.", lambda p: _some(_below(p.cache, p.through + p.dy), _BELOW)),
            Wrong("dx dW_Q dW_K dW_V", "The heads are separated by a reshape without a transpose: use "
                  "split.", lambda p: _some(_below(p.cache, p.through + p.dsum2, rearranged=True),
                                                 "dx dW_Q dW_K dW_V")),
            Wrong("dW_Q dW_K", "dW_Q and dW_K are swapped.", lambda p: (p.dW_K, p.dW_Q)),
            Wrong("dW_K dW_V", "dW_K and dW_V are swapped.", lambda p: (p.dW_V, p.dW_K)),
            Wrong("dln1_gamma dln2_gamma dln1_beta dln2_beta", "The gradients of the two LayerNorms are swapped.",
                  lambda p: (p.dln2_gamma, p.dln1_gamma, p.dln2_beta, p.dln1_beta)),
        ]))
