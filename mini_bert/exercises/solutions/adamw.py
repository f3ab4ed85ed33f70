"""One step of AdamW.

    m <- b1 m + (1 - b1) g          mhat = m / (1 - b1^t)          averages of the gradient g and its square,
    v <- b2 v + (1 - b2) g^2        vhat = v / (1 - b2^t)          corrected for their start at zero
    w <- w - lr wd w - lr mhat / (sqrt(vhat) + eps)

t counts steps from 1. Weight decay, the term with wd, acts only on matrices, not on biases and LayerNorms, which have
one axis. There is no backward here: you write the step.
"""

import numpy as np

from mini_bert.core.arrays import Array


def adamw_step(w: Array, g: Array, m: Array, v: Array, t: int, lr: float, beta1: float, beta2: float, eps: float,
               weight_decay: float) -> tuple[Array, Array, Array]:
    """Weights w, gradient g and moments m and v, all of one shape, and the step t -> the new w, m and v."""
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g**2
    mhat = m / (1 - beta1**t)
    vhat = v / (1 - beta2**t)
    decay = lr * weight_decay * w if w.ndim > 1 else 0.0
    return w - decay - lr * mhat / (np.sqrt(vhat) + eps), m, v
