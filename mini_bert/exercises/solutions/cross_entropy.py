"""Cross-entropy, averaged over the selected rows, which are the masked positions.

    loss = (1 / M) sum over selected n of ( log sum_v exp(x_nv) - x_n,t_n )          M rows are selected
"""

import numpy as np

from mini_bert.core.arrays import Array, BoolArray, IntArray

Cache = tuple[Array, IntArray, BoolArray]


def cross_entropy_forward(logits: Array, targets: IntArray, selected: BoolArray) -> tuple[float, Cache]:
    """logits (N, V), targets (N,), selected (N,) -> the loss, a number; the cache holds p = softmax(logits)."""
    exps = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = exps / exps.sum(axis=1, keepdims=True)                            # (N, V)
    of_target = p[np.arange(len(targets)), targets]                       # (N,)
    return float(-np.log(of_target[selected]).mean()), (p, targets, selected)


def cross_entropy_backward(dloss: float, cache: Cache) -> Array:
    """dloss, a number -> dlogits (N, V)."""
    p, targets, selected = cache
    dlogits = p.copy()                                                    # the gradient of log sum exp is softmax
    dlogits[np.arange(len(targets)), targets] -= 1                        # and that of x_n,t_n is 1 at the target
    dlogits *= selected[:, None]                                          # the other rows are not in the loss
    dlogits *= dloss / selected.sum()                                     # a mean over the selected rows
    return dlogits
