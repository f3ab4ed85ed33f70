"""The means by which a bug can be seen: each looks at the library as it is now, and returns figures.

None of them says what is wrong. A figure is shown beside that of the healthy code; whether the library passes is for
the tests, which hold each bug against the means that its text names.
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
from ...randomness import generator
from ...text.batches import MLMBatch
from ...text.masking import mask_tokens
from ...training.optimisers.adamw import AdamW
from ...training.update import BatchGradients
from ...training.workers import workers
from . import training
from .planting import active

STEPS = 120
APART = 0.2                   # nats, of the held-out loss at the end: less is no difference
_SMALL = ModelConfig(num_layers=2, num_heads=2, hidden_size=16, intermediate_size=32, vocab_size=40, max_seq_length=16,
                     init_std=0.3)


@dataclass(frozen=True)
class Look:
    """What is seen: figures by name, and whether that is how it should be."""

    figures: dict[str, float | str]
    passed: bool
    hidden: frozenset[str] = field(default=frozenset())   # figures that are shown only if they differ from the healthy


@dataclass(frozen=True)
class Means:
    name: str
    title: str
    look: Callable[[int], Look]
    about: str = ""           # how to read the figures
    same: Callable[[Look, Look], bool] | None = None      # for what can be judged beside the healthy alone


def _gradcheck(seed: int) -> Look:
    """Every operation, and every parameter of a small model with padding and dropout."""
    results: list[CheckResult] = [result for operation in operations() for result in operation.check(seed)]
    model = check_model("model", shrink(load_preset("mini"), load_preset("debug")), seed)
    results += takewhile(lambda result: result.case == "masked positions", model)        # the loss of training
    worst: dict[str, float] = {}
    for result in results:
        name = f"{result.subject}, {'' if result.subject == 'model' else f'{result.case}: '}{result.gradient}"
        error = result.error if np.isfinite(result.error) else float("inf")
        worst[name] = max(worst.get(name, 0.0), error)
    agree = frozenset(name for name, error in worst.items() if error <= TOLERANCE)
    return Look({**worst, "gradients that agree": f"{len(agree)} of {len(worst)}"}, len(agree) == len(worst), agree)


def _curve(seed: int) -> Look:
    """A run on a small language, with its held-out loss."""
    lesson = training.lesson(seed, STEPS, active())
    figures: dict[str, float | str] = {}
    for step in sorted({*lesson.losses, *lesson.heldout}):
        figures[f"step {step}: training loss"] = lesson.losses.get(step, float("nan"))
        figures[f"step {step}: held-out loss"] = lesson.heldout.get(step, float("nan"))
    figures |= {f"step {step}: norm of the gradient": norm for step, norm in lesson.grad_norms.items()
                if step in (min(lesson.grad_norms), max(lesson.grad_norms))}
    return Look(figures, STEPS in lesson.heldout)


def _same_end(look: Look, sound: Look) -> bool:
    """Does the run end with about the held-out loss of the healthy one?"""
    ends = [float(one.figures.get(f"step {STEPS}: held-out loss", "nan")) for one in (look, sound)]
    return abs(ends[0] - ends[1]) <= APART


def _doctor(seed: int) -> Look:
    """What the doctor says of such a run."""
    diagnosis = training.lesson(seed, STEPS, active()).diagnosis
    found = {f"finding {i}": f"{finding.name}: {finding.says}" for i, finding in enumerate(diagnosis.findings, 1)}
    return Look({"verdict": diagnosis.verdict, **found}, diagnosis.healthy)


def _padding(seed: int) -> Look:
    """A sentence alone and beside a longer one, where it is padded; and other tokens in its padding."""
    model, rng = _model(seed), generator(seed, "exercise", "padding")
    ids = rng.integers(5, _SMALL.vocab_size, (1, 6))
    padded, other = np.zeros((2, 1, 12), np.int64)
    padded[:, :6] = other[:, :6] = ids
    other[:, 6:] = rng.integers(5, _SMALL.vocab_size, (1, 6))
    mask = np.arange(12)[None] < 6
    alone, _ = model.encode(ids)
    beside, _ = model.encode(padded, mask)
    filled, _ = model.encode(other, mask)
    figures = {"alone or padded: largest difference of its vectors": _apart(alone, beside[:, :6]),
               "other tokens in the padding: largest difference": _apart(filled[:, :6], beside[:, :6])}
    return Look({**figures}, max(figures.values()) < 1e-9)


def _order(seed: int) -> Look:
    """Two words of a sentence exchanged: do the vectors of the words change, beyond being exchanged?"""
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
    return Look({**figures}, min(figures.values()) > 1e-3)


def _parts(seed: int) -> Look:
    """The mean loss and gradient of one batch, computed as a whole and in parts of one sequence."""
    model, batch = _model(seed), _batch(seed)
    rows = {}
    with workers(1) as team:
        for size in (len(batch.input_ids), 1):
            gradients = BatchGradients(MaskedLM(model, micro_batch_size=size), team)
            loss = gradients.compute(batch)["masked"]
            rows[size] = loss.mean, gradients.gradients.flat / loss.count
    (whole, gradient), (parted, again) = rows.values()
    apart = float(np.linalg.norm(again - gradient) / np.linalg.norm(gradient))
    return Look({"loss of the whole batch": whole, "loss in parts of one sequence": parted,
                 "relative difference of the gradients": apart}, apart < 1e-9)


def _again(seed: int) -> Look:
    """The gradient of one batch, computed three times over with the parameters unchanged."""
    model, batch = _model(seed), _batch(seed)
    with workers(1) as team:
        gradients = BatchGradients(MaskedLM(model, micro_batch_size=4), team)
        norms = []
        for _ in range(3):
            masked = gradients.compute(batch)["masked"].count
            norms.append(float(np.linalg.norm(gradients.gradients.flat)) / masked)
    return Look({f"norm of the gradient, time {i}": norm for i, norm in enumerate(norms, 1)},
                abs(norms[2] / norms[0] - 1) < 1e-9)


def _first_steps(seed: int) -> Look:
    """How far AdamW moves a weight whose gradient is the same in every step, in units of the learning rate."""
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
    return Look({**figures}, all(abs(figure - 1) < 1e-3 for figure in figures.values()))


def _scores(seed: int) -> Look:
    """Queries and keys of independent numbers of deviation one, in heads of 4, 16, 64 and 256 features."""
    figures: dict[str, float | str] = {}
    deviations = []
    for d_k in (4, 16, 64, 256):
        Q, K, V = generator(seed, "exercise", "scores", d_k).standard_normal((3, 4, 4, 16, d_k))
        _, cache = attention_forward(Q, K, V)
        deviations.append(float(cache.scores.std()))
        figures[f"d_k = {d_k}: deviation of the scores"] = deviations[-1]
        figures[f"d_k = {d_k}: mean of each query's largest weight"] = float(cache.weights.max(axis=-1).mean())
    return Look(figures, max(deviations) < 1.2)


def _weights(seed: int) -> Look:
    """The attention weights of every layer and head of a small model, on a sentence without padding."""
    model = _model(seed)
    ids = generator(seed, "exercise", "weights").integers(5, _SMALL.vocab_size, (2, 8))
    _, cache = model.encode(ids)
    P = np.stack([cache[f"attention_weights_{layer}"] for layer in range(_SMALL.num_layers)])
    keys, queries = P.sum(axis=-1), P.sum(axis=-2)
    entropy = float(-(P * np.log(np.where(P > 0, P, 1))).sum(axis=-1).mean())
    return Look({"what a query gives, over all keys: least": float(keys.min()),
                 "what a query gives, over all keys: most": float(keys.max()),
                 "what a key gets, over all queries: least": float(queries.min()),
                 "what a key gets, over all queries: most": float(queries.max()),
                 f"entropy of a query's weights, at most {log(8):.2f}": entropy}, float(np.abs(keys - 1).max()) < 1e-9)


def _model(seed: int) -> MiniBERT:
    return MiniBERT(_SMALL, dtype=np.float64, seed=seed)


def _batch(seed: int) -> MLMBatch:
    """Eight sequences of quite different lengths, so that their numbers of masked tokens differ."""
    rng = generator(seed, "exercise", "batch")
    mask = np.arange(16) < np.array([3, 16, 5, 16, 4, 16, 3, 14])[:, None]
    ids = np.where(mask, rng.integers(5, _SMALL.vocab_size, mask.shape), 0)
    masked, targets, positions = mask_tokens(ids, _SMALL.vocab_size, mask_prob=0.4, rng=rng)
    return MLMBatch(masked, targets, positions, mask)


def _apart(a: Any, b: Any) -> float:
    return float(np.abs(a - b).max())


MEANS = {means.name: means for means in (
    Means("gradcheck", "the gradient check", _gradcheck,
          f"Relative errors against finite differences; up to {TOLERANCE:g} is agreement. Gradients that agree in both "
          "are left out."),
    Means("curve", "a run of 120 steps on a small language, with the same seed", _curve,
          f"Guessing evenly would give {log(training.MODEL.vocab_size):.2f}.", _same_end),
    Means("doctor", "the doctor, on such a run", _doctor),
    Means("padding", "one sentence, alone and padded", _padding),
    Means("order", "one sentence, and the same with two words exchanged", _order),
    Means("parts", "one batch, as a whole and in parts", _parts),
    Means("again", "one batch, three times over", _again),
    Means("first-steps", "the size of AdamW's steps under a constant gradient, in learning rates", _first_steps),
    Means("scores", "scores of random queries and keys", _scores, f"sqrt(64) is {sqrt(64):.0f}."),
    Means("weights", "the attention weights", _weights),
)}


@cache
def healthy(means: str, seed: int) -> Look:
    """What one of the means sees of the library as it should be, once a process."""
    assert not active(), "a bug is planted"
    return MEANS[means].look(seed)


def refused(error: MiniBertError) -> Look:
    """What is seen when the library itself stops."""
    return Look({"it stopped": str(error)}, False)
