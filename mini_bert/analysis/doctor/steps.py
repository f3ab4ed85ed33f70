"""Diseases that are seen in a run's steps: in the sizes of its gradients and of what they change."""

import numpy as np

from ...errors import MiniBertError
from ...evaluation.probabilities import Floats
from ..dynamics.sensitivity import COLLAPSED
from .curve import judged, no_better_than_frequencies
from .model import DEAD, may_pass
from .run_record import NotThere
from .symptoms import Case, Finding, Sure, disease

# Of the weights, by one step, at any time, and usually. Healthy runs have 1e-3 to 1e-2 and small models, whose weights
# are small when they begin, up to 0.09 for some steps; a rate of 0.1 and more begins at 0.15.
LARGEST_UPDATE, LARGE_UPDATE = 0.1, 0.05
# What breaks a wide model is over when the log tells of it: the weights have grown, and the steps beside them are small
# again. Mini at 10 to 30 times its rate collapses with 0.036 to 0.1 as the largest that was logged, at its own with
# 0.01 to 0.018; small models that are healthy come to 0.025, and collapse of another cause leaves it as it is.
BREAKING_UPDATE = 0.03
ROSE = 0.15                   # nats that the loss rose by meanwhile: 0.18 to 0.42 then, below 0.1 in other runs
SMALL_UPDATE = 1e-4           # ten times below the usual 1e-3, even at the highest rate of the run
VANISHED = 1e-3               # of the strongest layer's gradient; healthy runs have a tenth and more


# -------------------------------------------------------------------- learning rate


@disease("learning rate too high", 40)
def rate_too_high(case: Case) -> Finding | None:
    """Steps are so large that they undo each other: the weights are replaced, and the loss does not come down."""
    ratios, rates = case.update_ratio(), case.run.column("learning_rate")
    at_work = ratios[case.working & np.isfinite(ratios)]
    if len(at_work) < 2:
        raise NotThere("its log has too few update ratios.")
    usual, largest = float(np.median(at_work)), float(ratios[np.isfinite(ratios)].max())
    case.measured["update_ratio"] = usual
    if not no_better_than_frequencies(case):
        return None                               # large steps that lead somewhere are no disease
    losses = case.run.training_curve.losses
    rose = _rise(losses)
    evidence = {"largest_update_ratio": largest, "update_ratio": usual, "healthy_update_ratio": 1e-3,
                "learning_rate": float(np.nanmax(rates)), "loss": case.loss, "unigram_loss": case.unigram,
                "highest_loss": float(losses.max(initial=case.loss)), "rise_of_loss": rose}
    undone = largest > LARGEST_UPDATE or (usual > LARGE_UPDATE and rose > 0.5)
    if not undone and not (largest > BREAKING_UPDATE and _broken_down(case, rose, evidence)):
        return None
    return Finding("learning rate too high", Sure.LIKELY,
                   f"A step changes a part of the model by up to {largest:.0%} of its weights, and the loss is "
                   f"{case.loss:.2f}; frequencies give {case.unigram:.2f}. "
                   + ("Such steps undo each other." if undone else "The model has not outlived such steps."),
                   evidence, f"Begin again with a tenth of the learning rate: {np.nanmax(rates) / 10:.1e}.")


def _broken_down(case: Case, rose: float, evidence: dict[str, float]) -> bool:
    """Did the loss rise, or do all tokens have one vector by now, or is a layer dead?"""
    try:
        view = case.view
    except (NotThere, MiniBertError):
        return rose > ROSE
    evidence |= {"mean_cosine": view.mean_cosine, "dead_share": max(view.dead_share)}
    collapsed = view.mean_cosine >= COLLAPSED and not may_pass(case)
    return rose > ROSE or collapsed or max(view.dead_share) >= DEAD


def _rise(losses: Floats) -> float:
    """By how much the loss rose above where it had been; of three in a row the middle one, as one batch may be hard."""
    if len(losses) < 3:
        return 0.0
    middle = np.median(np.lib.stride_tricks.sliding_window_view(losses, 3), axis=1)
    return float((middle - np.minimum.accumulate(middle)).max())


@disease("learning rate too low", 60)
def rate_too_low(case: Case) -> Finding | None:
    """Steps are so small that the weights stay as they were drawn."""
    ratios, rates = case.update_ratio(), case.run.column("learning_rate")
    known = ratios[np.isfinite(ratios)]
    if not len(known):
        raise NotThere("its log has no update ratios.")
    if not np.isfinite(rates).any():
        raise NotThere("its log has no learning rate.")
    largest, curve = float(known.max()), case.curve
    fell = float(curve.losses[0] - curve.losses[-1])
    case.measured["largest_update_ratio"] = largest
    level = case.levels.bigram if case.levels.bigram is not None else case.levels.unigram
    if largest >= SMALL_UPDATE or fell > 0.05 * curve.losses[0] or (level is not None and case.loss < level):
        return None                               # a trained model that goes on may move as little as it likes
    rate = f", {np.nanmax(rates) * 1e-3 / largest:.1e}" if largest > 0 else ""
    return Finding("learning rate too low", Sure.CERTAIN,
                   f"No step changes any part of the model by more than {largest:.1e} of its weights, a tenth or less "
                   f"of what is usual, and the loss has {f'fallen by {fell:.3f}' if fell >= 5e-4 else 'not fallen'} in "
                   f"{curve.steps[-1]:.0f} steps.",
                   {"largest_update_ratio": largest, "healthy_update_ratio": 1e-3,
                    "learning_rate": float(np.nanmax(rates)), "fall_of_loss": fell},
                   f"Raise the learning rate to where steps change a thousandth of the weights{rate}; mini-bert "
                   "find-lr searches for it.")


# -------------------------------------------------------------------- gradients


@disease("exploding", 50, waits=False)
def exploding(case: Case) -> Finding | None:
    """The loss or the gradients grow out of bounds, or are no numbers any more."""
    run = case.run
    if not run.records:
        raise NotThere("its log is empty.")
    steps = max(float(np.nan_to_num(run.column("step")).max()), 1.0)
    skipped, losses = float(np.nan_to_num(run.column("skipped")).max()), run.training_curve.losses
    norms = run.column("grad_norm")
    evidence = {"skipped_steps": skipped, "steps": steps}
    # a step or two are left out of many a run that goes on well; one in a hundred is beyond chance
    broken = skipped > max(2.0, 0.01 * steps) or run.records[-1].get("loss", 0.0) is None
    late = losses[len(losses) // 2 :]
    worst = float(np.median(late)) if len(late) else float("nan")
    uniform, finite = case.levels.uniform, norms[np.isfinite(norms)]
    early = float(np.median(finite[: max(3, len(finite) // 5)])) if len(finite) else 0.0
    last = float(np.median(finite[-max(3, len(finite) // 5) :])) if len(finite) else 0.0
    evidence |= {"loss": worst, "uniform_loss": uniform, "first_grad_norm": early, "last_grad_norm": last}
    case.measured["grad_norm_growth"] = last / early if early else 0.0
    grown = last > 100 * max(early, run.training.max_grad_norm)       # a hundred times: clipping hides it from the loss
    # guessing evenly loses ln V; half a nat more takes being sure and wrong
    if not broken and not worst > uniform + 0.5 and not grown:
        return None
    how = f"{skipped:.0f} of {steps:.0f} steps had no finite loss or gradient" if broken and skipped else \
        "the last loss is no number" if broken else \
        f"the loss is {worst:.2f}, worse than guessing evenly, {uniform:.2f}" if worst > uniform + 0.5 else \
        f"the gradient has grown from {early:.2g} to {last:.2g}"
    evidence["first_loss"] = first = float(losses[0]) if len(losses) else float("nan")
    advice = "Go back to the last checkpoint that was good, and go on with half the learning rate."
    if first > uniform + 0.5:
        advice = "Begin with smaller weights: model.init_std=0.02, and model.final_layernorm=true."
    elif not broken and worst > first:
        advice = "Check that gradients and steps agree, with mini-bert gradcheck; a wrong sign climbs like this."
    sure = Sure.CERTAIN if broken or judged(case) else Sure.POSSIBLE      # what is no number will not be one later
    return Finding("exploding", sure, f"The numbers grow out of bounds: {how}.", evidence, advice)


@disease("vanishing gradient", 80)
def vanishing(case: Case) -> Finding | None:
    """Next to no gradient arrives at some layer, so it does not learn."""
    frozen = set(case.run.training.freeze.replace(",", " ").split())
    norms = {part: _typical(values) for part, values in case.run.parts("layer_grad_norm").items()
             if part != "head" and part not in frozen}
    if len(norms) < 2:
        raise NotThere("its log has no gradient norms by layer.")
    weakest, strongest = min(norms, key=lambda part: norms[part]), max(norms.values())
    share = norms[weakest] / strongest if strongest > 0 else 0.0
    case.measured["weakest_layer_gradient"] = share
    if share > VANISHED:
        return None
    return Finding("vanishing gradient", Sure.CERTAIN,
                   f"The gradient of {weakest} is {share:.1e} of the strongest layer's: it does not learn.",
                   {f"grad_norm_{part}": norm for part, norm in norms.items()},
                   "Look at the LayerNorm gains and at W_O and W2 of the layers above it, which should be about as "
                   "they were drawn; model.block=pre_ln gives the gradient a way around them.")


def _typical(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known[len(known) // 2 :])) if len(known) else 0.0
