"""Problems visible in a run's losses.

The last loss is compared with the baselines of baseline_losses.py. Progress is measured by the pace: nats per token
over the second half of the tokens seen. Each threshold is explained where it is defined.
"""

import numpy as np

from .run_record import Unavailable
from .symptoms import Case, Certainty, Finding, disease

# Tokens seen per vocabulary entry before a curve can be judged. The shipped model's config leaves the unigram loss
# after about 15, a default initialisation after more than a hundred.
TOKENS_PER_PIECE = 40
LEAST_POINTS, LEAST_STEPS = 4, 50
STEPS_AT_UNIGRAM = 150        # every run stays at the unigram loss for a while, a small one on real text for 110 steps
# A run is stuck if, at its pace, it needs this many times the tokens seen so far to reach the next baseline. Healthy
# experiments need at most 1.2, runs on a plateau 3 or more.
PATIENCE = 2.0
LEAST_GAP = 0.05              # nats; closer baselines cannot be distinguished
HALF = 0.5                    # of the way from one baseline to the next: before it, a stuck curve is at the first
TENTH = 0.1
# Nats above the reference curve or its band. At a million tokens, where runs differ most, half the learning rate costs
# 0.23, and an initialisation without frequencies or without local heads up to 0.37.
FAR = 0.5
SIMILAR_TEXT = 0.25           # nats; texts whose unigram losses differ by less are equally hard


def reasons_too_short(case: Case) -> list[str]:
    """The reasons why the curve is too short to be judged; empty if it is long enough."""
    if not len(case.run.curve):
        return ["the log has no loss yet"]
    if len(case.run.curve) >= 2 and _past_every_plateau(case):
        return []                                 # a run that started from a trained model
    return _reasons_too_young(case)


def _reasons_too_young(case: Case) -> list[str]:
    run, reasons = case.run, []
    curve = run.curve
    steps, tokens = float(curve.steps[-1]), float(curve.tokens[-1])
    # of the longer curve, so that a run does not become too short when its first held-out losses arrive
    points = max(len(curve), len(run.training_curve))
    if points < LEAST_POINTS:
        reasons.append(f"the log has {points} losses; {LEAST_POINTS} are needed")
    if steps < LEAST_STEPS:
        reasons.append(f"it has taken {steps:.0f} steps; {LEAST_STEPS} are needed")
    if tokens < TOKENS_PER_PIECE * run.vocab_size:
        reasons.append(f"it has seen {tokens:,.0f} tokens; a vocabulary of {run.vocab_size:,} needs "
                       f"{TOKENS_PER_PIECE * run.vocab_size:,}")
    rates = run.column("learning_rate")
    if np.isfinite(rates).any():
        warm = float(run.column("step")[int(np.argmax(rates >= 0.99 * np.nanmax(rates)))])
        if steps < 2 * warm:                      # at least half of the steps must follow the warm-up
            reasons.append(f"its warm-up took {warm:.0f} of its {steps:.0f} steps")
    return reasons


def long_enough(case: Case) -> bool:
    """Is the curve long enough to be judged?"""
    return not reasons_too_short(case)


def fall_per_token(case: Case) -> float:
    """The fall of the loss per token, over the second half of the tokens; negative if the loss rises.

    Points where the learning rate is below a tenth of its highest value are left out: there the loss hardly moves.
    """
    curve = case.curve
    rates = case.run.column("learning_rate")
    known = np.isfinite(rates)
    moving = np.ones(len(curve), bool)
    if known.any():
        moving = np.interp(curve.steps, case.run.column("step")[known], rates[known]) >= 0.1 * rates[known].max()
    late = moving & (curve.tokens >= curve.tokens[-1] / 2)
    if late.sum() < 3:
        late = np.arange(len(curve)) >= len(curve) - 3
    x, y = curve.tokens[late], curve.losses[late]
    if len(x) < 2 or np.ptp(x) == 0:
        return 0.0
    x = x - x.mean()
    return float(-(x @ y) / (x @ x))


def forecast(case: Case, target: float) -> float:
    """The tokens needed to reach the loss `target` at this pace, as a multiple of the tokens seen so far."""
    gap, speed = case.loss - target, fall_per_token(case)
    if gap <= 0:
        return 0.0
    return gap / speed / float(case.curve.tokens[-1]) if speed > 0 else float("inf")


def fall_in_second_half(case: Case) -> float:
    """The fall of the loss over the second half of the tokens, by its pace."""
    return fall_per_token(case) * float(case.curve.tokens[-1]) / 2


def no_better_than_unigram(case: Case) -> bool:
    """Is the loss closer to the unigram loss than to the bigram loss?

    Without the corpus the bigram loss is unknown, and in a text of independent words it equals the unigram loss. Then:
    is the loss within a tenth of the distance from the uniform to the unigram loss?
    """
    bigram = case.baselines.bigram
    if bigram is not None and case.unigram - bigram >= LEAST_GAP:
        return case.loss > case.unigram - HALF * (case.unigram - bigram)
    return case.loss > case.unigram - TENTH * (case.uniform - case.unigram)


def _past_every_plateau(case: Case) -> bool:
    unigram, bigram = case.baselines.unigram, case.baselines.bigram
    return unigram is not None and bigram is not None and unigram - bigram > LEAST_GAP and case.loss < bigram


# -------------------------------------------------------------------- diseases

RATES = ("learning rate too high", "learning rate too low")


@disease("still at uniform", 110, symptom_of=RATES)
def at_uniform(case: Case) -> Finding | None:
    """The loss is that of uniform guessing: not even the token frequencies have been learned."""
    uniform, unigram = case.uniform, case.unigram
    if not long_enough(case) or uniform - unigram < LEAST_GAP or case.loss > uniform + 0.5:
        return None                               # if all tokens are equally frequent, the two baselines coincide
    times = forecast(case, unigram)
    if case.loss < uniform - HALF * (uniform - unigram) or times < PATIENCE:
        return None                               # with a large batch, many tokens are only a few steps
    return Finding("still at uniform", Certainty.CERTAIN,
                   f"After {case.curve.tokens[-1]:,.0f} tokens the loss is {case.loss:.2f}, near {uniform:.2f} for "
                   f"uniform guessing; token frequencies alone give {unigram:.2f}" + _distance(times),
                   {"loss": case.loss, "uniform_loss": uniform, "unigram_loss": unigram,
                    "nats_per_million_tokens": 1e6 * fall_per_token(case)},
                   "Check that the targets are the ids before masking, and that the model can overfit one batch: "
                   "mini-bert overfit.")


def _distance(times: float) -> str:
    return f", and at this pace that takes {times:.1f} times the tokens seen so far." if np.isfinite(times) \
        else ", and the loss is not falling."


@disease("stuck at unigram", 120, symptom_of=RATES)
def at_unigram(case: Case) -> Finding | None:
    """The loss stays at that of token frequencies: the context is not used."""
    uniform, unigram, bigram = case.uniform, case.unigram, case.baselines.bigram
    near = no_better_than_unigram(case) and case.loss < uniform - HALF * (uniform - unigram) \
        and case.curve.steps[-1] >= STEPS_AT_UNIGRAM
    evidence = {"loss": case.loss, "unigram_loss": unigram, "nats_per_million_tokens": 1e6 * fall_per_token(case)}
    says = (f"After {case.curve.tokens[-1]:,.0f} tokens the loss is {case.loss:.2f}; token frequencies alone give "
            f"{unigram:.2f}")
    advice = "Initialise the attention heads to look at neighbours: training.init=local."
    if bigram is None:                            # the next baseline is unknown, so the curve must have stopped
        fall = fall_in_second_half(case)
        if not long_enough(case) or not near or fall > TENTH * (uniform - unigram):
            return None
        return Finding("stuck at unigram", Certainty.LIKELY,
                       f"{says}, and it fell by {max(fall, 0):.3f} over the second half.", evidence, advice)
    times = forecast(case, bigram)
    case.measured["way_to_bigram"] = (unigram - case.loss) / (unigram - bigram) if unigram > bigram else 0.0
    if not long_enough(case) or not near or unigram - bigram < LEAST_GAP or times < PATIENCE:
        return None
    return Finding("stuck at unigram", Certainty.CERTAIN, f"{says}, the previous token {bigram:.2f}" + _distance(times),
                   evidence | {"bigram_loss": bigram}, advice)


@disease("stuck at the bigram plateau", 130)
def at_bigram(case: Case) -> Finding | None:
    """The loss stays at that of one neighbouring token: the rest of the sentence is not used."""
    unigram, bigram = case.unigram, case.bigram
    gap = unigram - bigram
    fall = fall_in_second_half(case)
    case.measured["fall_in_second_half"] = fall
    # near: from half the gap above the bigram loss to a quarter below it; stuck: moved by less than a tenth of the gap
    near = bigram - 0.25 * gap < case.loss < unigram - HALF * gap
    # a trained model may start here, so being past the plateau does not make its curve long enough
    if _reasons_too_young(case) or gap < LEAST_GAP or not near or abs(fall) > TENTH * gap:
        return None
    return Finding("stuck at the bigram plateau", Certainty.LIKELY,
                   f"The loss is {case.loss:.2f}, about that of the previous token alone ({bigram:.2f}), and fell "
                   f"by {max(fall, 0):.3f} over the second half of {case.curve.tokens[-1]:,.0f} tokens.",
                   {"loss": case.loss, "bigram_loss": bigram, "unigram_loss": unigram, "fall_in_second_half": fall},
                   "Use more heads (model.num_heads) or more layers, and do not freeze W_Q, W_K or "
                   "position_embeddings.")


@disease("far above the reference curve", 140)
def far_above_reference(case: Case) -> Finding | None:
    """The loss is much higher than the shipped model's was after as many tokens of an equally hard text."""
    found = case.reference
    above = found.loss - (found.reference if found.high is None else found.high)
    case.measured["above_reference"] = above
    if above < FAR:
        return None
    if abs(case.unigram - found.unigram) > SIMILAR_TEXT:
        raise Unavailable(f"the unigram loss is {case.unigram:.2f} on its text and {found.unigram:.2f} on that of the "
                          "reference curve, so their losses cannot be compared.")
    return Finding("far above the reference curve", Certainty.LIKELY, str(found),
                   {"loss": found.loss, "reference_loss": found.reference, "tokens": found.tokens}
                   | ({"band_low": found.low, "band_high": found.high}
                      if found.low is not None and found.high is not None else {}),
                   f"Compare its config with the preset of mini-bert pretrain --config {found.name}.")


@disease("too short to tell", 200)
def too_short(case: Case) -> Finding | None:
    """The curve is too short to be judged."""
    reasons, curve = reasons_too_short(case), case.run.curve
    known = any(finding.sure is not Certainty.POSSIBLE for finding in case.findings)
    if not reasons and not known and case.baselines.unigram is not None and no_better_than_unigram(case) \
            and curve.steps[-1] < STEPS_AT_UNIGRAM:
        reasons = [f"its loss is the unigram loss, where many runs stay for {STEPS_AT_UNIGRAM} steps, and it has "
                   f"taken {curve.steps[-1]:.0f}"]
    if not reasons:
        return None
    return Finding("too short to tell", Certainty.POSSIBLE, f"The curve cannot be judged yet: {'; '.join(reasons)}.",
                   {"points": float(len(curve)), "steps": float(curve.steps[-1]) if len(curve) else 0.0,
                    "tokens": float(curve.tokens[-1]) if len(curve) else 0.0},
                   "Train for longer, and examine the run again: mini-bert resume RUN --set training.steps=N, or "
                   "training.budget=TIME." if case.run.finished else "Let the run continue, and examine it again.")
