"""How weights and representations change from checkpoint to checkpoint.

    effective rank   exp(-sum p ln p),  p = s / sum s          s: singular values       (Roy & Vetterli 2007)
    stable rank      |W|_F^2 / |W|_2^2 = sum s^2 / s_1^2       at most the rank; small singular values hardly count
    change           |W_t - W_0| / |W_0|                      since the first checkpoint; 1 if W_0 is zero and W_t not
    CKA              similarity of two checkpoints' hidden states on the same tokens    (Kornblith et al. 2019)
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path

import numpy as np

from ...core.arrays import Array
from ...core.model import MiniBERT
from ...errors import CheckpointError, InputError, MiniBertError
from ...evaluation.probabilities import Floats
from ...evaluation.representations.geometry import compute_effective_rank, compute_layer_similarity, layer_states
from ...evaluation.result import Result
from ...training.runs.snapshots import kept_models
from ..batches import DataBatch, as_batch

Checkpoint = MiniBERT | str | PathLike[str]


@dataclass(frozen=True)
class Spectrum(Result):
    """The singular values of a matrix in descending order, and its effective and stable rank."""

    also = ("spectral_norm",)

    singular_values: Floats
    effective_rank: float
    stable_rank: float

    @property
    def spectral_norm(self) -> float:
        return float(self.singular_values[0])


def weight_spectrum(weight_matrix: Array) -> Spectrum:
    """The spectrum of one matrix."""
    rank = compute_effective_rank(weight_matrix)                  # raises an error unless the matrix is finite
    values = np.linalg.svd(np.asarray(weight_matrix, np.float64), compute_uv=False)
    return Spectrum(values, rank, compute_stable_rank(weight_matrix, values))


def compute_stable_rank(weight_matrix: Array, singular_values: Floats | None = None) -> float:
    """sum s^2 / s_1^2: n for n equal singular values, 0 for a matrix of zeros."""
    matrix = np.asarray(weight_matrix, np.float64)
    if matrix.ndim != 2 or not matrix.size:
        raise InputError(f"weight_matrix must have the shape (in, out), not {matrix.shape}.")
    top = np.linalg.norm(matrix, 2) if singular_values is None else singular_values[0]
    return float((matrix**2).sum() / top**2) if top > 0 else 0.0


@dataclass(frozen=True)
class WeightChange:
    """One parameter over the checkpoints; every list has one entry per checkpoint."""

    name: str
    norm: list[float]
    from_first: list[float]               # |W_t - W_0| / |W_0|
    from_previous: list[float]            # |W_t - W_t-1| / |W_t-1|; 0 for the first
    cosine_to_first: list[float]
    effective_rank: list[float] | None    # of matrices, with ranks=True
    stable_rank: list[float] | None


@dataclass(frozen=True)
class WeightEvolution(Result):
    """All parameters over the checkpoints. `fastest` sorts them by their change since the first checkpoint."""

    also = ("fastest",)

    steps: list[int]
    changes: dict[str, WeightChange]
    left_out: list[str]                   # checkpoints that could not be read, and why

    @property
    def fastest(self) -> list[str]:
        return sorted(self.changes, key=lambda name: -self.changes[name].from_first[-1])


def track_weight_changes(model_checkpoints: Sequence[Checkpoint] | str | PathLike[str], *,
                         names: Iterable[str] | None = None, ranks: bool = True) -> WeightEvolution:
    """How each parameter changes over checkpoints: models, directories, or a run's directory for all its checkpoints.

    Ranks need a singular value decomposition of every matrix, which takes most of the time.
    """
    left_out: list[str] = []
    history, steps = [], []
    for step, model in checkpoint_models(model_checkpoints, left_out):
        chosen = model.params if names is None else {name: model.params[name] for name in names}
        history.append({name: value.copy() for name, value in chosen.items()})
        steps.append(step)
    if not history:
        raise CheckpointError("There is no checkpoint to track." + "".join(f" {reason}" for reason in left_out[:3]))
    return analyze_weight_evolution(history, steps, ranks=ranks, left_out=left_out)


def analyze_weight_evolution(params_history: Sequence[Mapping[str, Array]], steps: Sequence[int] | None = None, *,
                             ranks: bool = True, left_out: Sequence[str] = ()) -> WeightEvolution:
    """As `track_weight_changes`, from parameters by name: one mapping per checkpoint."""
    if not params_history:
        raise InputError("params_history is empty; give the parameters of at least one checkpoint.")
    moments = list(range(len(params_history))) if steps is None else list(steps)
    if len(moments) != len(params_history):
        raise InputError(f"steps has {len(moments)} entries for {len(params_history)} sets of parameters.")
    changes = {}
    for name, first in params_history[0].items():
        if any(name not in later or later[name].shape != first.shape for later in params_history):
            raise InputError(f"The checkpoints are of different models: {name} is missing or has another shape in one.")
        values = [np.asarray(moment[name], np.float64) for moment in params_history]
        spectra = [weight_spectrum(value) for value in values] if ranks and first.ndim == 2 else None
        changes[name] = WeightChange(
            name, [float(np.linalg.norm(value)) for value in values],
            [_relative(value - values[0], values[0]) for value in values],
            [0.0, *(_relative(b - a, a) for a, b in pairwise(values))],
            [_cosine(value, values[0]) for value in values],
            None if spectra is None else [s.effective_rank for s in spectra],
            None if spectra is None else [s.stable_rank for s in spectra])
    return WeightEvolution(moments, changes, list(left_out))


@dataclass(frozen=True)
class RepresentationEvolution(Result):
    """CKA between checkpoints, layer by layer: similarity[layer][i, j] of checkpoints i and j."""

    steps: list[int]
    similarity: dict[str, Floats]


def representation_evolution(model_checkpoints: Sequence[Checkpoint] | str | PathLike[str],
                             data_batch: DataBatch) -> RepresentationEvolution:
    """The similarity of the hidden states of the same, unmasked tokens between checkpoints."""
    batch = as_batch(data_batch)
    states: dict[str, list[Array]] = {}
    steps = []
    for step, model in checkpoint_models(model_checkpoints):
        steps.append(step)
        _, cache = model.encode(batch.target_ids, batch.attention_mask, token_types=batch.token_types)
        for name, hidden in layer_states(cache).items():
            states.setdefault(name, []).append(hidden)
    if not states or len({len(found) for found in states.values()}) > 1:
        raise InputError("The checkpoints must be of one model, and at least one must be given.")
    return RepresentationEvolution(steps, {name: compute_layer_similarity(found, batch.attention_mask)
                                           for name, found in states.items()})


def checkpoint_models(given: Sequence[Checkpoint] | str | PathLike[str],
                      left_out: list[str] | None = None) -> Iterator[tuple[int, MiniBERT]]:
    """The step and the model of each checkpoint: a model or a directory, or all that a run's directory has.

    With `left_out`, a checkpoint that cannot be read is no error; the reason is added to the list.
    """
    for number, place in enumerate(run_checkpoints(given) if isinstance(given, str | PathLike) else given):
        if isinstance(place, MiniBERT):
            yield number, place
            continue
        digits = Path(place).name.removeprefix("step-")
        try:
            model = MiniBERT.load(place)
        except MiniBertError as error:
            if left_out is None:
                raise
            left_out.append(str(error))
        else:
            yield int(digits) if digits.isdecimal() else number, model


def run_checkpoints(run: str | PathLike[str]) -> list[Path]:
    """The checkpoints and snapshots of a run, oldest first; without numbered ones, `best` and `final`."""
    directory = Path(run)
    found = kept_models(directory) or [directory / name for name in ("best", "final") if (directory / name).is_dir()]
    if not found:
        raise CheckpointError(f"{directory} has no checkpoints.")
    return found


def _relative(change: Floats, before: Floats) -> float:
    size = float(np.linalg.norm(before))
    moved = float(np.linalg.norm(change))
    return moved / size if size > 0 else float(moved > 0)         # a bias that starts at zero


def _cosine(a: Floats, b: Floats) -> float:
    both = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.vdot(a, b)) / both if both > 0 else 0.0
