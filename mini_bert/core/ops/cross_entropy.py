"""Cross-entropy of the selected rows, summed.

    lse_n = max_v x_nv + log sum_v exp(x_nv - max_v x_nv)      loss = sum over selected n of (lse_n - x_n,t_n)
    dx_nv = dloss (exp(x_nv - lse_n) - [v = t_n]) at selected n, else 0
                                                                  derivation: docs/math/cross_entropy.md

A sum, not a mean: batches have different numbers of selected rows, and a mean of means is wrong.
"""

import numpy as np
import numpy.typing as npt

from ..arrays import Array, BoolArray, IntArray
from ..formulas import Formula
from ..gradcheck import Check

CrossEntropyCache = tuple[Array, Array, IntArray, BoolArray | None]


def cross_entropy_forward(logits: Array, targets: IntArray, selected: BoolArray | None = None, *,
                          overwrite: bool = False) -> tuple[float, CrossEntropyCache]:
    """logits (N, V), targets (N,), selected (N,), all rows if None -> the summed loss.

    With `overwrite` the logits' memory is used for the exponentials, and the logits are gone.
    """
    if selected is not None:
        logits, targets = logits[selected], targets[selected]
    top = logits.max(axis=1, keepdims=True)
    exps = np.subtract(logits, top, out=logits if overwrite else None)
    at_target = exps[np.arange(len(targets)), targets]
    np.exp(exps, out=exps)
    total = exps @ np.ones(exps.shape[1], exps.dtype)          # (N,)
    loss = np.log(total) - at_target                           # the two shifts by top cancel
    return float(loss.sum(dtype=np.float64)), (exps, total, targets, selected)


def cross_entropy_backward(dloss: float, cache: CrossEntropyCache, *, overwrite: bool = False) -> Array:
    """dloss, a number -> dlogits (N, V), zero at rows that were not selected; `overwrite` uses the cache's memory."""
    exps, total, targets, selected = cache
    # loss = log total - x_t: the first term's slope is softmax, the second's is one at the target
    dlogits: Array = np.multiply(exps, (dloss / total)[:, None], out=exps if overwrite else None)
    dlogits[np.arange(len(targets)), targets] -= dloss
    if selected is None:
        return dlogits
    everywhere = np.zeros((len(selected), exps.shape[1]), exps.dtype)
    everywhere[selected] = dlogits
    return everywhere


def found_first(cache: CrossEntropyCache) -> BoolArray:
    """From the cache of a forward, before a backward overwrites it: the selected rows (N,) whose target no class beats.

    exp(x_t - max_v x_v) is one there, so this reads one number a row.
    """
    exps, _, targets, _ = cache
    found: BoolArray = exps[np.arange(len(targets)), targets] == 1
    return found


def log_softmax(logits: Array) -> npt.NDArray[np.float64]:
    """ln softmax over the last axis, in float64: what a prediction says about every class."""
    logs: npt.NDArray[np.float64] = logits.astype(np.float64)
    logs -= logs.max(axis=-1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(axis=-1, keepdims=True))
    return logs


def target_losses(logits: Array, targets: IntArray) -> npt.NDArray[np.float64]:
    """The loss of each row, -ln p(target): logits (N, V), targets (N,) -> (N,), in float64 but for the exponentials."""
    top = logits.max(axis=1)
    at_target = logits[np.arange(len(targets)), targets].astype(np.float64)
    total = np.exp(logits - top[:, None]).sum(axis=1, dtype=np.float64)
    losses: npt.NDArray[np.float64] = np.log(total) + top - at_target
    return losses

FORMULA = Formula("cross entropy", "mean(log(sum(exp({0}))) - {0}[target])",
                  ("[asked] * (softmax({0}) - onehot(target)) / M",),
                  gradient_where=("M = number(asked)", "asked = has(target)"), page="cross_entropy",
                  back="The probabilities, less one at the right word: descent lowers what was guessed too high, and "
                       "raises the right word.",
                  why="The negative logarithm of the probability that the model gave to the right word: 0 if it was "
                      "certain, large if it was surprised.")
CHECKS = [
    Check("all rows", lambda rng: [rng.standard_normal((3, 5))], targets=np.array([0, 4, 4])),
    Check("selected rows", lambda rng: [rng.standard_normal((4, 3))], targets=np.array([2, 0, 1, 1]),
          selected=np.array([True, False, True, True])),
    Check("far from zero", lambda rng: [500 + 2 * rng.standard_normal((2, 4))], targets=np.array([1, 3])),
]
