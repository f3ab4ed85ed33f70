"""Diseases that are seen in a run's losses.

Where a curve stands is told by the levels of levels.py; how it moves by its pace, nats per token over the second
half of what it has seen. Thresholds have their reasons beside them.
"""

import numpy as np

from .run_record import LEAST_HELDOUT, NotThere
from .symptoms import Case, Finding, Sure, disease

# A curve can be judged when the model has met the average token so often; the recipe of the shipped model leaves the
# unigram level after about 15, a plain start after more than a hundred.
TOKENS_A_PIECE = 40
LEAST_POINTS, LEAST_STEPS = 4, 50
STEPS_AT_UNIGRAM = 150        # every run stands there for a while, a small one on real text for 110 steps
# A run is stuck if at its pace it would need so many times what it has seen to come to the next level. Healthy runs
# of the laboratory need 1.2 at the most, those that sit on a plateau 3 and more.
PATIENCE = 2.0
LEARNED_BY_HEART = 0.1        # nats that the held-out loss and that of the training have moved apart
LEAST_GAP = 0.05              # nats; levels that are nearer than that cannot be told apart
HALF = 0.5                    # of the way from one level to the next: before it, a stuck curve is at the first
TENTH = 0.1
# Nats above the reference curve or its band. At a million tokens, where runs are furthest apart, half the rate costs
# 0.23 and a plain start without frequencies or without local heads up to 0.37.
FAR = 0.5
LIKE_TEXT = 0.25              # nats between two texts' unigram losses that make one as hard as the other


def short_reasons(case: Case) -> list[str]:
    """Why nothing can be said about the curve yet; empty if something can."""
    if not len(case.run.curve):
        return ["the log has no loss yet"]
    if len(case.run.curve) >= 2 and _past_every_plateau(case):
        return []                                 # as a model that began trained is
    return _why_young(case)


def _why_young(case: Case) -> list[str]:
    run, reasons = case.run, []
    curve = run.curve
    steps, tokens = float(curve.steps[-1]), float(curve.tokens[-1])
    # of the longer curve, so that a run that was judged by its training still is when it has held-out losses
    points = max(len(curve), len(run.training_curve))
    if points < LEAST_POINTS:
        reasons.append(f"the log has {points} losses; {LEAST_POINTS} are needed")
    if steps < LEAST_STEPS:
        reasons.append(f"it has taken {steps:.0f} steps; {LEAST_STEPS} are needed")
    if tokens < TOKENS_A_PIECE * run.vocab_size:
        reasons.append(f"it has seen {tokens:,.0f} tokens; a vocabulary of {run.vocab_size:,} needs "
                       f"{TOKENS_A_PIECE * run.vocab_size:,}")
    rates = run.column("learning_rate")
    if np.isfinite(rates).any():
        warm = float(run.column("step")[int(np.argmax(rates >= 0.99 * np.nanmax(rates)))])
        if steps < 2 * warm:                      # so that at least half of the steps were at the full rate
            reasons.append(f"its warm-up took {warm:.0f} of its {steps:.0f} steps")
    return reasons


def judged(case: Case) -> bool:
    """Is the curve long enough to say where it is stuck?"""
    return not short_reasons(case)


def pace(case: Case) -> float:
    """By how much the loss falls with each token, over the second half of the tokens; negative if it rises.

    Points where the schedule has taken the rate below a tenth are left out: there nothing moves any more.
    """
    curve = case.curve
    rates = case.run.column("learning_rate")
    there = np.isfinite(rates)
    alive = np.ones(len(curve), bool)
    if there.any():
        alive = np.interp(curve.steps, case.run.column("step")[there], rates[there]) >= 0.1 * rates[there].max()
    late = alive & (curve.tokens >= curve.tokens[-1] / 2)
    if late.sum() < 3:
        late = np.arange(len(curve)) >= len(curve) - 3
    x, y = curve.tokens[late], curve.losses[late]
    if len(x) < 2 or np.ptp(x) == 0:
        return 0.0
    x = x - x.mean()
    return float(-(x @ y) / (x @ x))


def forecast(case: Case, target: float) -> float:
    """How many times the tokens seen so far it would take to come down to `target`, at this pace."""
    gap, speed = case.loss - target, pace(case)
    if gap <= 0:
        return 0.0
    return gap / speed / float(case.curve.tokens[-1]) if speed > 0 else float("inf")


def fallen(case: Case) -> float:
    """By how much the loss fell over the second half of the tokens, at its pace."""
    return pace(case) * float(case.curve.tokens[-1]) / 2


def no_better_than_frequencies(case: Case) -> bool:
    """Is the loss nearer to the unigram level than to the next?

    Without the corpus the bigram level is not known, and a text of single words in any order has none: then, is the
    loss within a tenth of the way that led from the uniform level to the unigram's?
    """
    bigram = case.levels.bigram
    if bigram is not None and case.unigram - bigram >= LEAST_GAP:
        return case.loss > case.unigram - HALF * (case.unigram - bigram)
    return case.loss > case.unigram - TENTH * (case.levels.uniform - case.unigram)


def _past_every_plateau(case: Case) -> bool:
    unigram, bigram = case.levels.unigram, case.levels.bigram
    return unigram is not None and bigram is not None and unigram - bigram > LEAST_GAP and case.loss < bigram


# -------------------------------------------------------------------- where the curve stands


@disease("over-fitting", 100)
def over_fitting(case: Case) -> Finding | None:
    """The held-out loss rises again while that of the training falls."""
    heldout, training = case.run.heldout_curve, case.run.training_curve
    if len(heldout) < LEAST_HELDOUT:
        raise NotThere(f"its log has fewer than {LEAST_HELDOUT} held-out losses.")
    best = int(np.argmin(heldout.losses))
    risen = float(heldout.losses[-2:].min() - heldout.losses[best])       # twice in a row: once may be chance
    case.measured["heldout_rise"] = risen
    since = training.steps >= heldout.steps[best]
    if since.sum() < 2:
        return None
    third = max(1, int(since.sum()) // 3)
    last = float(np.median(training.losses[since][-third:]))
    fell = float(np.median(training.losses[since][:third])) - last
    # How much the two have moved apart, not how far apart they are: the training may mask more of its text than the
    # evaluation, and then its loss is higher all along.
    apart, epochs = risen + fell, _epochs(case)
    case.measured["gap_grown"] = apart
    # a hundredth of the loss is beyond what one evaluation differs from the next: their masks are the same
    if risen < max(0.05, 0.01 * heldout.losses[best]) or fell < 0.02:
        return None
    # what is learned by heart has been read before, and becomes known better than what was never read
    if apart < LEARNED_BY_HEART or (epochs is not None and epochs <= 1):
        return None
    read = "" if epochs is None else f"; the text has been read {epochs:.1f} times"
    return Finding("over-fitting", Sure.CERTAIN if epochs is not None else Sure.LIKELY,
                   f"Since step {heldout.steps[best]:.0f} the held-out loss has risen by {risen:.2f}, while that of "
                   f"the training has fallen by {fell:.2f}{read}.",
                   {"best_step": float(heldout.steps[best]), "lowest_heldout_loss": float(heldout.losses[best]),
                    "heldout_loss": float(heldout.losses[-1]), "training_loss": last,
                    "gap_grown": apart}
                   | ({"epochs": epochs} if epochs is not None else {}),
                   "Take the checkpoint in best/, and train on more text rather than longer.")


def _epochs(case: Case) -> float | None:
    try:
        return float(case.curve.tokens[-1]) / max(case.run.corpus.manifest.tokens, 1)
    except NotThere:
        return None


@disease("still at uniform", 110)
def at_uniform(case: Case) -> Finding | None:
    """The loss is that of guessing evenly: not even the tokens' frequencies have been learned."""
    uniform, unigram = case.levels.uniform, case.unigram
    if not judged(case) or uniform - unigram < LEAST_GAP or case.loss > uniform + 0.5:
        return None                               # a text whose tokens are all alike frequent has no such level
    times = forecast(case, unigram)
    if case.loss < uniform - HALF * (uniform - unigram) or times < PATIENCE:
        return None                               # a large batch takes many tokens to take a few steps
    return Finding("still at uniform", Sure.CERTAIN,
                   f"After {case.curve.tokens[-1]:,.0f} tokens the loss is {case.loss:.2f}, near {uniform:.2f} for "
                   f"guessing evenly; the frequencies alone would give {unigram:.2f}" + (
                       f", and at this pace that is {times:.1f} times as many tokens away." if np.isfinite(times)
                       else ", and it is not falling."),
                   {"loss": case.loss, "uniform_loss": uniform, "unigram_loss": unigram,
                    "nats_per_million_tokens": 1e6 * pace(case)},
                   "See that the targets are the ids before masking and that the head learns (mini-bert overfit: one "
                   "batch must be learned by heart).")


@disease("stuck at unigram", 120)
def at_unigram(case: Case) -> Finding | None:
    """The loss stays where the tokens' frequencies alone bring it: what stands around a token is not used."""
    uniform, unigram, bigram = case.levels.uniform, case.unigram, case.levels.bigram
    near = no_better_than_frequencies(case) and case.loss < uniform - HALF * (uniform - unigram) \
        and case.curve.steps[-1] >= STEPS_AT_UNIGRAM
    evidence = {"loss": case.loss, "unigram_loss": unigram, "nats_per_million_tokens": 1e6 * pace(case)}
    stands = (f"After {case.curve.tokens[-1]:,.0f} tokens the loss is {case.loss:.2f}; frequencies alone give "
              f"{unigram:.2f}")
    advice = "Begin with heads that look at neighbours: training.init=local."
    if bigram is None:                            # not known how far it should come: it must be still
        fall = fallen(case)
        if not judged(case) or not near or fall > TENTH * (uniform - unigram):
            return None
        return Finding("stuck at unigram", Sure.LIKELY,
                       f"{stands}, and it fell by {max(fall, 0):.3f} over the second half.", evidence, advice)
    times = forecast(case, bigram)
    case.measured["way_to_bigram"] = (unigram - case.loss) / (unigram - bigram) if unigram > bigram else 0.0
    if not judged(case) or not near or unigram - bigram < LEAST_GAP or times < PATIENCE:
        return None
    return Finding("stuck at unigram", Sure.CERTAIN, f"{stands}, the token before {bigram:.2f}" + (
        f", and at this pace that is {times:.1f} times as many tokens away." if np.isfinite(times)
        else ", and it is not falling."), evidence | {"bigram_loss": bigram}, advice)


@disease("stuck at the bigram plateau", 130)
def at_bigram(case: Case) -> Finding | None:
    """The loss stays where a look at one neighbour brings it: the rest of the sentence is not used."""
    unigram, bigram = case.unigram, case.bigram
    gap = unigram - bigram
    fall = fallen(case)
    case.measured["fall_in_second_half"] = fall
    # near: past half of the way, and not a quarter beyond; still: it has moved by less than a tenth of the way
    near = bigram - 0.25 * gap < case.loss < unigram - HALF * gap
    # a model that began trained may begin here, so being past the plateau does not make its curve long enough
    if _why_young(case) or gap < LEAST_GAP or not near or abs(fall) > TENTH * gap:
        return None
    return Finding("stuck at the bigram plateau", Sure.LIKELY,
                   f"The loss is {case.loss:.2f}, about what the token before alone gives ({bigram:.2f}), and fell "
                   f"by {max(fall, 0):.3f} over the second half of {case.curve.tokens[-1]:,.0f} tokens.",
                   {"loss": case.loss, "bigram_loss": bigram, "unigram_loss": unigram, "fall_in_second_half": fall},
                   "Let heads look further: more of them (model.num_heads) or more layers, and none of W_Q, W_K and "
                   "position_embeddings frozen.")


@disease("far above the reference curve", 140)
def far_above_reference(case: Case) -> Finding | None:
    """The loss is much higher than the shipped model's own was, after as many tokens of a text as hard."""
    beside = case.reference
    above = beside.loss - (beside.reference if beside.high is None else beside.high)
    case.measured["above_reference"] = above
    if above < FAR:
        return None
    if abs(case.unigram - beside.unigram) > LIKE_TEXT:
        raise NotThere(f"frequencies alone give {case.unigram:.2f} on its text and {beside.unigram:.2f} on that of the "
                       "reference curve, so their losses cannot be compared.")
    return Finding("far above the reference curve", Sure.LIKELY, str(beside),
                   {"loss": beside.loss, "reference_loss": beside.reference, "tokens": beside.tokens}
                   | ({"band_low": beside.low, "band_high": beside.high}
                      if beside.low is not None and beside.high is not None else {}),
                   f"Hold its settings against those of the preset: mini-bert pretrain --config {beside.name}.")


@disease("too short to tell", 200)
def too_short(case: Case) -> Finding | None:
    """There is too little of the curve to say where it goes."""
    reasons, curve = short_reasons(case), case.run.curve
    known = any(finding.sure is not Sure.POSSIBLE for finding in case.findings)
    if not reasons and not known and case.levels.unigram is not None and no_better_than_frequencies(case) \
            and curve.steps[-1] < STEPS_AT_UNIGRAM:
        reasons = [f"its loss is what frequencies give, where many runs stand for {STEPS_AT_UNIGRAM} steps, and it has "
                   f"taken {curve.steps[-1]:.0f}"]
    if not reasons:
        return None
    return Finding("too short to tell", Sure.POSSIBLE, f"The curve cannot be judged yet: {'; '.join(reasons)}.",
                   {"points": float(len(curve)), "steps": float(curve.steps[-1]) if len(curve) else 0.0,
                    "tokens": float(curve.tokens[-1]) if len(curve) else 0.0},
                   "Let it run on, and ask again.")
