"""Metrics of answers to questions: exact match, and F1 of their words."""

import re
import string
from collections import Counter
from collections.abc import Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")


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
