"""Which tokens a prediction rests on.

    gradient x input        a_t = x_t . d f / d x_t
    integrated gradients    a_t = (x_t - b_t) . integral over s in [0, 1] of d f / d x_t at b + s (x - b)

x are the token embeddings, before positions are added; f is the logit of a word at a position, or of a label of the
whole text, or the difference of two logits; b is a baseline. Integrated gradients are complete: they add up to
f(x) - f(b) (Sundararajan et al. 2017), on all of the line and on every part of it. So the error of each part is known,
and the parts with the largest are halved until the points are used up. What they leave over is reported.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.arrays import Array, BoolArray, IntArray
from ...core.inputs import check_ids
from ...core.model import MiniBERT
from ...core.modules.heads.tasks import Answers
from ...core.ops.softmax import softmax_forward
from ...core.task_model import TaskModel
from ...errors import InputError
from ...evaluation.probabilities import Floats
from ...text.tokenizer import Tokenizer
from .sequences import read_sentence, row_asked
from .value_gradients import value_gradients

STEPS = 33                    # points on the line, ends included
_FIRST = 4                    # parts to begin with
_ENOUGH = 1e-4                # of f(x) - f(b): errors that need no more points
_AT_A_TIME = 1024             # tokens of a batch of points


@dataclass(frozen=True, eq=False)
class Saliency:
    """What each token adds to the output, and each of its dimensions."""

    method: str
    position: int | None                  # None for a label of the whole text
    target: int
    against: int | None
    attributions: Floats                  # (T,)
    by_dimension: Floats                  # (T, H)
    output: float                         # f(x)
    baseline_output: float | None = None  # f(b), of integrated gradients
    error: float | None = None            # of the integral: the sum of the errors of all parts of the line
    tokens: list[str] | None = None
    probability: float | None = None      # of the target, among everything that the model could answer

    @property
    def gap(self) -> float | None:
        """What the attributions lack of f(x) - f(b)."""
        if self.baseline_output is None:
            return None
        return self.output - self.baseline_output - float(self.attributions.sum())

    def to_dict(self) -> dict[str, Any]:
        return {"method": self.method, "position": self.position, "target": self.target, "against": self.against,
                "attributions": self.attributions.tolist(), "output": self.output,
                "baseline_output": self.baseline_output, "error": self.error, "gap": self.gap, "tokens": self.tokens,
                "probability": self.probability}


def gradient_times_input(model: MiniBERT, ids: npt.ArrayLike, position: int | None, target: int,
                         against: int | None = None, *, types: IntArray | None = None) -> Saliency:
    """To first order, what the output would lose if a token's embedding were zero."""
    run = _Output(model, ids, position, target, against, types)
    outputs, gradients = run.at(run.x[None])
    by_dimension = gradients[0] * run.x
    return Saliency("gradient x input", position, target, against, by_dimension.sum(axis=1), by_dimension,
                    float(outputs[0]), probability=run.probability())


def integrated_gradients(model: MiniBERT, ids: npt.ArrayLike, position: int | None, target: int,
                         against: int | None = None, *, baseline: int | npt.ArrayLike | None = None,
                         steps: int = STEPS, types: IntArray | None = None) -> Saliency:
    """Along the straight line from a baseline: zeros, the embedding of one piece (an id), or an array (T, H).

    At most `steps` points of the line are computed.
    """
    if steps < 2 * _FIRST + 1:
        raise InputError(f"steps must be at least {2 * _FIRST + 1}, not {steps}.")
    run = _Output(model, ids, position, target, against, types)
    b = run.baseline(baseline)
    line = _Line(run, b)
    line.refine(steps)
    by_dimension = (run.x - b) * line.mean_gradient()
    return Saliency("integrated gradients", position, target, against, by_dimension.sum(axis=1), by_dimension,
                    line.outputs[line.last], line.outputs[0], float(line.errors().sum()), probability=run.probability())


METHODS = {"gradient x input": gradient_times_input, "integrated gradients": integrated_gradients}


def explain_prediction(model: MiniBERT, tokenizer: Tokenizer, text: str, position: int, target: str | int, *,
                       against: str | int | None = None, method: str = "integrated gradients", mask: Sequence[int] = (),
                       steps: int = STEPS) -> Saliency:
    """Which tokens of a text speak for `target` at a position (and not for `against`).

    The baseline of integrated gradients is a text of [MASK]s, the model's own word for nothing known, or zeros where
    the vocabulary has none. A causal model's prediction is read in the row before the position.
    """
    if method not in METHODS:
        raise InputError(f"There is no method {method!r}; choose {' or '.join(METHODS)}.")
    sentence = read_sentence(model, tokenizer, text, mask=mask, targets={position: target})
    row = row_asked(model, position)
    wanted = sentence.targets[row]
    other = None if against is None else \
        read_sentence(model, tokenizer, text, targets={position: against}).targets[row]
    if method == "integrated gradients":
        found = integrated_gradients(model, sentence.ids, row, wanted, other,
                                     baseline=tokenizer.vocabulary.roles.get("mask"), steps=steps)
    else:
        found = gradient_times_input(model, sentence.ids, row, wanted, other)
    return replace(found, position=position, tokens=sentence.tokens)


def explain_label(model: TaskModel, tokenizer: Tokenizer, text: str, label: int, *, steps: int = STEPS) -> Saliency:
    """Which tokens of a text speak for a label, from a text of [MASK]s as above, or of padding where there is none."""
    sentence, vocabulary = read_sentence(model, tokenizer, text), tokenizer.vocabulary
    found = integrated_gradients(model, sentence.ids, None, label, steps=steps,
                                 baseline=vocabulary.roles.get("mask", vocabulary.pad))
    return replace(found, tokens=sentence.tokens)


class _Line:
    """The integral over a line by Simpson's rule on parts, each with its two ends and its middle."""

    def __init__(self, run: "_Output", b: Floats):
        self.run, self.b, self.way = run, b, run.x - b
        self.at: list[float] = []
        self.outputs: list[float] = []
        self.slopes: list[float] = []             # of f along the line
        self.gradients: list[Floats] = []
        self._compute(np.linspace(0, 1, 2 * _FIRST + 1))
        self.last = len(self.at) - 1              # the end of the line: f(x)
        self.parts = [(2 * i, 2 * i + 1, 2 * i + 2) for i in range(_FIRST)]

    def _compute(self, at: Floats) -> None:
        size = max(1, _AT_A_TIME // len(self.b))
        for start in range(0, len(at), size):
            some = at[start : start + size]
            outputs, gradients = self.run.at(self.b + some[:, None, None] * self.way)
            self.at += some.tolist()
            self.outputs += outputs.tolist()
            self.slopes += np.einsum("sth,th->s", gradients, self.way).tolist()
            self.gradients += list(gradients)

    def errors(self) -> Floats:
        """Of each part: what its slopes lack of the change of f."""
        a, m, c = np.array(self.parts).T
        at, f, slope = np.array(self.at), np.array(self.outputs), np.array(self.slopes)
        errors: Floats = np.abs(f[c] - f[a] - (at[c] - at[a]) / 6 * (slope[a] + 4 * slope[m] + slope[c]))
        return errors

    def refine(self, points: int) -> None:
        """Halve the worse half of the parts, again and again."""
        enough = _ENOUGH * abs(self.outputs[self.last] - self.outputs[0])
        while (room := (points - len(self.at)) // 2) > 0 and (errors := self.errors()).sum() > enough:
            worst = np.argsort(-errors, kind="stable")[: min(room, max(1, len(errors) // 2))].tolist()
            first = len(self.at)
            self._compute(np.array([(self.at[i] + self.at[j]) / 2 for k in worst
                                    for i, j in (self.parts[k][:2], self.parts[k][1:])]))
            for n, k in enumerate(worst):
                a, m, c = self.parts[k]
                self.parts[k] = (a, first + 2 * n, m)
                self.parts.append((m, first + 2 * n + 1, c))

    def mean_gradient(self) -> Floats:
        weights = np.zeros(len(self.at))
        for a, m, c in self.parts:
            weights[[a, m, c]] += (self.at[c] - self.at[a]) / 6 * np.array([1, 4, 1])
        mean: Floats = np.einsum("s,sth->th", weights, np.stack(self.gradients))
        return mean


class _Output:
    """f, and its gradient by the token embeddings, for several sets of embeddings at once."""

    def __init__(self, model: MiniBERT, ids: npt.ArrayLike, position: int | None, target: int, against: int | None,
                 types: IntArray | None = None):
        self._types = types
        self.model, self.position, self.target, self.against = model, position, target, against
        if position is not None and not model.modules.predicts_words:
            raise InputError("This model has no MLM head, so there is no prediction to explain.")
        if position is None and not (isinstance(model, TaskModel) and model.task.answers is Answers.SEQUENCE):
            raise InputError("This model has no labels for whole texts, so there is no prediction to explain.")
        self.ids: IntArray = check_ids(np.asarray(ids)[None], model.config.vocab_size, "ids", "the vocabulary")[0]
        if position is not None and not 0 <= position < len(self.ids):
            raise InputError(f"There is no position {position}; the text's tokens are at 0 to {len(self.ids) - 1}.")
        what, count = ("piece", model.config.vocab_size) if not isinstance(model, TaskModel) else \
            ("label", model.task.outputs)
        for answer in (target, against):
            if answer is not None and not 0 <= answer < count:
                raise InputError(f"There is no {what} {answer}; there are 0 to {count - 1}.")
        self.x: Floats = model.params["token_embeddings"][self.ids].astype(np.float64)

    def baseline(self, baseline: int | npt.ArrayLike | None) -> Floats:
        if baseline is None:
            return np.zeros_like(self.x)
        if isinstance(baseline, int | np.integer):
            if not 0 <= baseline < self.model.config.vocab_size:
                raise InputError(f"There is no piece {baseline}; the vocabulary's ids are 0 to "
                                 f"{self.model.config.vocab_size - 1}.")
            row: Floats = self.model.params["token_embeddings"][baseline].astype(np.float64)
            return np.tile(row, (len(self.x), 1))
        array = np.asarray(baseline, np.float64)
        if array.shape != self.x.shape:
            raise InputError(f"baseline has the shape {array.shape}; it must be {self.x.shape}.")
        return array

    def _positions(self, sequences: int) -> BoolArray | None:
        if self.position is None:
            return None
        positions = np.zeros((sequences, len(self.ids)), bool)
        positions[:, self.position] = True
        return positions

    def _kinds(self, sequences: int) -> IntArray | None:
        return None if self._types is None else np.tile(self._types, (sequences, 1))

    def probability(self) -> float:
        """Of the target, at the text itself."""
        logits, _ = self.model.forward(self.ids[None], token_types=self._kinds(1), positions=self._positions(1),
                                       forward_only=True)
        shares = self.model.loss.values(logits) if isinstance(self.model, TaskModel) and self.position is None else \
            softmax_forward(logits)[0]
        return float(shares[0, self.target])

    def at(self, x: Floats) -> tuple[Floats, Floats]:
        """x (S, T, H) -> f (S,) and d f / d x (S, T, H)."""
        S, T, H = x.shape
        model = self.model
        rows = x.reshape(S * T, H).astype(model.dtype)

        def hook(name: str, value: Array) -> Array:
            return rows if name == "token_vectors" else value

        logits, cache = model.forward(np.tile(self.ids, (S, 1)), token_types=self._kinds(S),       # (S, V)
                                      positions=self._positions(S), hook=hook)
        outputs = logits[:, self.target].astype(np.float64)
        dlogits = np.zeros_like(logits)
        dlogits[:, self.target] = 1
        if self.against is not None:
            outputs -= logits[:, self.against]
            dlogits[:, self.against] -= 1
        gradient = value_gradients(model, dlogits, cache, ("token_vectors",))["token_vectors"]
        return outputs, gradient.reshape(S, T, H).astype(np.float64)
