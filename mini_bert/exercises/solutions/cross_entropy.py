"""Cross-entropy, averaged over the selected rows: those that were masked, the only ones that are asked about.

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
    dlogits = p.copy()                                                    # log sum exp has the slope softmax
    dlogits[np.arange(len(targets)), targets] -= 1                        # and x_n,t_n the slope one at the target
    dlogits *= selected[:, None]                                          # the other rows were not asked about
    dlogits *= dloss / selected.sum()                                     # a mean over the selected
    return dlogits
