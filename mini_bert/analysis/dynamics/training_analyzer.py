"""TrainingAnalyzer: the dynamics of a run, finished or not, from its log and checkpoints.

    analyzer = TrainingAnalyzer("runs/first")
    analyzer.analyze_parameter_updates().fastest      what learns fastest
    analyzer.detect_training_issues()                 what the doctor finds

It changes nothing. `refresh()` reads the log again while the run continues.
"""

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.cache import of_every_layer
from ...core.model import MiniBERT
from ...errors import CheckpointError, InputError
from ...evaluation.probabilities import Floats
from ...evaluation.representations.geometry import attention_entropy_sums
from ...evaluation.representations.intrinsic import joined_batches
from ...evaluation.result import Result
from ..batches import DataBatch, as_batch, batch_gradient
from ..doctor.checkpoint_stats import sample_batches
from ..doctor.doctor import Diagnosis, examine
from ..doctor.run_record import LossCurve, RunRecord, Unavailable
from ..doctor.symptoms import Finding
from .gradient_flow import combined_norm, parameter_components
from .gradient_noise import GradientNoise, gradient_noise_scale
from .weight_evolution import WeightEvolution, checkpoint_models, track_weight_changes

if TYPE_CHECKING:
    from ...plots import Picture


@dataclass(frozen=True)
class ParameterUpdates(Result):
    """How fast the parameters change: |update| / |weights|.

    `by_part` has the update ratio of each parameter group (embeddings, layer_0, ..., head), from the log.
    `by_component`, `by_layer` and `by_parameter` have the change from the first checkpoint to the last. `fastest` lists
    the groups, the fastest first.
    """

    steps: list[int]
    by_part: dict[str, list[float]]
    by_component: dict[str, float]        # attention, feedforward, ..., over all layers
    by_layer: dict[str, dict[str, float]]             # layer_0: attention, feedforward, ...
    by_parameter: dict[str, float]
    fastest: list[str]
    checkpoints: list[int]                # their steps; empty if there are none


@dataclass(frozen=True)
class ComponentGradients(Result):
    """Each component's share of the gradient's squared norm, at each checkpoint; the shares sum to 1."""

    steps: list[int]
    losses: list[float]
    shares: dict[str, list[float]]


@dataclass(frozen=True)
class AttentionEntropy(Result):
    """For each layer, the mean entropy of each head (checkpoints, heads); 1 is uniform attention."""

    steps: list[int]
    by_layer: dict[str, Floats]


class TrainingAnalyzer:
    """The dynamics of the run in a directory; `corpus` is its prepared corpus, if that has been moved."""

    def __init__(self, run: str | PathLike[str], corpus: str | PathLike[str] | None = None):
        self._run, self._corpus = run, corpus
        self.record = RunRecord.read(run, corpus)

    def refresh(self) -> None:
        """Read the run again."""
        self.record = RunRecord.read(self._run, self._corpus)
        self.__dict__.pop("evolution", None)

    # ---------------------------------------------------------------- the log

    def loss_curve(self) -> LossCurve:
        """The training losses over steps and tokens."""
        return self.record.training_curve

    def heldout_curve(self) -> LossCurve:
        return self.record.heldout_curve

    def update_ratios(self) -> tuple[list[int], dict[str, list[float]]]:
        """Steps, and the update ratio of each parameter group."""
        steps, groups = self.record.column("step"), self.record.by_name("update_ratio")
        if not groups:
            return [], {}
        known = np.isfinite(steps) & np.all([np.isfinite(values) for values in groups.values()], axis=0)
        return steps[known].astype(int).tolist(), {group: values[known].tolist() for group, values in groups.items()}

    # ---------------------------------------------------------------- checkpoints

    @cached_property
    def evolution(self) -> WeightEvolution:
        """The changes of every parameter over the run's checkpoints."""
        return track_weight_changes(self.record.directory, ranks=False)

    def analyze_parameter_updates(self) -> ParameterUpdates:
        """Which parameters change fastest, by group, component, layer and name."""
        steps, ratios = self.update_ratios()
        by_component: dict[str, float] = {}
        by_layer: dict[str, dict[str, float]] = {}
        by_parameter: dict[str, float] = {}
        moments: list[int] = []
        try:
            changes = self.evolution.changes
            model = self.record.model()
            moments = self.evolution.steps
        except (CheckpointError, Unavailable):               # the run has no checkpoint yet
            changes, model = {}, None
        if model is not None and len(moments) > 1:
            by_parameter = {name: change.from_first[-1] for name, change in changes.items()}
            groups: dict[tuple[str, ...], list[str]] = {}
            for name, (component, layer) in parameter_components(model).items():
                if name in changes:
                    groups.setdefault((component,), []).append(name)
                    if layer is not None:
                        groups.setdefault((f"layer_{layer}", component), []).append(name)
            for key, names in groups.items():
                moved = combined_norm(changes[n].from_first[-1] * (changes[n].norm[0] or changes[n].norm[-1])
                                      for n in names)
                size = combined_norm(changes[n].norm[0] for n in names) or combined_norm(
                    changes[n].norm[-1] for n in names)
                ratio = moved / size if size else 0.0
                if len(key) == 1:
                    by_component[key[0]] = ratio
                else:
                    by_layer.setdefault(key[0], {})[key[1]] = ratio
        fastest = sorted(ratios, key=lambda group: -float(np.median(ratios[group]))) if steps else []
        return ParameterUpdates(steps, ratios, by_component, by_layer, by_parameter, fastest, moments)

    def loss_components(self, data_batch: DataBatch | None = None) -> ComponentGradients:
        """The shares of attention, feed-forward, embeddings and head in |gradient|^2 at each checkpoint.

        The default batch is a sample of the held-out text.
        """
        batch = self._batch(data_batch)
        steps: list[int] = []
        losses: list[float] = []
        shares: dict[str, list[float]] = {}
        for step, model in self._models():
            loss, gradients = batch_gradient(model, batch)
            squares: dict[str, float] = {}
            for name, (component, _) in parameter_components(model).items():
                if name in gradients.specs:
                    squares[component] = squares.get(component, 0.0) + float((gradients[name] ** 2).sum())
            total = sum(squares.values()) or 1.0
            steps.append(step)
            losses.append(loss)
            for component, square in squares.items():
                shares.setdefault(component, []).append(square / total)
        return ComponentGradients(steps, losses, shares)

    def plot_loss_components(self, data_batch: DataBatch | None = None) -> "Picture":
        """`loss_components` as a figure; needs matplotlib."""
        try:
            from ...plots import plot_loss_components
        except ModuleNotFoundError as error:
            raise InputError(str(error)) from None
        found = self.loss_components(data_batch)
        return plot_loss_components(found.steps, found.shares)

    def attention_entropy(self, data_batch: DataBatch | None = None) -> AttentionEntropy:
        """The normalised entropy of each head at each checkpoint: 1 for uniform attention, 0 for a single token."""
        batch = self._batch(data_batch)
        steps, rows = [], []
        for step, model in self._models():
            _, cache = model.encode(batch.target_ids, batch.attention_mask, token_types=batch.token_types)
            found = []
            for weights in of_every_layer(cache, "attention_weights", len(cache.layers)):
                total, count = attention_entropy_sums(weights, batch.attention_mask, None, True)
                found.append(total / max(count, 1))
            steps.append(step)
            rows.append(found)
        return AttentionEntropy(steps, {f"layer_{i}": np.array([row[i] for row in rows])
                                        for i in range(min(map(len, rows)))})

    def gradient_noise_scale(self, data_batch: DataBatch | None = None, *, micro_batch_size: int = 4) -> GradientNoise:
        """The simple noise scale, in sequences, at the newest checkpoint."""
        try:
            model = self.record.model()
        except Unavailable as reason:
            raise CheckpointError(f"{self.record.directory}: {reason}") from None
        return gradient_noise_scale(model, self._batch(data_batch), micro_batch_size=micro_batch_size)

    # ---------------------------------------------------------------- the doctor

    def diagnose(self) -> Diagnosis:
        """The doctor's diagnosis of the run as it is now."""
        return examine(self._run, self._corpus)

    def detect_training_issues(self) -> list[Finding]:
        """The doctor's findings, the one to treat first first; empty for a healthy run."""
        return self.diagnose().findings

    # ---------------------------------------------------------------- models and batches

    def _models(self) -> list[tuple[int, MiniBERT]]:
        reasons: list[str] = []
        found = list(checkpoint_models(self.record.directory, reasons))
        if not found:
            raise CheckpointError(f"{self.record.directory} has no checkpoint that can be read: {reasons[0]}")
        self.record.notes += reasons
        return found

    def _batch(self, data_batch: DataBatch | None) -> Any:
        """The given batch, or a sample of held-out sequences of the run's corpus, padded to one length."""
        if data_batch is not None:
            return as_batch(data_batch)
        try:
            parts = sample_batches(self.record)
        except Unavailable as reason:
            raise InputError(f"{self.record.directory}: {reason} Pass a data_batch.") from None
        return joined_batches(parts)._replace(token_types=None)
