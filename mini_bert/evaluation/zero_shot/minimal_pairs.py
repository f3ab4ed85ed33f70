"""Grammar by minimal pairs: how often a model finds the grammatical sentence more likely.

    accuracy = share of pairs with score(good) > score(bad); a tie counts one half

The score is what the model can say of a text, a pseudo-log-likelihood for one that fills masks: see text_scores.py.
Nothing is trained. The baselines on the same pairs are a unigram scorer, which ignores word order, a bigram scorer,
which sees neighbours, and chance, one half.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

import numpy as np

from ...core.model import MiniBERT
from ...errors import DataError, InputError
from ...text.tokenizer import Tokenizer
from ..formats.minimal_pairs import MinimalPair
from ..ngrams import NgramCounts
from ..result import Result
from ..samples import sampled
from ..statistics import Interval, wilson_interval
from .pseudo_likelihood import FloatArray, ProgressCallback
from .text_scores import text_scores

CHANCE = 0.5
_TIED = 1e-6                  # relative difference of log-likelihoods that rounding can cause


@dataclass(frozen=True)
class GroupScore:
    """The accuracy on a paradigm or phenomenon by scorer: token, word, unigram, bigram."""

    name: str
    phenomenon: str
    pairs: int
    accuracy: dict[str, Interval]


@dataclass(frozen=True)
class MinimalPairsReport(Result):
    """The average over paradigms with its interval, and the accuracy by paradigm and by phenomenon."""

    also, chance = ("chance",), CHANCE

    average: dict[str, Interval]
    paradigms: list[GroupScore]
    phenomena: list[GroupScore]
    pairs: int
    ties: int                     # pairs that the `token` scorer finds equally likely
    windowed: int                 # sentences longer than the model's maximum
    unknown: int                  # sentences with a word unknown to the tokenizer
    left_out: int = 0             # pairs with a sentence without pieces


def minimal_pairs(model: MiniBERT, tokenizer: Tokenizer, pairs: Sequence[MinimalPair], *,
                  whole_words: bool = False, counts: NgramCounts | None = None, max_samples: int | None = None,
                  seed: int = 0, threads: int = 0, progress: ProgressCallback | None = None) -> MinimalPairsReport:
    """Score all pairs, or at most `max_samples` of each paradigm, drawn by the seed.

    A pair with a sentence without pieces is left out. The scorer `token` masks one piece at a time; with `whole_words`
    there is also `word`, which masks the rest of the word as well. The unigram and bigram scorers need `counts`.
    """
    drawn = sample_paradigms(pairs, max_samples, seed)
    chosen, texts = _usable(drawn, tokenizer)
    found = text_scores(model, tokenizer, texts, variants=("token", "word") if whole_words else ("token",),
                        threads=threads, progress=progress)
    scores = found.totals | (counts.log_likelihoods(tokenizer, texts) if counts is not None else {})
    wins = {scorer: pair_wins(totals[::2], totals[1::2]) for scorer, totals in scores.items()}
    paradigms = _grouped([(pair.paradigm, pair.phenomenon) for pair in chosen], wins)
    phenomena = _grouped([(pair.phenomenon, pair.phenomenon) for pair in chosen], wins)
    average = {scorer: average_interval([group.accuracy[scorer] for group in paradigms]) for scorer in wins}
    return MinimalPairsReport(average, paradigms, phenomena, len(chosen), int((wins["token"] == 0.5).sum()),
                              found.windowed, found.unknown, len(drawn) - len(chosen))


def ngram_averages(tokenizer: Tokenizer, pairs: Sequence[MinimalPair], counts: NgramCounts) -> dict[str, Interval]:
    """The average over paradigms of the unigram and the bigram scorer alone."""
    chosen, texts = _usable(pairs, tokenizer)
    wins = {scorer: pair_wins(totals[::2], totals[1::2])
            for scorer, totals in counts.log_likelihoods(tokenizer, texts).items()}
    paradigms = _grouped([(pair.paradigm, pair.phenomenon) for pair in chosen], wins)
    return {scorer: average_interval([group.accuracy[scorer] for group in paradigms]) for scorer in wins}


def _usable(drawn: Sequence[MinimalPair], tokenizer: Tokenizer) -> tuple[list[MinimalPair], list[str]]:
    """The pairs whose sentences have pieces, and these sentences, good and bad in turn."""
    chosen = [pair for pair in drawn if tokenizer.ids(pair.good) and tokenizer.ids(pair.bad)]
    if not chosen:
        raise DataError(f"In none of the {len(drawn)} minimal pairs do both sentences have pieces of the vocabulary.")
    return chosen, [text for pair in chosen for text in (pair.good, pair.bad)]


def sample_paradigms(pairs: Sequence[MinimalPair], max_samples: int | None, seed: int) -> list[MinimalPair]:
    """At most `max_samples` pairs of each paradigm, in the original order."""
    if not pairs:
        raise InputError("There are no minimal pairs to score.")
    numbers: dict[str, list[int]] = {}
    for number, pair in enumerate(pairs):
        numbers.setdefault(pair.paradigm, []).append(number)
    kept = [number for paradigm, own in numbers.items()
            for number in sampled(own, max_samples, seed, "minimal pairs", paradigm)]
    return [pairs[number] for number in sorted(kept)]


def pair_wins(good: FloatArray, bad: FloatArray) -> FloatArray:
    """1 where `good` is higher, 0 where `bad` is, one half where they are equal up to rounding."""
    difference = good - bad
    tied = np.abs(difference) <= _TIED * np.maximum(np.abs(good), np.abs(bad))
    result: FloatArray = np.where(tied, 0.5, difference > 0)
    return result


def average_interval(shares: Sequence[Interval]) -> Interval:
    """The unweighted mean of the shares of independent groups, with its interval."""
    middle = sum(found.mean for found in shares) / len(shares)
    # lower and upper side separately, because the interval of a share near 1 is asymmetric
    below = hypot(*(found.mean - found.low for found in shares if found.low is not None)) / len(shares)
    above = hypot(*(found.high - found.mean for found in shares if found.high is not None)) / len(shares)
    return Interval(middle, middle - below, middle + above, sum(found.values for found in shares))


def _grouped(names: list[tuple[str, str]], wins: dict[str, FloatArray]) -> list[GroupScore]:
    groups = sorted(set(names), key=lambda name: (name[1], name[0]))
    number = {name: i for i, name in enumerate(groups)}
    of = np.array([number[name] for name in names])
    sizes = np.bincount(of, minlength=len(groups))
    sums = {scorer: np.bincount(of, values, len(groups)) for scorer, values in wins.items()}
    return [GroupScore(*name, int(sizes[i]), {scorer: wilson_interval(float(total[i]), int(sizes[i]))
                                              for scorer, total in sums.items()})
            for i, name in enumerate(groups)]
