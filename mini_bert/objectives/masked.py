"""Masked language modelling: find the tokens that were hidden.

    loss = sum over masked positions of -ln p(true token)       divided once by the number of masked positions

Only the masked rows are computed in the last layer and the head.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..core.arrays import Array, BoolArray, IntArray
from ..core.config import MASK, PAD
from ..core.context import Context, DropoutKey
from ..core.gradients import mlm_gradients
from ..core.model import MiniBERT
from ..core.module import Sizes
from ..core.ops.cross_entropy import cross_entropy_backward, cross_entropy_forward, found_first, target_losses
from ..core.params import Gradients, Parameters
from ..core.registry import register
from ..errors import ConfigError
from ..text.batches import MLMBatch, MLMBatches
from ..text.corpora.corpus import Corpus
from ..text.masking import MaskingWeights
from ..text.schedule import Step
from ..text.sequences.sequences import Sequences
from .objective import USUAL_PASSES, BatchSettings, CorpusObjective, Losses, PassOptions, Team

EVAL_SEED = 0                 # held-out masks are the same in every run, so that runs can be compared


@register("objective", "masked")
class MaskedLM(CorpusObjective[MLMBatch, MLMBatch]):
    """Of one model. Other objectives on the rows of one pass inherit from it."""

    main: str = "masked"
    made_by: Callable[..., MLMBatches] = MLMBatches
    shares_pass, masks = True, True
    masking_weights: MaskingWeights | None = None     # of the batches that were made last, if they learn from the model

    def __init__(self, model: MiniBERT, passes: PassOptions = USUAL_PASSES):
        self.require_suitable(model)
        self.model, self.passes = model, passes
        self.params: Parameters = model.params
        self.losses: Mapping[str, float] = {self.main: 1.0}

    def require_suitable(self, model: MiniBERT) -> None:
        """Refuse a model that cannot learn it."""
        if not model.modules.predicts_words:
            raise ConfigError(f"The objective {self.main} needs a model with a head for masked language modelling; "
                              f"model.mlm_head is {model.config.mlm_head}.")

    def mode(self, sequences: str) -> str | type[Sequences]:
        """The sequences that it learns from, where the config has this word, or a schedule of words."""
        return sequences

    def batches(self, corpus: Corpus, config: BatchSettings, mode: str | type[Sequences] | None = None) -> MLMBatches:
        """`mode` is another kind of sequences, as an objective that reads the same pass may need."""
        self._masking = config.masking(corpus.tokenizer.vocabulary.ordinary if self.masks else None)
        self.masking_weights, self._pieces = self._masking.weights, corpus.manifest.vocab_size
        return self.made_by(corpus, "train", max_seq_length=config.max_seq_length, batch_size=config.batch_size,
                            mode=mode or self.mode(config.sequences), bucket=config.bucket, masking=self._masking,
                            curriculum=config.ordering(), seed=config.seed)

    def heldout(self, corpus: Corpus, config: BatchSettings) -> list[MLMBatch]:
        return heldout_batches(corpus, config, made_by=self.made_by, mode=self.mode(config.at(1.0).sequences)) \
            if corpus.manifest.heldout_documents else []

    def rows_at_a_time(self, batch: MLMBatch) -> int:
        """The sequences of a micro-batch."""
        return self.passes.rows_at_a_time(*batch.input_ids.shape)

    def micro_batches(self, batch: MLMBatch) -> list[MLMBatch]:
        return micro_batches(batch, self.rows_at_a_time(batch))

    def tokens(self, batch: MLMBatch) -> int:
        return int(batch.attention_mask.sum())

    def counts(self, part: MLMBatch) -> Mapping[str, int]:
        return {self.main: int(np.count_nonzero(part.mask_positions))}

    def add_gradients(self, part: MLMBatch, grads: Gradients, key: DropoutKey | None,
                      factors: Mapping[str, float]) -> Mapping[str, Any]:
        loss, found = mlm_gradients(self.model, grads, part.input_ids, part.target_ids, part.mask_positions,
                                    part.attention_mask, token_types=part.token_types, order=part.order,
                                    dropout_key=key, last=True, factor=factors[self.main], **self.passes.keeping)
        return {self.main: loss, **self.tally(part.target_ids[part.mask_positions], found)}

    def tally(self, targets: IntArray, found: BoolArray) -> dict[str, IntArray]:
        """For weights that learn: how often each token was asked for and found, (2, V), under a name for `feedback`."""
        if self.masking_weights is None:
            return {}
        return {f"{self.main}_tally": np.stack([np.bincount(some, minlength=self._pieces)
                                                for some in (targets, targets[found])])}

    def reads(self, part: MLMBatch) -> BoolArray:
        """The tokens (B, T) whose hidden rows the loss reads."""
        return part.mask_positions

    def add_loss(self, rows: Array, part: MLMBatch, ctx: Context, grads: Gradients,
                 factor: float) -> tuple[Mapping[str, Any], Array]:
        """From the hidden rows (M, H) that it reads: what `add_gradients` returns, and `factor` times the gradient of
        its loss by these rows.

        Adds the gradients of the head. `add_gradients` is the same with a pass of its own, in less memory.
        """
        head = self.model.modules.mlm_head
        logits, cache = head.forward(self.model.params, rows, ctx)
        targets = part.target_ids[part.mask_positions]
        loss, kept = cross_entropy_forward(logits, targets, overwrite=True)
        sums = {self.main: loss, **self.tally(targets, found_first(kept))}
        return sums, head.backward(cross_entropy_backward(factor, kept, overwrite=True), cache, grads, ctx)

    def evaluate(self, parts: Sequence[MLMBatch], team: Team) -> dict[str, float]:
        found = masked_predictions(self.model, parts, team)
        return {self.main: float(found.loss.mean()), f"{self.main}_accuracy": float(found.right.mean())}

    def example(self, rng: np.random.Generator) -> MLMBatch:
        mask = np.arange(7) < np.array([7, 4, 2])[:, None]
        ids = np.where(mask, rng.integers(MASK + 1, self.model.config.vocab_size, mask.shape), PAD)
        chosen = mask & (rng.random(mask.shape) < 0.4)
        chosen[:, 1] = True
        return MLMBatch(np.where(chosen, MASK, ids), ids, chosen, mask)

    def floats(self, sequences: int, masking_rate: float) -> int:
        config = self.model.config
        masked = max(1, round(masking_rate * sequences * config.max_seq_length))
        return pass_floats(self.model, sequences, masked, config.vocab_size)

    # ---------------------------------------------------------------- weights that learn

    def feedback(self, step: int, losses: Losses, figures: Mapping[str, Any]) -> None:
        if self.masking_weights is None:
            return
        counts = figures.get(f"{self.main}_tally")
        if counts is None:
            raise ConfigError(f"masking_weights: the objective {self.main} does not report which tokens it predicted "
                              "correctly; its add_gradients must return self.tally(targets, found) beside its losses.")
        rate = self._masking.rate_at(Step(step - 1, step.total if isinstance(step, Step) else 0))
        self.masking_weights.learn(step, counts, rate)

    def noted(self) -> Mapping[str, float]:
        return {} if self.masking_weights is None else self.masking_weights.noted()

    def state(self) -> dict[str, Any]:
        return {} if self.masking_weights is None else self.masking_weights.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        if self.masking_weights is not None:
            self.masking_weights.restore(state)


def pass_floats(model: MiniBERT, sequences: int, rows: int, outputs: int) -> int:
    """Numbers in memory at the peak of a backward pass from this many rows, each with this many outputs."""
    config = model.config
    tokens = sequences * config.max_seq_length
    kept = model.modules.floats(Sizes(tokens, rows, config.max_seq_length))
    # gradients on their way through one layer; the logits become their gradient in place
    inside = tokens * (5 * config.hidden_size + 2 * config.intermediate_size)
    return kept + max(rows * outputs, inside)


def cut(batch: MLMBatch, size: int) -> list[MLMBatch]:
    """The batch in parts of `size` sequences, each as wide as its longest."""
    return [rows_of(batch, slice(start, start + size)) for start in range(0, len(batch.input_ids), size)]


def rows_of(batch: MLMBatch, rows: slice | BoolArray) -> MLMBatch:
    """Some sequences of a batch, as wide as the longest of them."""
    width = int(batch.attention_mask[rows].sum(axis=1).max(initial=0))
    return MLMBatch(*(None if field is None else field[rows, :width] if field.ndim == 2 else field[rows]
                      for field in batch))  # type: ignore[arg-type]


def micro_batches(batch: MLMBatch, size: int) -> list[MLMBatch]:
    """The same; parts with nothing masked are left out."""
    return [part for part in cut(batch, size) if part.mask_positions.any()]


def heldout_batches(corpus: Corpus, config: BatchSettings, size: int = 8,
                    made_by: Callable[..., MLMBatches] = MLMBatches, mode: str | type[Sequences] | None = None,
                    parts: Callable[[MLMBatch, int], list[MLMBatch]] = micro_batches) -> list[MLMBatch]:
    """The same held-out sequences and masks in every run: 15 % single tokens, whatever training does. Where training
    changes lengths and sequences, they are those of its end."""
    end = config.at(1.0)
    batches = made_by(corpus, "heldout", max_seq_length=end.max_seq_length, batch_size=size,
                      mode=mode or end.sequences, seed=EVAL_SEED)
    wanted = min(len(batches), -(-config.eval_sequences // size))
    return [part for step in range(wanted) for part in parts(batches[step], size)]


class MaskedPredictions(NamedTuple):
    """At every masked position of some batches, in reading order: the model's loss, and whether its first guess is
    right."""

    loss: npt.NDArray[np.float64]
    right: BoolArray


def masked_predictions(model: MiniBERT, batches: Sequence[MLMBatch], team: Team) -> MaskedPredictions:
    """How a model does at the masked positions, without dropout. Each masked token counts the same."""
    model.require_words()

    def one(batch: MLMBatch) -> tuple[npt.NDArray[np.float64], BoolArray]:
        with np.errstate(over="ignore", invalid="ignore"):
            logits, _ = model.forward(batch.input_ids, batch.attention_mask, token_types=batch.token_types,
                                      positions=batch.mask_positions, order=batch.order, causal=batch.causal,
                                      forward_only=True)
        targets: IntArray = batch.target_ids[batch.mask_positions]
        right = logits.argmax(axis=1) == targets
        return target_losses(logits, targets), right

    results = team.map(one, batches)
    return MaskedPredictions(np.concatenate([loss for loss, _ in results]),
                             np.concatenate([right for _, right in results]))
