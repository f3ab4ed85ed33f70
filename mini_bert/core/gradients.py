"""From a loss to the gradient of every parameter.

The loss of a batch is (sum, count) over its masked positions. Gradients are those of the sum: batches
add up, and one division by the total count at the end gives the gradient of the mean, whatever the
counts of the parts were.
"""

from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, NumericalError
from .arrays import Array, BoolArray, IntArray
from .cache import Cache
from .context import DropoutKey
from .inputs import as_array, check_ids, check_mask
from .model import MiniBERT
from .ops.cross_entropy import cross_entropy_backward, cross_entropy_forward, found_first
from .params import Gradients, Parameters


def mlm_cross_entropy(logits: Array, target_ids: IntArray, mask_positions: BoolArray) -> tuple[float, int]:
    """The summed cross-entropy at the masked positions, and their number.

    logits (B, T, V), target_ids (B, T) with the true ids at masked positions, mask_positions (B, T).
    """
    flat, targets, selected = _rows(logits, target_ids, mask_positions)
    loss, _ = cross_entropy_forward(flat, targets, selected)
    return loss, int(selected.sum())


class MiniBERTGradients:
    """A model's gradients: `gradients["W_Q_0"]` is a view of one flat buffer, like the parameter.

    They are added to `gradients` if that is given, and start from zero otherwise.
    """

    def __init__(self, model: MiniBERT, gradients: Parameters | None = None):
        self.model = model
        self.gradients: Parameters = model.params.zeros_like() if gradients is None else gradients

    def zero_gradients(self) -> None:
        self.gradients.flat.fill(0)

    def backward_from_logits(self, dlogits: Array, cache: Cache) -> None:
        """Add the gradients that follow from d loss / d logits."""
        with np.errstate(over="ignore", invalid="ignore"):
            self.model.backward(dlogits, cache, self.gradients)
        require_finite(self.gradients)

    def backward_from_hidden(self, dhidden: Array, cache: Cache) -> None:
        """Add the gradients that follow from d loss / d hidden, for losses on `encode`'s output."""
        with np.errstate(over="ignore", invalid="ignore"):
            self.model.encode_backward(dhidden, cache, self.gradients)
        require_finite(self.gradients)

    def compute_mlm_loss_and_gradients(self, logits: Array, target_ids: IntArray,
                                       mask_positions: BoolArray) -> tuple[float, Array]:
        """The mean loss over the masked positions of logits (B, T, V), and its gradient dlogits."""
        flat, targets, selected = _rows(logits, target_ids, mask_positions)
        count = int(selected.sum())
        if count == 0:
            raise InputError("mask_positions selects nothing, so there is no loss.")
        loss, cache = cross_entropy_forward(flat, targets, selected)
        return loss / count, cross_entropy_backward(1 / count, cache).reshape(np.shape(logits))

    def accumulate_mlm(self, input_ids: IntArray, target_ids: IntArray, mask_positions: BoolArray,
                       attention_mask: npt.ArrayLike | None = None, *, token_types: IntArray | None = None,
                       dropout_key: DropoutKey | None = None) -> tuple[float, int]:
        """Forward, loss and backward of one batch, computing only what the loss reads.

        Adds the gradient of the summed loss and returns (sum, count); divide the gradients by the total
        count after the last batch.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            loss = add_mlm_gradients(self.model, self.gradients, input_ids, target_ids, mask_positions, attention_mask,
                                     token_types=token_types, dropout_key=dropout_key)
        require_finite(self.gradients, loss[0])
        return loss


def require_finite(gradients: Parameters, loss: float = 0.0) -> None:
    """Refuse a loss or gradients that are not finite. Training needs no such pass: it reads the gradient's norm."""
    if not isfinite(loss):
        raise NumericalError("The loss is not finite: the weights are too large for this precision.")
    if not np.isfinite(gradients.flat).all():
        broken = next(name for name in gradients if not np.isfinite(gradients[name]).all())
        raise NumericalError(f"The gradient of {broken} is not finite: the weights are too large for this precision, "
                             "or a backward is wrong.")


def add_mlm_gradients(model: MiniBERT, grads: Gradients, input_ids: IntArray, target_ids: IntArray,
                      mask_positions: BoolArray, attention_mask: npt.ArrayLike | None = None, *,
                      token_types: IntArray | None = None, order: IntArray | None = None,
                      dropout_key: DropoutKey | None = None, last: bool = False, factor: float = 1.0,
                      **keeping: Any) -> tuple[float, int]:
    """Forward, loss and backward of one batch: `MiniBERTGradients.accumulate_mlm`, into the gradients that are given.

    Adds `factor` times the gradients of the summed loss. With `last`, no other backward may add to `grads` after
    this one. `keeping`, such as `recompute`, goes to `encode`.
    """
    loss, found = mlm_gradients(model, grads, input_ids, target_ids, mask_positions, attention_mask,
                                token_types=token_types, order=order, dropout_key=dropout_key, last=last, factor=factor,
                                **keeping)
    return loss, len(found)


def mlm_gradients(model: MiniBERT, grads: Gradients, input_ids: IntArray, target_ids: IntArray,
                  mask_positions: BoolArray, attention_mask: npt.ArrayLike | None = None, *, last: bool = False,
                  factor: float = 1.0, **options: Any) -> tuple[float, BoolArray]:
    """The same, with the options of `model.forward`. Beside the summed loss it returns for each masked position whether
    the model found the token."""
    selected = check_mask(mask_positions, as_array(input_ids, "input_ids").shape, "mask_positions", "input_ids")
    targets = _check_targets(target_ids, selected, model.config.vocab_size)
    logits, cache = model.forward(input_ids, attention_mask, positions=selected, **options)
    loss, loss_cache = cross_entropy_forward(logits, targets[selected], overwrite=True)
    found = found_first(loss_cache)
    del logits                                    # from here on nobody else may hold what the backward forgets
    dlogits = [cross_entropy_backward(factor, loss_cache, overwrite=True)]
    del loss_cache
    model.backward(dlogits.pop(), cache, grads, forget=True, last=last)
    return loss, found


def _rows(logits: Array, target_ids: IntArray, mask_positions: BoolArray) -> tuple[Array, IntArray, BoolArray]:
    """logits (N, V), targets (N,) and selected (N,), checked against each other."""
    scores = as_array(logits, "logits")
    if scores.ndim != 3 or scores.dtype.kind != "f":
        raise InputError("logits must be floating-point numbers of shape (batch, tokens, vocabulary), "
                         f"not {scores.dtype} {scores.shape}.")
    V = scores.shape[2]
    selected = check_mask(mask_positions, scores.shape[:2], "mask_positions", "logits")
    targets = _check_targets(target_ids, selected, V)
    return scores.reshape(-1, V), targets.reshape(-1), selected.reshape(-1)


def _check_targets(target_ids: IntArray, selected: BoolArray, V: int) -> IntArray:
    """The true ids at selected positions; other entries, such as -100, are never read."""
    targets = as_array(target_ids, "target_ids")
    if targets.shape != selected.shape:
        raise InputError(f"target_ids has the shape {targets.shape}, but mask_positions {selected.shape}.")
    if targets.dtype.kind not in "iu":
        raise InputError(f"target_ids must be whole numbers, not {targets.dtype}.")
    return check_ids(np.where(selected, targets, 0), V, "target_ids", "the vocabulary")
