"""One layer of BERT, post-LN, without biases in the attention and without dropout.

    x' = LN1(x + MHA(x))        y = LN2(x' + relu(x' W1 + b1) W2 + b2)

    MHA(x) = join_a(attention(Q_a, K_a, V_a)) W_O        Q = split(x W_Q)   K = split(x W_K)   V = split(x W_V)

All operations and their backwards are the library's; you put the backwards in order.
"""

from typing import Any

from mini_bert.core.arrays import Array, BoolArray
from mini_bert.core.ops.attention import attention_backward, attention_forward
from mini_bert.core.ops.layernorm import layernorm_backward, layernorm_forward
from mini_bert.core.ops.linear import linear_backward, linear_forward
from mini_bert.core.ops.relu import relu_backward, relu_forward

EPS = 1e-5


def split(x: Array, B: int, A: int) -> Array:
    """(B*T, H) -> (B, A, T, d_k): each head gets its d_k features of every token."""
    T, d_k = len(x) // B, x.shape[1] // A
    return x.reshape(B, T, A, d_k).transpose(0, 2, 1, 3)


def join(x: Array) -> Array:
    """(B, A, T, d_k) -> (B*T, H), the inverse of split."""
    B, A, T, d_k = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B * T, A * d_k)


def block_forward(x: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, W1: Array, b1: Array, W2: Array,
                  b2: Array, ln1_gamma: Array, ln1_beta: Array, ln2_gamma: Array, ln2_beta: Array,
                  key_mask: BoolArray, num_heads: int) -> tuple[Array, Any]:
    """x (B*T, H), the matrices as (in, out), key_mask (B, T), True at real tokens -> y (B*T, H)."""
    B = len(key_mask)
    q, query = linear_forward(x, W_Q)                                     # (B*T, H)
    k, key = linear_forward(x, W_K)
    v, value = linear_forward(x, W_V)
    context, attend = attention_forward(split(q, B, num_heads), split(k, B, num_heads), split(v, B, num_heads),
                                        key_mask)
    attended, output = linear_forward(join(context), W_O)                 # (B*T, H)
    middle, ln1 = layernorm_forward(x + attended, ln1_gamma, ln1_beta, EPS)
    hidden, expand = linear_forward(middle, W1, b1)                       # (B*T, I)
    hidden, relu = relu_forward(hidden)
    fed, contract = linear_forward(hidden, W2, b2)                        # (B*T, H)
    y, ln2 = layernorm_forward(middle + fed, ln2_gamma, ln2_beta, EPS)
    return y, (B, num_heads, query, key, value, attend, output, ln1, expand, relu, contract, ln2)


def block_backward(dy: Array, cache: Any) -> dict[str, Array | None]:
    """dy (B*T, H) -> the gradients by name: dx, dW_Q, ..., for each array argument of the forward."""
    B, A, query, key, value, attend, output, ln1, expand, relu, contract, ln2 = cache
    dsum2, dln2_gamma, dln2_beta = layernorm_backward(dy, ln2)            # y = LN2(middle + fed)
    dhidden, dW2, db2 = linear_backward(dsum2, contract)
    dhidden = relu_backward(dhidden, relu)
    dmiddle, dW1, db1 = linear_backward(dhidden, expand)                  # through the feed-forward network
    dmiddle = dmiddle + dsum2                                             # and the residual path
    dsum1, dln1_gamma, dln1_beta = layernorm_backward(dmiddle, ln1)       # middle = LN1(x + attended)
    djoined, dW_O, _ = linear_backward(dsum1, output)
    dQ, dK, dV = attention_backward(split(djoined, B, A), attend)         # split is the backward of join
    dx_q, dW_Q, _ = linear_backward(join(dQ), query)                      # and join the backward of split
    dx_k, dW_K, _ = linear_backward(join(dK), key)
    dx_v, dW_V, _ = linear_backward(join(dV), value)
    dx = dsum1 + dx_q + dx_k + dx_v                                       # x is used four times
    return {"dx": dx, "dW_Q": dW_Q, "dW_K": dW_K, "dW_V": dW_V, "dW_O": dW_O, "dW1": dW1, "db1": db1, "dW2": dW2,
            "db2": db2, "dln1_gamma": dln1_gamma, "dln1_beta": dln1_beta, "dln2_gamma": dln2_gamma,
            "dln2_beta": dln2_beta}
