"""Problems visible in a run's newest checkpoint when it processes a sample of the text."""

from pathlib import Path

import numpy as np

from ...core.model import MiniBERT
from ...errors import MiniBertError
from ...text.batches import MLMBatch
from ...training.runs.checkpoints import read_state
from ..batches import batch_loss
from ..dynamics.sensitivity import COLLAPSED
from .checkpoint_stats import padding_effect, sample_batches, without_attention_mask
from .curve import STEPS_AT_UNIGRAM, no_better_than_unigram
from .run_record import RunRecord, Unavailable, finite_number
from .symptoms import Case, Certainty, Finding, disease

# Share of a layer's units that are off at a few thousand tokens. Rarely active units count too: a run that learned well
# at a high learning rate had 0.73, so only nearly all units of a layer are a disease.
DEAD = 0.95
ONE_DIRECTION = 2.0           # effective dimensions; collapsed experiments had 1.0 to 1.6
LEARNED_SPECIALS = 0.2        # probability; if [CLS] is never a target it falls from 1/V to nearly nothing
SAME_LOSS = 1e-4              # relative; rounding, even on another machine, is a hundred times smaller
_MOST_WORK = 2e12             # tokens times parameters of an evaluation that is repeated: about a minute


@disease("broken attention mask", 10, needs_curve=False)
def broken_attention_mask(case: Case) -> Finding | None:
    """Padding is attended to, so a prediction depends on the length of the other sequences in the batch."""
    run = case.run
    model, vocabulary = run.model(), run.corpus.tokenizer.vocabulary
    effect = padding_effect(model, sample_batches(run), vocabulary)
    case.measured["effect_of_padding"] = effect
    advice = "Check that scores at padding are minus infinity before the softmax, and that batches have their mask."
    if effect > 1e-4:                             # nats; without attention to padding it is exactly 0
        return Finding("broken attention mask", Certainty.CERTAIN,
                       f"Changing the tokens in the padding changes the loss at a masked position by {effect:.2g}.",
                       {"effect_of_padding": effect}, advice)
    logged, place = _evaluated(run)
    padded = [batch for batch in run.heldout if not batch.attention_mask.all()]
    if not padded or not run.corpus.manifest.heldout_documents:
        return None                               # no evaluation with padding to repeat
    again = MiniBERT.load(place)
    if again.get_parameter_count() * sum(batch.input_ids.size for batch in run.heldout) > _MOST_WORK:
        raise Unavailable("its evaluation is too large to repeat.")
    loss = _loss(again, run.heldout)
    case.measured["evaluation_differs_by"] = abs(loss - logged)
    if abs(loss - logged) <= SAME_LOSS * logged:
        return None
    open_loss = _loss(again, [without_attention_mask(batch) for batch in run.heldout])
    if abs(open_loss - logged) > 0.25 * abs(loss - logged):
        run.notes.append(f"{place} now has a held-out loss of {loss:.4f}, but {logged:.4f} in the log: its weights, "
                         "its corpus or the code have changed.")
        return None
    return Finding("broken attention mask", Certainty.CERTAIN,
                   f"The logged held-out loss of a checkpoint is {logged:.4f}. It is {loss:.4f} with a correct mask "
                   f"and {open_loss:.4f} if padding is attended to, as it was in the run.",
                   {"logged_loss": logged, "loss": loss, "loss_with_padding": open_loss}, advice)


def _evaluated(run: RunRecord) -> tuple[float, Path]:
    """A checkpoint whose held-out loss is in the log, and that loss."""
    newest, _, state = run.checkpoint
    said = dict(zip(run.column("step").tolist(), run.column("eval_loss").tolist(), strict=True))
    for place, step in ((newest, state.get("step")), (run.directory / "best", None)):
        try:
            at = finite_number(step if step is not None else read_state(place).get("step"))
            logged = said.get(at, float("nan"))
        except MiniBertError:
            continue
        if np.isfinite(logged):
            return logged, place
    raise Unavailable("only the newest checkpoint was tested with changed padding; repeating an evaluation needs a "
                      "checkpoint whose held-out loss is in the log.")


def _loss(model: MiniBERT, batches: list[MLMBatch]) -> float:
    counts = [int(batch.mask_positions.sum()) for batch in batches]
    return sum(batch_loss(model, batch) * n for batch, n in zip(batches, counts, strict=True)) / sum(counts)


@disease("masks on special tokens", 20, needs_curve=False)
def masks_on_specials(case: Case) -> Finding | None:
    """[CLS] and [SEP] are masked, which wastes targets on predictions that teach nothing."""
    stats = case.stats
    case.measured["special_probability"] = stats.special_probability
    if stats.special_probability < max(LEARNED_SPECIALS, 3 / case.run.vocab_size):
        return None
    return Finding("masks on special tokens", Certainty.CERTAIN,
                   f"Where [CLS] or [SEP] is masked, the model predicts it with probability "
                   f"{stats.special_probability:.2f}; it can learn that only if special tokens are masked in training.",
                   {"special_probability": stats.special_probability, "special_mass": stats.special_mass,
                    "even_probability": 1 / case.run.vocab_size},
                   "Mask only ordinary tokens, as mini_bert.mask_tokens does.")


@disease("dead units", 70, symptom_of=("learning rate too high",))
def dead_units(case: Case) -> Finding | None:
    """Most units of a feed-forward network are off at every token, so they get no gradient."""
    shares = case.stats.dead_share
    worst = int(np.argmax(shares))
    case.measured["dead_units"] = shares[worst]
    if shares[worst] < DEAD:
        return None
    return Finding("dead units", Certainty.CERTAIN,
                   f"{shares[worst]:.0%} of the units of layer {worst} are off at all {case.stats.tokens:,} tokens "
                   "of the sample.",
                   {f"dead_share_{i}": share for i, share in enumerate(shares)},
                   "Start with b1 at zero and a lower learning rate, or use model.activation=gelu, whose units can "
                   "recover.")


@disease("collapsed representations", 90, symptom_of=("learning rate too high",))
def collapsed_representations(case: Case) -> Finding | None:
    """All tokens have nearly the same vector, which therefore carries no information."""
    stats = case.stats
    case.measured |= {"mean_cosine": stats.mean_cosine, "top_prediction_share": stats.spread.top_share}
    if stats.mean_cosine < COLLAPSED:
        return None
    return Finding("collapsed representations", Certainty.POSSIBLE if collapse_may_pass(case) else Certainty.CERTAIN,
                   f"The last hidden states of different tokens have a mean cosine of {stats.mean_cosine:.3f}; "
                   f"{stats.spread.top_share:.0%} of the predictions are the same token.",
                   {"mean_cosine": stats.mean_cosine, "dimensionality": stats.dimensionality,
                    "top_prediction_share": stats.spread.top_share,
                    "information_of_a_prediction": stats.spread.information},
                   "Check that the token embeddings are not zero or frozen and reach the last layer: "
                   "mini_bert.analysis.track_weight_changes(RUN) shows which matrices have lost rank.")


def collapse_may_pass(case: Case) -> bool:
    """Is the run in the early phase in which a default initialisation temporarily has similar vectors for all tokens?

    While only frequencies are being learned, vectors reach a mean cosine of up to 0.98, but still differ in three or
    more dimensions.
    """
    curve = case.run.curve
    if not len(curve) or case.baselines.unigram is None or case.stats.dimensionality < ONE_DIRECTION:
        return False
    return bool(curve.steps[-1] < STEPS_AT_UNIGRAM) and no_better_than_unigram(case)
