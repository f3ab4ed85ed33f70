"""Diseases that are seen in a run's newest checkpoint, by what it does with a little of the text."""

from pathlib import Path

import numpy as np

from ...core.model import MiniBERT
from ...errors import MiniBertError
from ...text.batches import MLMBatch
from ...training.checkpoints import read_state
from ..batches import batch_loss
from ..dynamics.sensitivity import COLLAPSED
from .checkpoint_stats import padding_matters, sample, unmasked
from .curve import STEPS_AT_UNIGRAM, no_better_than_frequencies
from .run_record import NotThere, RunRecord, number
from .symptoms import Case, Finding, Sure, disease

# Of a layer's units, at some thousand tokens. Sparse units count as silent: a run at a high rate that learned well had
# 0.73, so it takes nearly all of a layer to be a disease.
DEAD = 0.95
ONE_DIRECTION = 2.0           # effective dimensions; collapses of the laboratory have 1.0 to 1.6
LEARNED_SPECIALS = 0.2        # probability; a model never asked for [CLS] gives it 1/V at first, then next to nothing
SAME_LOSS = 1e-4              # relative: rounding, on another machine too, is a hundred times smaller
_MOST_WORK = 2e12             # tokens times parameters of an evaluation that is worth repeating: about a minute


@disease("broken attention mask", 10, waits=False)
def broken_attention_mask(case: Case) -> Finding | None:
    """Padding is attended to, so what a model says depends on how long its neighbours in the batch are."""
    run = case.run
    model, vocabulary = run.model(), run.corpus.tokenizer.vocabulary
    effect = padding_matters(model, sample(run), vocabulary)
    case.measured["effect_of_padding"] = effect
    advice = "See that scores at padding are minus infinity before the softmax, and that batches carry their mask."
    if effect > 1e-4:                             # nats; without attention to padding it is 0 exactly
        return Finding("broken attention mask", Sure.CERTAIN,
                       f"Other tokens in the padding change the loss at a masked position by {effect:.2g}.",
                       {"effect_of_padding": effect}, advice)
    logged, place = _evaluated(run)
    padded = [batch for batch in run.heldout if not batch.attention_mask.all()]
    if not padded or not run.corpus.manifest.heldout_documents:
        return None                               # nothing else to see it by
    again = MiniBERT.load(place)
    if again.get_parameter_count() * sum(batch.input_ids.size for batch in run.heldout) > _MOST_WORK:
        raise NotThere("its evaluation is too large to be repeated.")
    loss = _loss(again, run.heldout)
    case.measured["evaluation_differs_by"] = abs(loss - logged)
    if abs(loss - logged) <= SAME_LOSS * logged:
        return None
    open_loss = _loss(again, [unmasked(batch) for batch in run.heldout])
    if abs(open_loss - logged) > 0.25 * abs(loss - logged):
        run.notes.append(f"{place} has a held-out loss of {loss:.4f} now; when it was written the log said "
                         f"{logged:.4f}. Its weights, its text or the code have changed.")
        return None
    return Finding("broken attention mask", Sure.CERTAIN,
                   f"The log says {logged:.4f} for a checkpoint whose held-out loss is {loss:.4f}, but "
                   f"{open_loss:.4f} if padding is attended to: so it was in the run.",
                   {"logged_loss": logged, "loss": loss, "loss_with_padding": open_loss}, advice)


def _evaluated(run: RunRecord) -> tuple[float, Path]:
    """A checkpoint whose held-out loss the log tells, and that loss."""
    newest, _, state = run.checkpoint
    said = dict(zip(run.column("step").tolist(), run.column("eval_loss").tolist(), strict=True))
    for place, step in ((newest, state.get("step")), (run.directory / "best", None)):
        try:
            at = number(step if step is not None else read_state(place).get("step"))
            logged = said.get(at, float("nan"))
        except MiniBertError:
            continue
        if np.isfinite(logged):
            return logged, place
    raise NotThere("of the two ways to see it one was tried, on the model as it is now; the other needs a checkpoint "
                   "whose held-out loss is in the log.")


def _loss(model: MiniBERT, batches: list[MLMBatch]) -> float:
    counts = [int(batch.mask_positions.sum()) for batch in batches]
    return sum(batch_loss(model, batch) * n for batch, n in zip(batches, counts, strict=True)) / sum(counts)


@disease("masks on special tokens", 20, waits=False)
def masks_on_specials(case: Case) -> Finding | None:
    """[CLS] and [SEP] are hidden and asked for: the easiest questions, which teach nothing."""
    view = case.view
    case.measured["special_probability"] = view.special_probability
    if view.special_probability < max(LEARNED_SPECIALS, 3 / case.run.vocab_size):     # where all are alike likely
        return None
    return Finding("masks on special tokens", Sure.CERTAIN,
                   f"Where [CLS] or [SEP] is hidden, the model names it with a probability of "
                   f"{view.special_probability:.2f}; it can have learned that only from being asked.",
                   {"special_probability": view.special_probability, "special_mass": view.special_mass,
                    "even_probability": 1 / case.run.vocab_size},
                   "Choose masked positions among ordinary tokens alone, as mini_bert.mask_tokens does.")


@disease("dead units", 70)
def dead_units(case: Case) -> Finding | None:
    """Most units of a feed-forward network are silent at every token, and so get no gradient."""
    shares = case.view.dead_share
    worst = int(np.argmax(shares))
    case.measured["dead_units"] = shares[worst]
    if shares[worst] < DEAD:
        return None
    return Finding("dead units", Sure.CERTAIN,
                   f"{shares[worst]:.0%} of the units of layer {worst} are silent at all {case.view.tokens:,} tokens "
                   "looked at.",
                   {f"dead_share_{i}": share for i, share in enumerate(shares)},
                   "Begin with b1 at zero and a lower learning rate, or use model.activation=gelu, whose units can "
                   "come back.")


@disease("collapsed representations", 90)
def collapsed_representations(case: Case) -> Finding | None:
    """All tokens have nearly the same vector, so nothing can be told from it."""
    view = case.view
    case.measured |= {"mean_cosine": view.mean_cosine, "top_prediction_share": view.spread.top_share}
    if view.mean_cosine < COLLAPSED:
        return None
    return Finding("collapsed representations", Sure.POSSIBLE if may_pass(case) else Sure.CERTAIN,
                   f"The last hidden states of different tokens have a mean cosine of {view.mean_cosine:.3f}; "
                   f"{view.spread.top_share:.0%} of the predictions are the same token.",
                   {"mean_cosine": view.mean_cosine, "dimensionality": view.dimensionality,
                    "top_prediction_share": view.spread.top_share,
                    "information_of_a_prediction": view.spread.information},
                   "See that the token embeddings are not zero or frozen and reach the last layer: mini_bert.analysis."
                   "weight_evolution.track_weight_changes(RUN) shows which matrices have lost their rank.")


def may_pass(case: Case) -> bool:
    """Is the run where a plain start has nearly one vector for all tokens, and leaves it again?

    While only frequencies are learned vectors become alike, with a mean cosine of up to 0.98, but differ in 3
    dimensions and more.
    """
    curve = case.run.curve
    if not len(curve) or case.levels.unigram is None or case.view.dimensionality < ONE_DIRECTION:
        return False
    return bool(curve.steps[-1] < STEPS_AT_UNIGRAM) and no_better_than_frequencies(case)
