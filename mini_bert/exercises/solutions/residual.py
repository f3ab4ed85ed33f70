"""A sub-layer with a residual connection: x plus the feed-forward network of x, then a LayerNorm.

    h = relu(x W1 + b1)        f = h W2 + b2        y = LN(x + f)

The parts and their backwards are the library's; you put the backwards in order.
"""

from typing import Any

from mini_bert.core.arrays import Array
from mini_bert.core.ops.layernorm import layernorm_backward, layernorm_forward
from mini_bert.core.ops.linear import linear_backward, linear_forward
from mini_bert.core.ops.relu import relu_backward, relu_forward

EPS = 1e-5


def residual_forward(x: Array, W1: Array, b1: Array, W2: Array, b2: Array, gamma: Array,
                     beta: Array) -> tuple[Array, Any]:
    """x (N, H), W1 (H, I), b1 (I,), W2 (I, H), b2, gamma and beta (H,) -> y (N, H)."""
    hidden, expand = linear_forward(x, W1, b1)                            # (N, I)
    hidden, relu = relu_forward(hidden)
    f, contract = linear_forward(hidden, W2, b2)                          # (N, H)
    y, ln = layernorm_forward(x + f, gamma, beta, EPS)
    return y, (expand, relu, contract, ln)


def residual_backward(dy: Array, cache: Any) -> dict[str, Array | None]:
    """dy (N, H) -> the gradients by name: dx, dW1, db1, dW2, db2, dgamma, dbeta."""
    expand, relu, contract, ln = cache
    dsum, dgamma, dbeta = layernorm_backward(dy, ln)                      # y = LN(x + f)
    dhidden, dW2, db2 = linear_backward(dsum, contract)                   # f = h W2 + b2
    dhidden = relu_backward(dhidden, relu)
    dx, dW1, db1 = linear_backward(dhidden, expand)                       # through the network
    dx = dx + dsum                                                        # and the residual path
    return {"dx": dx, "dW1": dW1, "db1": db1, "dW2": dW2, "db2": db2, "dgamma": dgamma, "dbeta": dbeta}
