"""Grammar by minimal pairs: how often a model finds the grammatical sentence the likelier one.

    accuracy = share of pairs with PLL(good) > PLL(bad); a tie counts one half

Nothing is trained. Beside the model stand scorers that know no grammar beyond counts, on the same pairs: a unigram
one, which sees no order at all, and a bigram one, which sees neighbours; and chance, one half.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.arrays import IntArray
from ..core.model import MiniBERT
from ..errors import DataError, InputError
from ..randomness import generator
from ..text.corpus import MANIFEST, Corpus
from ..text.sources import ReadingReport, find_sources, paragraphs
from ..text.tokenizer import WordPieceTokenizer
from .formats.minimal_pairs import MinimalPair
from .pseudo_likelihood import FloatArray, Progress, pseudo_log_likelihoods
from .statistics import Interval, share

CHANCE = 0.5
_TIED = 1e-6                  # of a log-likelihood: what the order of a sum may change
_SHARE_OF_BIGRAMS = 0.7       # of a mixture with single pieces, as for masked tokens
_BLOCK, _MERGED = 1 << 20, 16             # characters tokenised at a time; blocks counted before they are joined


class NgramCounts:
    """Counts of pieces and of pairs of neighbours in a text, as probabilities that are never zero."""

    def __init__(self, blocks: Iterable[IntArray], vocab_size: int):
        self.vocab_size, self.counts = vocab_size, np.zeros(vocab_size)
        self.invalid_bytes = 0            # of text files: replaced, as they were not UTF-8
        self._codes, self._times = np.zeros(0, np.int64), np.zeros(0)
        waiting = []
        for ids in blocks:
            self.counts += np.bincount(ids, minlength=vocab_size)
            whole = ids.astype(np.int64)
            waiting.append(np.unique(whole[:-1] * vocab_size + whole[1:], return_counts=True))
            if len(waiting) == _MERGED:
                self._merge(waiting)
                waiting = []
        self._merge(waiting)
        if not self.counts.any():
            raise DataError("There is no text to count pieces in.")

    def _merge(self, parts: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]) -> None:
        codes = np.concatenate([self._codes, *(codes for codes, _ in parts)])
        times = np.concatenate([self._times, *(times for _, times in parts)])
        self._codes, where = np.unique(codes, return_inverse=True)
        self._times = np.bincount(where, times, len(self._codes)).astype(np.float64)

    @classmethod
    def of(cls, names: Sequence[str | PathLike[str]], tokenizer: WordPieceTokenizer) -> "NgramCounts":
        """Of a prepared corpus' text for training, or of text files and folders."""
        if len(names) == 1 and (Path(names[0]) / MANIFEST).is_file():
            corpus = Corpus(names[0])
            corpus.require_vocabulary(tokenizer)
            return cls(corpus.stretches("train"), len(tokenizer))
        report = ReadingReport()
        counted = cls(_tokenised([str(name) for name in names], tokenizer, report), len(tokenizer))
        counted.invalid_bytes = report.invalid
        return counted

    def single(self, ids: IntArray) -> FloatArray:
        """The probability of each piece by frequency; one is added to every count."""
        found: FloatArray = (self.counts[ids] + 1) / (self.counts.sum() + self.vocab_size)
        return found

    def after(self, before: IntArray, ids: IntArray) -> FloatArray:
        """The probability of each piece behind another, mixed with that by frequency."""
        codes = before.astype(np.int64) * self.vocab_size + ids
        places = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
        times = np.where(self._codes[places] == codes, self._times[places], 0) if len(self._codes) else 0
        seen = self.counts[before]
        weight = np.where(seen > 0, _SHARE_OF_BIGRAMS, 0)
        mixed: FloatArray = weight * times / np.maximum(seen, 1) + (1 - weight) * self.single(ids)
        return mixed

    def log_likelihoods(self, tokenizer: WordPieceTokenizer, texts: Sequence[str]) -> dict[str, FloatArray]:
        """Of each text, by single pieces and by pairs; the first piece of a text is single in both."""
        ids, lengths = tokenizer.ids_array(texts)
        text = np.repeat(np.arange(len(texts)), lengths)
        unigram = np.log(self.single(ids))
        bigram = unigram.copy()
        inside = np.flatnonzero(text[1:] == text[:-1]) + 1
        bigram[inside] = np.log(self.after(ids[inside - 1], ids[inside]))
        return {name: np.bincount(text, logs, len(texts)).astype(np.float64)
                for name, logs in (("unigram", unigram), ("bigram", bigram))}


def _tokenised(names: list[str], tokenizer: WordPieceTokenizer, report: ReadingReport) -> Iterator[IntArray]:
    waiting, size = [], 0
    for paragraph in paragraphs(find_sources(names), report):
        if paragraph is not None:
            waiting.append(paragraph)
            size += len(paragraph)
        if size >= _BLOCK:
            yield tokenizer.ids_array(waiting)[0]
            waiting, size = [], 0
    if waiting:
        yield tokenizer.ids_array(waiting)[0]


@dataclass(frozen=True)
class GroupScore:
    """The accuracies on some of the pairs, by scorer: token, word, unigram, bigram."""

    name: str
    phenomenon: str
    pairs: int
    accuracy: dict[str, Interval]

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "phenomenon": self.phenomenon, "pairs": self.pairs,
                "accuracy": {scorer: found._asdict() for scorer, found in self.accuracy.items()}}


@dataclass(frozen=True)
class MinimalPairsReport:
    """The average over paradigms with its interval, and the accuracies by paradigm and by phenomenon."""

    average: dict[str, Interval]
    paradigms: list[GroupScore]
    phenomena: list[GroupScore]
    pairs: int
    ties: int                     # pairs that the model, masking pieces, finds equally likely
    windowed: int                 # sentences longer than the model takes
    unknown: int                  # sentences with a word that the tokenizer does not know

    def to_dict(self) -> dict[str, Any]:
        return {"average": {scorer: found._asdict() for scorer, found in self.average.items()}, "chance": CHANCE,
                "phenomena": [group.to_dict() for group in self.phenomena],
                "paradigms": [group.to_dict() for group in self.paradigms], "pairs": self.pairs, "ties": self.ties,
                "windowed": self.windowed, "unknown": self.unknown}


def minimal_pairs(model: MiniBERT, tokenizer: WordPieceTokenizer, pairs: Sequence[MinimalPair], *,
                  whole_words: bool = False, counts: NgramCounts | None = None, max_samples: int | None = None,
                  seed: int = 0, threads: int = 0, progress: Progress | None = None) -> MinimalPairsReport:
    """Score all pairs, or at most `max_samples` of each paradigm, drawn by the seed.

    The model masks pieces (`token`), and with `whole_words` words from the piece on (`word`) as well. The unigram
    and the bigram scorer need `counts`.
    """
    chosen = sampled(pairs, max_samples, seed)
    texts = [text for pair in chosen for text in (pair.good, pair.bad)]
    found = pseudo_log_likelihoods(model, tokenizer, texts, variants=("token", "word") if whole_words else ("token",),
                                   threads=threads, progress=progress)
    scores = found.totals | (counts.log_likelihoods(tokenizer, texts) if counts is not None else {})
    wins = {scorer: won(totals[::2], totals[1::2]) for scorer, totals in scores.items()}
    paradigms = _grouped([(pair.paradigm, pair.phenomenon) for pair in chosen], wins)
    phenomena = _grouped([(pair.phenomenon, pair.phenomenon) for pair in chosen], wins)
    average = {scorer: average_share([group.accuracy[scorer] for group in paradigms]) for scorer in wins}
    return MinimalPairsReport(average, paradigms, phenomena, len(chosen), int((wins["token"] == 0.5).sum()),
                              found.windowed, found.unknown)


def sampled(pairs: Sequence[MinimalPair], max_samples: int | None, seed: int) -> list[MinimalPair]:
    """At most `max_samples` pairs of each paradigm, in their order."""
    if not pairs:
        raise InputError("There are no minimal pairs to score.")
    numbers: dict[str, list[int]] = {}
    for number, pair in enumerate(pairs):
        numbers.setdefault(pair.paradigm, []).append(number)
    kept = [number for paradigm, own in numbers.items()
            for number in draw(own, max_samples, seed, "minimal pairs", paradigm)]
    return [pairs[number] for number in sorted(kept)]


def draw(numbers: Sequence[int], max_samples: int | None, seed: int, *purpose: str) -> list[int]:
    """At most `max_samples` of the numbers, in order; all of them for None."""
    if max_samples is not None and max_samples < 1:
        raise InputError(f"max_samples must be at least 1, not {max_samples}.")
    if max_samples is None or len(numbers) <= max_samples:
        return list(numbers)
    chosen: list[int] = generator(seed, *purpose).choice(np.array(numbers), max_samples, replace=False).tolist()
    return sorted(chosen)


def won(good: FloatArray, bad: FloatArray) -> FloatArray:
    """1 where the good one is likelier, 0 where the bad one is, one half where they are the same up to rounding."""
    difference = good - bad
    tied = np.abs(difference) <= _TIED * np.maximum(np.abs(good), np.abs(bad))
    result: FloatArray = np.where(tied, 0.5, difference > 0)
    return result


def average_share(shares: Sequence[Interval]) -> Interval:
    """The mean of shares of different groups, each counting the same; the errors of the groups are independent."""
    middle = sum(found.mean for found in shares) / len(shares)
    margin = sqrt(sum(found.margin**2 for found in shares)) / len(shares)
    return Interval(middle, middle - margin, middle + margin, sum(found.values for found in shares))


def _grouped(names: list[tuple[str, str]], wins: dict[str, FloatArray]) -> list[GroupScore]:
    groups = sorted(set(names), key=lambda name: (name[1], name[0]))
    number = {name: i for i, name in enumerate(groups)}
    of = np.array([number[name] for name in names])
    sizes = np.bincount(of, minlength=len(groups))
    sums = {scorer: np.bincount(of, values, len(groups)) for scorer, values in wins.items()}
    return [GroupScore(*name, int(sizes[i]), {scorer: share(float(total[i]), int(sizes[i]))
                                              for scorer, total in sums.items()})
            for i, name in enumerate(groups)]
