"""How one step's loss depends on the learning rate, and whether a model's outputs have collapsed.

Learning-rate sensitivity takes one step from the current parameters at each of several rates, measures the loss of the
same batch, and restores the parameters bit for bit. A small step changes the loss by rate x slope; a step that is too
large overshoots, and the loss rises.

    collapse of predictions    entropy of the mean prediction, share of the most frequent prediction
    collapse of vectors        mean cosine of pairs of tokens (anisotropy), participation ratio
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.arrays import Array, BoolArray
from ...core.model import MiniBERT
from ...errors import InputError
from ...evaluation.probabilities import entropy, probabilities
from ...evaluation.representations.geometry import compute_anisotropy, compute_effective_dimensionality
from ...evaluation.result import Result
from ...objectives.masked import MaskedLM
from ...training import optimisers  # noqa: F401  (they fill the registry)
from ...training.clipping.norm import ClipByNorm
from ...training.optimisers.making import optimiser_from
from ...training.optimisers.optimiser import Optimiser
from ...training.update import Update
from ...workers import Workers
from ..batches import DataBatch, as_batch, batch_loss

COLLAPSED = 0.9       # mean cosine of different tokens; all trained models that were measured stay below 0.6


@dataclass(frozen=True)
class LearningRateSensitivity(Result):
    """The loss after one step at each rate, and its change; infinity where the loss is not finite."""

    rates: list[float]
    losses: list[float]
    changes: list[float]
    loss: float                           # before the step
    best_rate: float                      # of the lowest loss
    overshoots: float | None              # the lowest rate above which the loss always rises


def analyze_learning_rate_sensitivity(model: MiniBERT, data_batch: DataBatch,
                                      lr_range: Sequence[float] | npt.ArrayLike | None = None, *,
                                      optimiser: str = "adamw", max_grad_norm: float = 1.0) -> LearningRateSensitivity:
    """The loss after one step on a batch at each rate, by the first step of an optimiser, without weight decay.

    The parameters are restored. AdamW's first step changes every number by the rate, whatever the gradient's size;
    "sgd" is plain gradient descent.
    """
    batch = as_batch(data_batch)
    rates = np.geomspace(1e-6, 1.0, 13) if lr_range is None else np.asarray(lr_range, np.float64)
    if rates.ndim != 1 or not len(rates) or not (np.isfinite(rates).all() and (rates > 0).all()):
        raise InputError("lr_range must be a list of learning rates above 0.")
    rates = np.sort(rates)

    def fresh() -> Optimiser:
        return optimiser_from(optimiser, model.params, {"weight_decay": 0.0})

    update = Update(MaskedLM(model), fresh(), Workers(1), clipping=ClipByNorm(model.params, max_grad_norm))
    kept = model.params.flat.copy()
    try:
        found = update.batch_gradients.compute(batch)             # once: all steps are from the same parameters
        loss, losses = found["masked"].mean, []
        for rate in rates.tolist():
            update.optimiser = fresh()
            with np.errstate(over="ignore", invalid="ignore"):
                update.apply(found, rate)
            losses.append(batch_loss(model, batch))
            model.params.flat[...] = kept
    finally:
        model.params.flat[...] = kept
    changes = [after - loss for after in losses]
    rising = [rate for rate, change in zip(rates.tolist(), changes, strict=True) if change > 0]
    falling = [rate for rate, change in zip(rates.tolist(), changes, strict=True) if change <= 0]
    beyond = [rate for rate in rising if not falling or rate > falling[-1]]
    return LearningRateSensitivity(rates.tolist(), losses, changes, loss, float(rates[int(np.argmin(losses))]),
                           beyond[0] if beyond else None)


def compute_layer_wise_learning_rates(gradients: Mapping[str, Array],
                                      learning_rates: float | Mapping[str, float]) -> dict[str, float]:
    """A learning rate for each parameter, so that plain gradient descent changes all of them equally on average.

    rate_i = rate rms(all) / rms_i, where rms is the root mean square of a gradient. A parameter whose gradient
    is zero keeps its rate. `learning_rates` is one rate for all, or one per name.
    """
    if not gradients:
        raise InputError("gradients is empty; give at least one named gradient.")
    squares = {name: float((np.asarray(g, np.float64) ** 2).mean()) for name, g in gradients.items()}
    sizes = {name: np.asarray(g).size for name, g in gradients.items()}
    overall = sum(squares[name] * sizes[name] for name in squares) / sum(sizes.values())
    rates = {}
    for name, square in squares.items():
        try:
            rate = learning_rates[name] if isinstance(learning_rates, Mapping) else learning_rates
        except KeyError:
            raise InputError(f"learning_rates has no rate for {name}; add one.") from None
        rates[name] = float(rate) * ((overall / square) ** 0.5 if square > 0 else 1.0)
    return rates


# -------------------------------------------------------------------- collapse


@dataclass(frozen=True)
class Collapse(Result):
    """Hidden states over time: `mean_cosine` and `dimensionality` have one entry per checkpoint."""

    mean_cosine: list[float]
    dimensionality: list[float]           # participation ratio
    collapsed: bool                       # at the last checkpoint
    since: int | None                     # the first checkpoint of the final collapse


def detect_mode_collapse(hidden_states_history: Sequence[Array], mask: BoolArray | None = None, *,
                         threshold: float = COLLAPSED) -> Collapse:
    """Do all tokens get the same vector? Takes hidden states (N, H) or (B, T, H) of the same tokens over time."""
    if not len(hidden_states_history):
        raise InputError("hidden_states_history is empty; give the hidden states of at least one checkpoint.")
    cosines = [compute_anisotropy(states, mask).mean_cosine for states in hidden_states_history]
    dimensions = [compute_effective_dimensionality(states, mask) for states in hidden_states_history]
    collapsed = [cosine > threshold for cosine in cosines]
    since = None
    if collapsed[-1]:
        since = len(collapsed) - next((n for n, bad in enumerate(reversed(collapsed)) if not bad), len(collapsed))
    return Collapse(cosines, dimensions, collapsed[-1], since)


@dataclass(frozen=True)
class PredictionSpread(Result):
    """How much a model's predictions vary over positions.

    `position_entropy` is the mean entropy of a prediction, `overall_entropy` the entropy of the mean prediction. If
    both are equal, the context makes no difference: the model predicts by frequency.
    """

    also = ("information",)

    positions: int
    top_share: float                      # of the most frequent top prediction
    top_token: int
    distinct: int                         # number of different top predictions
    position_entropy: float               # nats
    overall_entropy: float

    @property
    def information(self) -> float:
        """The mutual information of prediction and position in nats; 0 if all predictions are equal."""
        return self.overall_entropy - self.position_entropy


def prediction_spread(logits: Array) -> PredictionSpread:
    """The spread of predictions, from logits (N, V), one row per position."""
    rows = np.asarray(logits, np.float64)
    if rows.ndim != 2 or not len(rows) or not np.isfinite(rows).all():
        raise InputError(f"logits must be finite numbers of shape (positions, vocabulary), not {rows.shape}.")
    p = probabilities(rows)
    guesses = np.bincount(rows.argmax(axis=1), minlength=rows.shape[1])
    return PredictionSpread(len(rows), float(guesses.max() / len(rows)), int(guesses.argmax()),
                            int((guesses > 0).sum()), float(entropy(p).mean()), float(entropy(p.mean(axis=0))))
