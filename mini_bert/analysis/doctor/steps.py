"""Problems visible in a run's gradients and updates."""

import numpy as np

from ...errors import MiniBertError
from ...evaluation.probabilities import Floats
from ..dynamics.sensitivity import COLLAPSED
from .curve import long_enough, no_better_than_unigram
from .model import DEAD, collapse_may_pass
from .run_record import Unavailable
from .symptoms import Case, Certainty, Finding, disease

# Update ratio, the norm of an update relative to that of the weights: the largest and the median of a run. Healthy runs
# have 1e-3 to 1e-2, small models, whose initial weights are small, up to 0.09 for some steps. At learning rates of 0.1
# and above it starts at 0.15.
LARGEST_UPDATE, LARGE_UPDATE = 0.1, 0.05
# A wide model may break before the first logged step; by then its weights have grown and the ratio is small again. The
# largest logged ratio of Mini is 0.036 to 0.1 at 10 to 30 times its learning rate, where it collapses, and 0.01 to
# 0.018 at its own. Healthy small models reach 0.025. Collapses with other causes do not change it.
BREAKING_UPDATE = 0.03
ROSE = 0.15                   # nats by which the loss rose: 0.18 to 0.42 in such a collapse, below 0.1 in other runs
CERTAINLY_ROSE = 0.5          # nats, where nothing else is known
SMALL_UPDATE = 1e-4           # a tenth of the usual 1e-3, even at the highest learning rate of the run
VANISHED = 1e-3               # relative to the largest gradient of a layer; healthy runs have a tenth or more


# -------------------------------------------------------------------- learning rate


@disease("learning rate too high", 40)
def rate_too_high(case: Case) -> Finding | None:
    """Updates are so large that they undo each other, and the loss does not fall."""
    ratios, rates = case.update_ratio(), case.run.column("learning_rate")
    at_work = ratios[case.working & np.isfinite(ratios)]
    if len(at_work) < 2:
        return _broken_by_steps(case)
    usual, largest = float(np.median(at_work)), float(ratios[np.isfinite(ratios)].max())
    case.measured["update_ratio"] = usual
    if not no_better_than_unigram(case):
        return None                               # large updates that reduce the loss are no disease
    losses = case.run.training_curve.losses
    rose = _rise_of(case)
    evidence = {"largest_update_ratio": largest, "update_ratio": usual, "healthy_update_ratio": 1e-3,
                "learning_rate": float(np.nanmax(rates)), "loss": case.loss, "unigram_loss": case.unigram,
                "highest_loss": float(losses.max(initial=case.loss)), "rise_of_loss": rose}
    undone = largest > LARGEST_UPDATE or (usual > LARGE_UPDATE and rose > 0.5)
    if not undone and not (largest > BREAKING_UPDATE and _collapsed(case, rose, evidence)):
        return None
    return Finding("learning rate too high", Certainty.LIKELY,
                   f"A step changes a parameter group by up to {largest:.0%} of its weights, and the loss is "
                   f"{case.loss:.2f}; token frequencies alone give {case.unigram:.2f}. "
                   + ("Such steps undo each other." if undone else "Such steps have broken the model."),
                   evidence, f"Start again with a tenth of the learning rate: {np.nanmax(rates) / 10:.1e}.")


def _broken_by_steps(case: Case) -> Finding | None:
    """The same from the losses and the checkpoint alone, if the log has too few update ratios."""
    evidence, rates = dict[str, float](), case.run.column("learning_rate")
    rose = max(float((losses - np.minimum.accumulate(losses)).max(initial=0.0))       # there are too few to smooth them
               for losses in (case.run.training_curve.losses, case.run.heldout_curve.losses))
    if not no_better_than_unigram(case) or rose < CERTAINLY_ROSE or not _collapsed(case, 0.0, evidence):
        raise Unavailable("its log has too few update ratios.")
    return Finding("learning rate too high", Certainty.LIKELY,
                   f"The loss has risen by {rose:.2f} above its lowest value, and the model has collapsed, as after "
                   f"steps that are far too large; the loss is {case.loss:.2f}, and token frequencies alone give "
                   f"{case.unigram:.2f}. The log has too few lines to measure the steps.",
                   evidence | {"rise_of_loss": rose, "loss": case.loss, "unigram_loss": case.unigram,
                               "learning_rate": float(np.nanmax(rates))},
                   f"Start again with a tenth of the learning rate, {np.nanmax(rates) / 10:.1e}, and log more often "
                   "(training.log_every).")


def _rise_of(case: Case) -> float:
    """The largest rise of the training or the held-out loss."""
    return max(_rise(case.run.training_curve.losses), _rise(case.run.heldout_curve.losses))


def _collapsed(case: Case, rose: float, evidence: dict[str, float]) -> bool:
    """Has the loss risen, do all tokens have the same vector, or is a layer dead?"""
    try:
        stats = case.stats
    except (Unavailable, MiniBertError):
        return rose > ROSE
    evidence |= {"mean_cosine": stats.mean_cosine, "dead_share": max(stats.dead_share)}
    collapsed = stats.mean_cosine >= COLLAPSED and not collapse_may_pass(case)
    return rose > ROSE or collapsed or max(stats.dead_share) >= DEAD


def _rise(losses: Floats) -> float:
    """The largest rise of the loss above its lowest value so far, in a running median of three to smooth outliers."""
    if len(losses) < 3:
        return 0.0
    middle = np.median(np.lib.stride_tricks.sliding_window_view(losses, 3), axis=1)
    return float((middle - np.minimum.accumulate(middle)).max())


@disease("learning rate too low", 60)
def rate_too_low(case: Case) -> Finding | None:
    """Updates are so small that the weights stay near their initial values."""
    ratios, rates = case.update_ratio(), case.run.column("learning_rate")
    known = ratios[np.isfinite(ratios)]
    if not len(known):
        raise Unavailable("its log has no update ratios.")
    if not np.isfinite(rates).any():
        raise Unavailable("its log has no learning rate.")
    largest, curve = float(known.max()), case.curve
    fell = float(curve.losses[0] - curve.losses[-1])
    case.measured["largest_update_ratio"] = largest
    baseline = case.baselines.bigram if case.baselines.bigram is not None else case.baselines.unigram
    if largest >= SMALL_UPDATE or fell > 0.05 * curve.losses[0] or (baseline is not None and case.loss < baseline):
        return None                               # small updates of a trained model are no disease
    rate = f", {np.nanmax(rates) * 1e-3 / largest:.1e}" if largest > 0 else ""
    return Finding("learning rate too low", Certainty.CERTAIN,
                   f"No step changes a parameter group by more than {largest:.1e} of its weights, at most a tenth "
                   f"of the usual, and the loss has {f'fallen by {fell:.3f}' if fell >= 5e-4 else 'not fallen'} in "
                   f"{curve.steps[-1]:.0f} steps.",
                   {"largest_update_ratio": largest, "healthy_update_ratio": 1e-3,
                    "learning_rate": float(np.nanmax(rates)), "fall_of_loss": fell},
                   f"Raise the learning rate until steps change a thousandth of the weights{rate}; mini-bert "
                   "find-lr searches for it.")


# -------------------------------------------------------------------- gradients


@disease("exploding", 50, needs_curve=False)
def exploding(case: Case) -> Finding | None:
    """The loss or the gradients diverge, or are no longer finite."""
    run = case.run
    if not run.records:
        raise Unavailable("its log is empty.")
    steps = max(float(np.nan_to_num(run.column("step")).max()), 1.0)
    skipped, losses = float(np.nan_to_num(run.column("skipped")).max()), run.training_curve.losses
    norms = run.column("grad_norm")
    evidence = {"skipped_steps": skipped, "steps": steps}
    # many healthy runs skip a step or two; one in a hundred is more than chance
    broken = skipped > max(2.0, 0.01 * steps) or run.records[-1].get("loss", 0.0) is None
    late = losses[len(losses) // 2 :]
    worst = float(np.median(late)) if len(late) else float("nan")
    uniform, finite = case.uniform, norms[np.isfinite(norms)]
    early = float(np.median(finite[: max(3, len(finite) // 5)])) if len(finite) else 0.0
    last = float(np.median(finite[-max(3, len(finite) // 5) :])) if len(finite) else 0.0
    evidence |= {"loss": worst, "uniform_loss": uniform, "first_grad_norm": early, "last_grad_norm": last}
    case.measured["grad_norm_growth"] = last / early if early else 0.0
    grown = last > 100 * max(early, run.training.max_grad_norm)       # clipping hides such growth from the loss
    # uniform guessing has loss ln V; half a nat more means confident, wrong predictions
    if not broken and not worst > uniform + 0.5 and not grown:
        return None
    how = f"{skipped:.0f} of {steps:.0f} steps had no finite loss or gradient" if broken and skipped else \
        "the last loss is not finite" if broken else \
        f"the loss is {worst:.2f}, worse than uniform guessing, {uniform:.2f}" if worst > uniform + 0.5 else \
        f"the gradient has grown from {early:.2g} to {last:.2g}"
    evidence["first_loss"] = first = float(losses[0]) if len(losses) else float("nan")
    advice = "Return to the last good checkpoint, and continue with half the learning rate."
    if first > uniform + 0.5:
        advice = "Start with smaller weights: model.init_std=0.02, and model.final_layernorm=true."
    elif not broken and worst > first:
        advice = "Check the gradients with mini-bert gradcheck; a wrong sign makes the loss rise like this."
    sure = Certainty.CERTAIN if broken or long_enough(case) else Certainty.POSSIBLE
    return Finding("exploding", sure, f"Training diverges: {how}.", evidence, advice)


@disease("vanishing gradient", 80, symptom_of=("learning rate too high", "dead units"))
def vanishing(case: Case) -> Finding | None:
    """A layer gets almost no gradient, so it does not learn."""
    if any(finding.name == "exploding" for finding in case.findings):
        raise Unavailable("training diverges, and the gradients of a model that has exploded say nothing about layers.")
    frozen = set(case.run.training.freeze.replace(",", " ").split())
    norms = {group: _typical(values) for group, values in case.run.by_name("layer_grad_norm").items()
             if group != "head" and group not in frozen}
    if len(norms) < 2:
        raise Unavailable("its log has no gradient norms by layer.")
    weakest, strongest = min(norms, key=lambda group: norms[group]), max(norms.values())
    share = norms[weakest] / strongest if strongest > 0 else 0.0
    case.measured["weakest_layer_gradient"] = share
    if share > VANISHED:
        return None
    return Finding("vanishing gradient", Certainty.CERTAIN,
                   f"The gradient of {weakest} is {share:.1e} of the largest of a layer: {weakest} does not learn.",
                   {f"grad_norm_{group}": norm for group, norm in norms.items()},
                   "Check that the LayerNorm gains, W_O and W2 of the layers above it are near their initial size; "
                   "model.block=pre_ln gives the gradient a path around them.")


def _typical(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known[len(known) // 2 :])) if len(known) else 0.0
