"""Metrics of tasks: macro F1 of labels, exact match and F1 of answers."""

import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def macro_f1(predicted: IntArray, true: IntArray, labels: int) -> float:
    """The mean F1 over labels; a label that neither occurs nor is predicted is left out."""
    scores = []
    for label in range(labels):
        right = int(((predicted == label) & (true == label)).sum())
        together = int((predicted == label).sum() + (true == label).sum())
        if together:
            scores.append(2 * right / together)
    return float(np.mean(scores)) if scores else 0.0


def normalised_answer(text: str) -> list[str]:
    """The words that SQuAD compares: in lower case, without punctuation and articles."""
    plain = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return _ARTICLES.sub(" ", plain).split()


def exact_match(answer: str, right: Sequence[str]) -> float:
    return float(any(normalised_answer(answer) == normalised_answer(text) for text in right))


def answer_f1(answer: str, right: Sequence[str]) -> float:
    """The F1 of words with the best matching right answer."""
    return max((_overlap(normalised_answer(answer), normalised_answer(text)) for text in right), default=0.0)


def _overlap(ours: list[str], theirs: list[str]) -> float:
    if not ours or not theirs:
        return float(ours == theirs)
    common = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * common / (len(ours) + len(theirs))
