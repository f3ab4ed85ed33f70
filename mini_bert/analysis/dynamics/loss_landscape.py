"""The loss around a point in parameter space, along one direction or over a plane of two.

    f(a) = loss(w + a d)        f(a, b) = loss(w + a d + b e)

Distances along a random direction are not comparable: with LayerNorm, doubling the weights does not change a network's
output. Filter normalisation (Li et al. 2018) scales every neuron's part of d to the norm of that neuron's weights,
|d_j| = |w_j|, so that a = 1 is the distance of the weights from zero. Here a neuron is a column of a matrix used as
x @ W, or a row of an embedding. As in that paper, vectors such as biases and LayerNorms do not move unless named.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.arrays import Array
from ...core.model import MiniBERT
from ...core.params import Parameters
from ...errors import InputError
from ...evaluation.probabilities import Floats
from ...evaluation.result import Result
from ...randomness import generator
from ..batches import DataBatch, as_batch, batch_loss


@dataclass(frozen=True)
class LossLandscape(Result):
    """`losses` (n,) over `alphas`, or (n, m) over `alphas` and `betas`; `loss` is the model's own."""

    parameters: tuple[str, ...]
    alphas: Floats
    betas: Floats | None
    losses: Floats                        # infinity where the loss is not finite
    loss: float
    curvature: float                      # second derivative at 0 along the first direction
    seed: int


def analyze_loss_landscape(model: MiniBERT, data_batch: DataBatch, param_name: str | Sequence[str] | None = None, *,
                           alphas: npt.ArrayLike | None = None, betas: npt.ArrayLike | None = None, seed: int = 0,
                           directions: Sequence[Parameters] | None = None, normalise: bool = True) -> LossLandscape:
    """The loss of a batch around the parameters, which are restored bit for bit.

    `param_name` names the parameters that move; by default every matrix. With `betas` the result is a plane. Directions
    are drawn with the seed unless they are given, each a Parameters of this model's layout.
    """
    batch, params = as_batch(data_batch), model.params
    names = _moved_names(params, param_name)
    first = np.linspace(-1, 1, 21) if alphas is None else _steps(alphas, "alphas")
    second = None if betas is None else _steps(betas, "betas")
    wanted = 1 if second is None else 2
    given = list(directions) if directions is not None else [
        _random_direction(params, names, seed, number) for number in range(wanted)]
    if len(given) != wanted or any(d.flat.shape != params.flat.shape for d in given):
        raise InputError(f"The landscape needs {wanted} direction(s) of this model's layout; {len(given)} are given.")
    moves = [_flat_move(direction, names, params, normalise) for direction in given]
    kept = params.flat.copy()

    def at(*steps: float) -> float:
        moved = kept.astype(np.float64)
        for step, move in zip(steps, moves, strict=True):
            moved += step * move
        params.flat[...] = moved
        return batch_loss(model, batch)

    try:
        here = batch_loss(model, batch)
        losses = np.array([at(a) for a in first] if second is None else [[at(a, b) for b in second] for a in first])
        rest = (0.0,) * (wanted - 1)
        h = 0.05                                  # small relative to the weights, large relative to float32 rounding
        curvature = (at(h, *rest) - 2 * here + at(-h, *rest)) / h**2
    finally:
        params.flat[...] = kept
    return LossLandscape(names, first, second, losses, here, float(curvature), seed)


def filter_normalised(direction: Array, weight: Array, name: str = "") -> Array:
    """`direction` with each neuron's part scaled to the norm of its weights; a vector is one part."""
    axis = None if weight.ndim == 1 else (1 if name.endswith("embeddings") else 0)
    length = np.sqrt((direction**2).sum(axis=axis, keepdims=True))
    wanted = np.sqrt((weight.astype(np.float64) ** 2).sum(axis=axis, keepdims=True))
    scaled: Array = direction * np.divide(wanted, length, out=np.zeros_like(wanted), where=length > 0)
    return scaled


def _moved_names(params: Parameters, param_name: str | Sequence[str] | None) -> tuple[str, ...]:
    if param_name is None:
        return tuple(name for name, value in params.items() if value.ndim > 1)
    names = (param_name,) if isinstance(param_name, str) else tuple(param_name)
    if not names:
        raise InputError("param_name is empty; name at least one parameter, or None for all matrices.")
    return tuple(params.ties[name].target if name in params.ties else _known(params, name) for name in names)


def _known(params: Parameters, name: str) -> str:
    params[name]              # raises an error for an unknown name
    return name


def _steps(values: npt.ArrayLike, name: str) -> Floats:
    steps = np.asarray(values, np.float64)
    if steps.ndim != 1 or not len(steps) or not np.isfinite(steps).all():
        raise InputError(f"{name} must be a list of finite numbers, not of shape {steps.shape}.")
    return steps


def _random_direction(params: Parameters, names: Sequence[str], seed: int, number: int) -> Parameters:
    direction = Parameters(params.layout, np.float64)
    for name in names:
        direction[name][...] = generator(seed, "landscape", number, name).standard_normal(params[name].shape)
    return direction


def _flat_move(direction: Parameters, names: Sequence[str], params: Parameters, normalise: bool) -> Floats:
    """The move as a flat array, zero for parameters that do not move."""
    move = np.zeros(params.flat.shape)
    for name in names:
        part = direction[name].astype(np.float64)
        move[params.slices[name]] = (filter_normalised(part, params[name], name) if normalise else part).reshape(-1)
    return move
