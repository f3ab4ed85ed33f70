"""The baseline of tasks about texts: a linear model of the words and word pairs of a text.

    scores(text) = b + sum over the text's features f of W_f        loss = the task's own, mean, + l2 |W|^2

The penalty and the number of steps are chosen on the development set. If results are also measured there, that
flatters this baseline in the same way as it flatters the model.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from ....core.arrays import Array, Targets
from ....core.context import DropoutKey
from ....core.modules.losses.loss import ScoreLoss
from ....core.params import Gradients, Parameters, ParamSpec
from ....core.registry import find, make
from ....text.wordpiece.normalise import normaliser
from ....training.loop import Loop, State
from ....training.optimisers.adamw import AdamW
from ....training.update import StepResult, Update
from ....workers import Workers
from ...formats.tables import Labelled
from ..metrics.metric import Metric

_STEPS, _RATE = 150, 0.05
_PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3)
_LEAST = 2                    # minimum number of occurrences of a feature
Answered = tuple[Sequence[Labelled], Targets]               # texts, and their right answers


class _Features:
    """The distinct features of each text as indices, all texts in one array."""

    def __init__(self, texts: Sequence[list[str]], known: dict[str, int]):
        found = [sorted({known[name] for name in names if name in known}) for names in texts]
        self.numbers = np.array([number for row in found for number in row], np.int64)
        self.counts = np.array([len(row) for row in found])
        self.owner = np.repeat(np.arange(len(found)), self.counts)

    def scores(self, W: Array, b: Array) -> Array:
        """(N, C)."""
        sums: Array = np.stack([np.bincount(self.owner, W[self.numbers, c], len(self.counts))
                                for c in range(W.shape[1])], axis=1)
        return b + sums

    def dW(self, dscores: Array, size: int) -> Array:
        """scores = b + sum of W_f: each feature of a text gets the gradient of the text."""
        sums: Array = np.stack([np.bincount(self.numbers, dscores[self.owner, c], size)
                                for c in range(dscores.shape[1])], axis=1)
        return sums


def bag_of_words(sets: Sequence[Answered], outputs: int, loss: str, metric: Metric) -> float:
    """The metric on the last of the sets, with the penalty and the steps that are best on the second; the first is
    learned from."""
    words = [[_named(record) for record in records] for records, _ in sets]
    occurrences = Counter(name for names in words[0] for name in set(names))
    known = {name: i for i, name in enumerate(sorted(name for name, n in occurrences.items() if n >= _LEAST))}
    given, *asked = [(_Features(names, known), truth) for names, (_, truth) in zip(words, sets, strict=True)]
    learned: ScoreLoss = make("task_loss", loss)
    found = [figures for penalty in _PENALTIES
             for figures in _fit(_Penalised(*given, len(known), outputs, penalty, learned), asked, metric)]
    return max(found, key=lambda figures: figures[0])[-1]


def bag_of_words_accuracy(train: Sequence[Labelled], dev: Sequence[Labelled], labels: Sequence[str],
                          test: Sequence[Labelled] | None = None) -> float:
    """The accuracy on `test`, or on `dev` without one, of texts with one label each."""
    numbers = {label: i for i, label in enumerate(labels)}
    sets = [(records, np.array([numbers[record.label] for record in records]))
            for records in (train, dev, dev if test is None else test)]
    metric: Metric = find("metric", "accuracy").named
    return bag_of_words(sets, len(labels), "cross_entropy", metric)


class _Penalised:
    """The loss of all texts with an L2 penalty on W; every batch is the whole training set."""

    main = "bag of words"
    losses: Mapping[str, float] = {main: 1.0}

    def __init__(self, features: _Features, targets: Targets, size: int, outputs: int, penalty: float, loss: ScoreLoss):
        self.features, self.targets, self.penalty, self.loss = features, targets, penalty, loss
        self.params = Parameters([ParamSpec("W", (size, outputs)), ParamSpec("b", (outputs,))], np.dtype(np.float64))

    def __getitem__(self, step: int) -> None:
        return None

    def micro_batches(self, batch: None) -> list[None]:
        return [batch]

    def scores(self, features: _Features) -> Array:
        return features.scores(self.params["W"], self.params["b"])

    def counts(self, part: None) -> Mapping[str, int]:
        return {self.main: self.targets.size}

    def add_gradients(self, part: None, grads: Gradients, key: DropoutKey | None,
                      factors: Mapping[str, float]) -> Mapping[str, float]:
        factor, W = factors[self.main], self.params["W"]
        total, cache = self.loss.forward(self.scores(self.features), self.targets)
        dscores = self.loss.backward(factor, cache)
        grads.add("W", self.features.dW(dscores, len(W)) + 2 * factor * self.penalty * self.targets.size * W)
        grads.add("b", dscores.sum(axis=0))
        return {self.main: total}


def _fit(learner: _Penalised, asked: Sequence[tuple[_Features, Targets]], metric: Metric) -> list[list[float]]:
    """The metric on each set in `asked`, after every ten steps."""
    state, found = State(total_steps=_STEPS), list[list[float]]()

    def after(result: StepResult, batch: None) -> None:
        if state.step % 10 == 0:
            found.append([metric(learner.loss.values(learner.scores(some)), truth) for some, truth in asked])

    update = Update(learner, AdamW(learner.params, weight_decay=0.0), Workers(1))
    Loop(update, learner, lambda step: _RATE * (1 - step / _STEPS), state).run(after)
    return found


def _named(record: Labelled) -> list[str]:
    """Words and word pairs of the text; for a pair of texts also the words of the second, and the common words."""
    table = normaliser(True, True)
    first = [word for chunk in table.chunks(record.text) for word in table.words(chunk)]
    names = [*first, *(f"{a} {b}" for a, b in pairwise(first))]
    if record.pair is None:
        return names
    second = [word for chunk in table.chunks(record.pair) for word in table.words(chunk)]
    names += [f"2:{word}" for word in second]
    return names + [f"both:{word}" for word in set(first) & set(second)]
