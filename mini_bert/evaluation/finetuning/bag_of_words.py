"""The baseline of text classification: logistic regression on which words, and pairs of words, a text has.

    p(label | text) = softmax(b + sum over the text's features f of W_f)      loss = mean cross-entropy + l2 |W|^2

What a model of sequences must beat. The strength of the penalty is chosen on the development set, which favours
this baseline.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ...core.arrays import Array
from ...core.ops.cross_entropy import cross_entropy_backward, cross_entropy_forward
from ...core.params import Parameters, ParamSpec
from ...text.normalise import replacements
from ...training.optimiser import AdamW
from ..formats.tables import Labelled

_STEPS, _RATE = 150, 0.05
_PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3)
_LEAST = 2                    # occurrences of a feature that counts


class _Features:
    """Each text's distinct features as numbers, all texts in one array."""

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
        """scores = b + sum of W_f: each feature of a text gets the text's gradient."""
        sums: Array = np.stack([np.bincount(self.numbers, dscores[self.owner, c], size)
                                for c in range(dscores.shape[1])], axis=1)
        return sums


def bag_of_words_accuracy(train: Sequence[Labelled], dev: Sequence[Labelled], labels: Sequence[str]) -> float:
    """The accuracy on `dev` of the best penalty."""
    words = [[_named(record) for record in part] for part in (train, dev)]
    occurrences = Counter(name for names in words[0] for name in set(names))
    known = {name: i for i, name in enumerate(sorted(name for name, n in occurrences.items() if n >= _LEAST))}
    given, asked = (_Features(part, known) for part in words)
    numbers = {label: i for i, label in enumerate(labels)}
    targets, truth = (np.array([numbers[record.label] for record in part]) for part in (train, dev))
    return max(_fit(given, targets, asked, truth, len(known), len(labels), penalty) for penalty in _PENALTIES)


def _fit(given: _Features, targets: npt.NDArray[np.int64], asked: _Features, truth: npt.NDArray[np.int64], size: int,
         labels: int, penalty: float) -> float:
    params = Parameters([ParamSpec("W", (size, labels)), ParamSpec("b", (labels,))], np.dtype(np.float64))
    grads, optimiser = params.zeros_like(), AdamW(params, _RATE, weight_decay=0.0)
    best = 0.0
    for step in range(_STEPS):
        _, cache = cross_entropy_forward(given.scores(params["W"], params["b"]), targets)
        dscores = cross_entropy_backward(1 / len(targets), cache)
        grads["W"][...] = given.dW(dscores, size) + 2 * penalty * params["W"]
        grads["b"][...] = dscores.sum(axis=0)
        optimiser.step(grads, learning_rate=_RATE * (1 - step / _STEPS))
        if step % 10 == 9:
            best = max(best, float((asked.scores(params["W"], params["b"]).argmax(axis=1) == truth).mean()))
    return best


def _named(record: Labelled) -> list[str]:
    """Words and pairs of neighbours; those of a pair of texts are told apart, and the words they share are features."""
    table = replacements(True, True)
    first = [word for chunk in table.chunks(record.text) for word in table.words(chunk)]
    names = [*first, *(f"{a} {b}" for a, b in pairwise(first))]
    if record.pair is None:
        return names
    second = [word for chunk in table.chunks(record.pair) for word in table.words(chunk)]
    names += [f"2:{word}" for word in second]
    return names + [f"both:{word}" for word in set(first) & set(second)]
