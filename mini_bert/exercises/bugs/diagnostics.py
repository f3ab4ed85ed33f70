"""Diagnostics that can reveal a planted bug: each runs the library as it is now, and returns measurements.

None of them says what is wrong. The learner compares a reading with that of the healthy code. Whether a reading passes
is for the tests, which check that each bug is caught by the diagnostics that its text names.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile
from math import log, sqrt
from typing import Any

import numpy as np

from ...checks.models import check_model, shrink
from ...configs import load_preset
from ...core.config import ModelConfig
from ...core.gradcheck import TOLERANCE, CheckResult
from ...core.model import MiniBERT
from ...core.ops import operations
from ...core.ops.attention import attention_forward
from ...core.params import Parameters, ParamSpec
from ...errors import MiniBertError
from ...objectives.masked import MaskedLM
from ...objectives.objective import PassOptions
from ...randomness import generator
from ...text.batches import MLMBatch
from ...text.masking import mask_tokens
from ...training.optimisers.adamw import AdamW
from ...training.update import BatchGradients
from ...workers import workers
from . import training
from .planting import active

STEPS = 120
APART = 0.2                   # nats; smaller differences of the final held-out loss do not count
_SMALL = ModelConfig(num_layers=2, num_heads=2, hidden_size=16, intermediate_size=32, vocab_size=40, max_seq_length=16,
                     init_std=0.3)


@dataclass(frozen=True)
class Reading:
    """The result of a diagnostic: measurements by name, and whether they are as they should be."""

    figures: dict[str, float | str]
    passed: bool
    hidden: frozenset[str] = field(default=frozenset())   # figures that are not shown if hidden in both readings


@dataclass(frozen=True)
class Diagnostic:
    name: str
    title: str
    run: Callable[[int], Reading]         # with a seed
    about: str = ""                       # how to interpret the figures
    like_healthy: Callable[[Reading, Reading], bool] | None = None      # if it can only be judged by comparison


def _gradcheck(seed: int) -> Reading:
    """Every operation, and every parameter of a small model with padding and dropout."""
    results: list[CheckResult] = [result for operation in operations() for result in operation.check(seed)]
    model = check_model("model", shrink(load_preset("mini"), load_preset("debug")), seed)
    results += takewhile(lambda result: result.case == "masked positions", model)        # the training loss
    worst: dict[str, float] = {}
    for result in results:
        name = f"{result.subject}, {'' if result.subject == 'model' else f'{result.case}: '}{result.gradient}"
        error = result.error if np.isfinite(result.error) else float("inf")
        worst[name] = max(worst.get(name, 0.0), error)
    agree = frozenset(name for name, error in worst.items() if error <= TOLERANCE)
    return Reading({**worst, "gradients that agree": f"{len(agree)} of {len(worst)}"}, len(agree) == len(worst), agree)


def _curve(seed: int) -> Reading:
    """Losses and gradient norms of a run on a small artificial language."""
    lesson = training.lesson(seed, STEPS, active())
    figures: dict[str, float | str] = {}
    for step in sorted({*lesson.losses, *lesson.heldout}):
        figures[f"step {step}: training loss"] = lesson.losses.get(step, float("nan"))
        figures[f"step {step}: held-out loss"] = lesson.heldout.get(step, float("nan"))
    figures |= {f"step {step}: norm of the gradient": norm for step, norm in lesson.grad_norms.items()
                if step in (min(lesson.grad_norms), max(lesson.grad_norms))}
    return Reading(figures, STEPS in lesson.heldout)


def _same_end(found: Reading, healthy: Reading) -> bool:
    """Does the run end with about the same held-out loss as the healthy one?"""
    ends = [float(reading.figures.get(f"step {STEPS}: held-out loss", "nan")) for reading in (found, healthy)]
    return abs(ends[0] - ends[1]) <= APART


def _doctor(seed: int) -> Reading:
    """The doctor's diagnosis of such a run."""
    diagnosis = training.lesson(seed, STEPS, active()).diagnosis
    found = {f"finding {i}": f"{finding.name}: {finding.says}" for i, finding in enumerate(diagnosis.findings, 1)}
    return Reading({"verdict": diagnosis.verdict, **found}, diagnosis.healthy)


def _padding(seed: int) -> Reading:
    """A sentence alone, padded, and padded with other tokens."""
    model, rng = _model(seed), generator(seed, "exercise", "padding")
    ids = rng.integers(5, _SMALL.vocab_size, (1, 6))
    padded, other = np.zeros((2, 1, 12), np.int64)
    padded[:, :6] = other[:, :6] = ids
    other[:, 6:] = rng.integers(5, _SMALL.vocab_size, (1, 6))
    mask = np.arange(12)[None] < 6
    alone, _ = model.encode(ids)
    with_padding, _ = model.encode(padded, mask)
    filled, _ = model.encode(other, mask)
    figures = {"alone or padded: largest difference of its vectors": _apart(alone, with_padding[:, :6]),
               "other tokens in the padding: largest difference": _apart(filled[:, :6], with_padding[:, :6])}
    return Reading({**figures}, max(figures.values()) < 1e-9)


def _order(seed: int) -> Reading:
    """Two words of a sentence swapped: do vectors change, apart from being swapped?"""
    model, rng = _model(seed), generator(seed, "exercise", "order")
    ids = rng.permutation(np.arange(5, 15))[None]
    swapped = ids.copy()
    swapped[0, [2, 6]] = ids[0, [6, 2]]
    before, _ = model.encode(ids)
    after, _ = model.encode(swapped)
    back = after.copy()
    back[0, [2, 6]] = after[0, [6, 2]]
    figures = {"the two words: largest change of their vectors": _apart(back[0, [2, 6]], before[0, [2, 6]]),
               "the other words: largest change of theirs": _apart(back[0, [0, 1, 3]], before[0, [0, 1, 3]])}
    return Reading({**figures}, min(figures.values()) > 1e-3)


def _parts(seed: int) -> Reading:
    """The mean loss and gradient of one batch, computed as a whole and one sequence at a time."""
    model, batch = _model(seed), _batch(seed)
    rows = {}
    with workers(1) as team:
        for size in (len(batch.input_ids), 1):
            gradients = BatchGradients(MaskedLM(model, PassOptions(size)), team)
            loss = gradients.compute(batch)["masked"]
            rows[size] = loss.mean, gradients.gradients.flat / loss.count
    (whole, gradient), (parted, again) = rows.values()
    apart = float(np.linalg.norm(again - gradient) / np.linalg.norm(gradient))
    return Reading({"loss of the whole batch": whole, "loss in parts of one sequence": parted,
                 "relative difference of the gradients": apart}, apart < 1e-9)


def _again(seed: int) -> Reading:
    """The gradient of one batch, computed three times with the same parameters."""
    model, batch = _model(seed), _batch(seed)
    with workers(1) as team:
        gradients = BatchGradients(MaskedLM(model, PassOptions(4)), team)
        norms = []
        for _ in range(3):
            masked = gradients.compute(batch)["masked"].count
            norms.append(float(np.linalg.norm(gradients.gradients.flat)) / masked)
    return Reading({f"norm of the gradient, time {i}": norm for i, norm in enumerate(norms, 1)},
                abs(norms[2] / norms[0] - 1) < 1e-9)


def _first_steps(seed: int) -> Reading:
    """The size of AdamW's steps under a constant gradient, in units of the learning rate."""
    params = Parameters([ParamSpec("b", (3,))], np.float64)
    optimiser, gradients = AdamW(params, 1e-3, weight_decay=0.0), params.zeros_like()
    gradients.flat[...] = 0.01, 1.0, -100.0
    figures, before = {}, params.flat.copy()
    for step in range(1, 101):
        optimiser.step(gradients)
        moved = np.abs(params.flat - before) / 1e-3
        before = params.flat.copy()
        if step in (1, 2, 10, 100):
            figures[f"step {step}, gradients 0.01, 1 and -100"] = float(moved.max())
    return Reading({**figures}, all(abs(figure - 1) < 1e-3 for figure in figures.values()))


def _scores(seed: int) -> Reading:
    """The scores of queries and keys with independent entries of variance 1, for d_k = 4, 16, 64 and 256."""
    figures: dict[str, float | str] = {}
    deviations = []
    for d_k in (4, 16, 64, 256):
        Q, K, V = generator(seed, "exercise", "scores", d_k).standard_normal((3, 4, 4, 16, d_k))
        _, cache = attention_forward(Q, K, V)
        deviations.append(float(cache.scores.std()))
        figures[f"d_k = {d_k}: deviation of the scores"] = deviations[-1]
        figures[f"d_k = {d_k}: mean of each query's largest weight"] = float(cache.weights.max(axis=-1).mean())
    return Reading(figures, max(deviations) < 1.2)


def _weights(seed: int) -> Reading:
    """The attention weights of every layer and head of a small model, on a sentence without padding."""
    model = _model(seed)
    ids = generator(seed, "exercise", "weights").integers(5, _SMALL.vocab_size, (2, 8))
    _, cache = model.encode(ids)
    P = np.stack([cache[f"attention_weights_{layer}"] for layer in range(_SMALL.num_layers)])
    keys, queries = P.sum(axis=-1), P.sum(axis=-2)
    entropy = float(-(P * np.log(np.where(P > 0, P, 1))).sum(axis=-1).mean())
    return Reading({"what a query gives, over all keys: least": float(keys.min()),
                 "what a query gives, over all keys: most": float(keys.max()),
                 "what a key gets, over all queries: least": float(queries.min()),
                 "what a key gets, over all queries: most": float(queries.max()),
                 f"entropy of a query's weights, at most {log(8):.2f}": entropy}, float(np.abs(keys - 1).max()) < 1e-9)


def _model(seed: int) -> MiniBERT:
    return MiniBERT(_SMALL, dtype=np.float64, seed=seed)


def _batch(seed: int) -> MLMBatch:
    """Eight sequences of very different lengths, so that their numbers of masked tokens differ."""
    rng = generator(seed, "exercise", "batch")
    mask = np.arange(16) < np.array([3, 16, 5, 16, 4, 16, 3, 14])[:, None]
    ids = np.where(mask, rng.integers(5, _SMALL.vocab_size, mask.shape), 0)
    masked, targets, positions = mask_tokens(ids, _SMALL.vocab_size, mask_prob=0.4, rng=rng)
    return MLMBatch(masked, targets, positions, mask)


def _apart(a: Any, b: Any) -> float:
    return float(np.abs(a - b).max())


DIAGNOSTICS = {diagnostic.name: diagnostic for diagnostic in (
    Diagnostic("gradcheck", "the gradient check", _gradcheck,
               f"Relative errors against finite differences; up to {TOLERANCE:g} is agreement. Gradients that agree "
               "in both are not shown."),
    Diagnostic("curve", "a run of 120 steps on a small language, with the same seed", _curve,
               f"Uniform guessing has a loss of {log(training.MODEL.vocab_size):.2f}.", _same_end),
    Diagnostic("doctor", "the doctor, on such a run", _doctor),
    Diagnostic("padding", "one sentence, alone and padded", _padding),
    Diagnostic("order", "one sentence, and the same with two words swapped", _order),
    Diagnostic("parts", "one batch, as a whole and in parts", _parts),
    Diagnostic("again", "one batch, three times", _again),
    Diagnostic("first-steps", "the size of AdamW's steps under a constant gradient, in learning rates", _first_steps),
    Diagnostic("scores", "scores of random queries and keys", _scores, f"sqrt(64) is {sqrt(64):.0f}."),
    Diagnostic("weights", "the attention weights", _weights),
)}


@cache
def healthy_reading(diagnostic: str, seed: int) -> Reading:
    """The reading of a diagnostic without a bug, computed once per process."""
    assert not active(), "a bug is planted"
    return DIAGNOSTICS[diagnostic].run(seed)


def error_reading(error: MiniBertError) -> Reading:
    """The reading when the library raises an error."""
    return Reading({"it stopped": str(error)}, False)
