"""What a training run sees at a step: its sequences, their masked tokens, and how both were chosen."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..core.config import ModelConfig
from ..core.model import MiniBERT
from ..errors import CheckpointError, ConfigError
from ..objectives.masked import MaskedLM
from ..objectives.objective import BatchValues, CorpusObjective
from ..objectives.weighted_sum import WeightedSum
from ..text.batches import MLMBatches
from ..text.corpora.corpus import Corpus
from ..text.masking import BoolArray, Floats, IntArray, MaskingWeights
from ..text.schedule import Step
from ..training.config import TrainingConfig, make_objective
from ..training.loop import State
from ..training.runs.checkpoints import newest_checkpoint, read_state
from ..training.runs.objective_state import read_further, unpack
from ..training.runs.run import read_run, require_fitting


@dataclass(frozen=True)
class SeenRow:
    """One sequence: the ids that are given, the true ones, and where they are asked for, (n,) each."""

    given: IntArray
    true: IntArray
    asked: BoolArray

    @property
    def looks_ahead(self) -> bool:
        """Is each token asked for one place before its own?"""
        return bool(np.array_equal(self.true[:-1], self.given[1:]))


@dataclass(frozen=True)
class SeenBatch:
    """The batch of one objective; `rows` are the first of its sequences."""

    objective: str
    kind: str                 # of the sequences: packed, sentences or pairs, or a class
    sequences: int
    width: int                # tokens of the longest
    tokens: int
    asked: int
    epoch: int
    rows: list[SeenRow]
    open: int                 # sequences that the step may draw from, of `all`
    all: int

    @property
    def padding(self) -> float:
        return 1 - self.tokens / (self.sequences * self.width)


@dataclass(frozen=True)
class SeenWeights:
    """Masking weights that learn: of each token (V,), as multiples of the mean; how often each was asked for and found
    since they were last changed but one, (2, V); and a few numbers about them."""

    weights: Floats
    counts: IntArray
    noted: dict[str, float]
    ordinary: BoolArray
    learned: int | None       # the step of the run whose state this is

    @property
    def all_alike(self) -> bool:
        return bool(np.ptp(self.weights[self.ordinary]) == 0)

    def by_weight(self) -> IntArray:
        """The tokens that can be masked, the one that is asked for most before all others."""
        ids = np.flatnonzero(self.ordinary)
        return ids[np.argsort(-self.weights[ids], kind="stable")]


@dataclass(frozen=True)
class SeenStep:
    corpus: Corpus
    step: Step
    training: TrainingConfig
    values: BatchValues       # of the settings that may change over a run
    share: float | None       # of the sequences that a curriculum has opened
    batches: list[SeenBatch]
    weights: SeenWeights | None


def seen_by_config(model: ModelConfig, training: TrainingConfig, corpus: Corpus, step: int, rows: int = 3) -> SeenStep:
    """What a new run with this config would see. Masking weights that learn are as they begin."""
    if training.budget:
        raise ConfigError("With a time budget, the number of steps is not known before the run; give a number with "
                          "training.budget= and training.steps=N.")
    require_fitting(corpus, model)
    training = training.resolved(model)
    objective = make_objective(training, MiniBERT(model, seed=None))
    return _seen(corpus, objective, objective.batches(corpus, training), training, Step(step, training.steps), rows)


def seen_by_run(run: Path, step: int | None = None, data: Path | None = None, rows: int = 3) -> SeenStep:
    """What a run sees at a step, by default the one after its newest checkpoint, whose state masking weights have."""
    description = read_run(run)
    checkpoint, damaged = newest_checkpoint(run / "checkpoints")
    if checkpoint is None:
        raise CheckpointError(f"{run} has no whole checkpoint." + "".join(f" {reason}" for reason in damaged))
    network, values = MiniBERT.load(checkpoint), read_state(checkpoint)
    training = TrainingConfig.from_dict(description["training"], f"{run}, training").resolved(network.config)
    corpus = Corpus(description["data"]["corpus"] if data is None else data)
    objective = make_objective(training, network)
    batches = objective.batches(corpus, training)
    unpack(objective, network, values, read_further(objective, network, checkpoint), checkpoint)
    state = State.from_json(values)
    shown = min(state.step, max(state.total_steps - 1, 0)) if step is None else step
    return _seen(corpus, objective, batches, training, Step(shown, state.total_steps), rows, learned=state.step)


def _seen(corpus: Corpus, objective: CorpusObjective[Any, Any], batches: Any, training: TrainingConfig, step: Step,
          rows: int, learned: int | None = None) -> SeenStep:
    if step.total and not 0 <= step < step.total:
        raise ConfigError(f"There is no step {int(step)}: the run has {step.total} steps, the first is 0.")
    curriculum, found = training.ordering(), list(_by_objective(objective, batches, batches[step]))
    weights = next((_weights(one.masking_weights, source.sequences.vocabulary.ordinary, step, learned)
                    for one, source, _ in found if isinstance(one, MaskedLM) and one.masking_weights is not None), None)
    return SeenStep(corpus, step, training, training.at(step.share),
                    None if curriculum is None else curriculum.share(step.share),
                    [_batch(*one, step, rows) for one in found], weights)


def _weights(weights: MaskingWeights, ordinary: BoolArray, step: Step, learned: int | None) -> SeenWeights:
    table = weights.at(step)
    counts = weights.state().get("masking_counts", np.zeros((1, 2, len(ordinary)), np.int64)).sum(axis=0)
    return SeenWeights(np.ones(len(ordinary)) if table is None else table, counts, weights.noted(), ordinary, learned)


def _by_objective(objective: CorpusObjective[Any, Any], batches: Any,
                  batch: Any) -> Iterator[tuple[CorpusObjective[Any, Any], Any, Any]]:
    """Each objective of a sum with its batches and its batch."""
    if isinstance(objective, WeightedSum):
        for one, its, own in zip(objective.objectives, batches.several, batch, strict=True):
            yield from _by_objective(one, its, own)
    else:
        yield objective, getattr(batches, "source", batches), batch


def _batch(objective: CorpusObjective[Any, Any], source: Any, batch: Any, step: Step, rows: int) -> SeenBatch:
    if not isinstance(source, MLMBatches):
        raise ConfigError(f"The objective {objective.main} makes its own kind of batches, which cannot be shown.")
    stage = source.stage(step) if hasattr(batch, "mask_positions") else source
    mask = batch.attention_mask
    asked = getattr(batch, "mask_positions", np.zeros_like(mask))
    true = getattr(batch, "target_ids", batch.input_ids)
    shown = [SeenRow(batch.input_ids[row][mask[row]], true[row][mask[row]], asked[row][mask[row]])
             for row in range(min(rows, len(mask)))]
    return SeenBatch(objective.main, stage.kind, len(mask), mask.shape[1], int(mask.sum()), int(asked.sum()),
                     int(step) // len(stage), shown, stage.pool(step), len(stage.sequences))
