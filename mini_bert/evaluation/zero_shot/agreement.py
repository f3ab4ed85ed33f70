"""Agreement of verb and subject, after Linzen, Dupoux & Goldberg (2016), by the number of attractors.

An attractor is a noun between subject and verb that has the other number: the *keys* to the cabinet *are* here. The
verb is masked, and the model is right if it finds the verb's true form likelier than its other one. A tie counts one
half. Two forms are compared only if both are one piece of the vocabulary, and not the same one; the others are left
out and counted, as forms of several pieces would be scored by another measure.

The data are read by formats/agreement.py.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.arrays import Array, IntArray
from ...core.model import MiniBERT
from ...errors import DataError
from ...inference.inputs import require_vocabulary
from ...text.wordpiece.tokenizer import WordPieceTokenizer
from ...training.workers import workers
from ..formats.agreement import AgreementItem
from ..ngrams import NgramCounts
from ..samples import sampled
from ..statistics import Interval, share
from .minimal_pairs import won
from .pseudo_likelihood import FloatArray, Progress, read_sequences, single_piece, window


@dataclass(frozen=True)
class AttractorScore:
    """The accuracies on sentences with so many attractors, by scorer; None is all of them."""

    attractors: int | None
    sentences: int
    left_out: int
    accuracy: dict[str, Interval]

    def to_dict(self) -> dict[str, Any]:
        return {"attractors": self.attractors, "sentences": self.sentences, "left_out": self.left_out,
                "accuracy": {scorer: found._asdict() for scorer, found in self.accuracy.items()}}


@dataclass(frozen=True)
class AgreementReport:
    """The accuracy of the model and the baselines, in all and by attractors."""

    total: AttractorScore
    by_attractors: list[AttractorScore]
    majority: str                 # the number that more of the verbs have
    windowed: int                 # sentences longer than the model takes: the part around the verb was read

    def to_dict(self) -> dict[str, Any]:
        return {"total": self.total.to_dict(), "by_attractors": [part.to_dict() for part in self.by_attractors],
                "majority": self.majority, "windowed": self.windowed}


def agreement(model: MiniBERT, tokenizer: WordPieceTokenizer, items: Sequence[AgreementItem], *,
              counts: NgramCounts | None = None, max_samples: int | None = None, seed: int = 0, threads: int = 0,
              progress: Progress | None = None) -> AgreementReport:
    """Score all items, or `max_samples` of them drawn by the seed.

    Baselines: the form that is more `frequent`, by `counts` or else in the sentences without the verbs asked for;
    with counts, the form that its neighbours make likelier (`bigram`); the number of most verbs (`majority`).
    """
    require_vocabulary(model, tokenizer)
    chosen = sampled(items, max_samples, seed, "agreement")
    forms = [(single_piece(tokenizer, item.right), single_piece(tokenizer, item.other)) for item in chosen]
    kept = [number for number, pair in enumerate(forms) if None not in pair and pair[0] != pair[1]]
    if not kept:
        raise DataError(f"None of the {len(chosen)} verbs has two forms that are one piece each of the vocabulary.")
    asked, pieces = [chosen[i] for i in kept], np.array([forms[i] for i in kept], np.int64)      # (N, 2)
    sequences, places, windowed = _masked(asked, tokenizer, model.config.max_seq_length - 2)
    logits_of = np.zeros((len(kept), 2))

    def read(logits: Array, numbers: IntArray) -> None:
        logits_of[numbers] = np.take_along_axis(logits, pieces[numbers], axis=1)

    with workers(threads) as team:
        read_sequences(model, sequences, places, read, team, progress)
    singular = [item.singular for item in asked]
    most = singular.count(True) >= singular.count(False)
    wins = {"model": won(logits_of[:, 0], logits_of[:, 1]),
            "frequent": _frequent(asked, pieces, counts),
            **({} if counts is None else {"bigram": _by_neighbours(sequences, places, pieces, counts)}),
            "majority": np.array([0.5 if number is None else float(number == most) for number in singular])}
    of, of_all = np.array([item.attractors for item in asked]), np.array([item.attractors for item in chosen])

    def scored(attractors: int | None) -> AttractorScore:
        here = np.ones(len(of), bool) if attractors is None else of == attractors
        count, whole = int(here.sum()), len(of_all) if attractors is None else int((of_all == attractors).sum())
        return AttractorScore(attractors, count, whole - count,
                              {scorer: share(float(values[here].sum()), count) for scorer, values in wins.items()})

    return AgreementReport(scored(None), [scored(n) for n in np.unique(of).tolist()],
                           "singular" if most else "plural", windowed)


def _masked(items: Sequence[AgreementItem], tokenizer: WordPieceTokenizer,
            room: int) -> tuple[list[list[int]], list[int], int]:
    sequences, places, windowed = [], [], 0
    for item in items:
        before, after = tokenizer.ids(item.before), tokenizer.ids(item.after)
        whole = [*before, tokenizer.vocabulary.mask, *after]
        ids, place = window(whole, len(before), room)
        windowed += len(whole) > room
        sequences.append(tokenizer.with_special(ids))
        places.append(place + 1)
    return sequences, places, windowed


def _frequent(items: Sequence[AgreementItem], pieces: IntArray, counts: NgramCounts | None) -> FloatArray:
    if counts is not None:
        times = counts.counts[pieces]
    else:                                 # the verbs that are asked for are in no text here
        words = Counter(word for item in items for part in (item.before, item.after) for word in part.split())
        times = np.array([[words[item.right], words[item.other]] for item in items], np.float64)
    return won(times[:, 0], times[:, 1])


def _by_neighbours(sequences: list[list[int]], places: list[int], pieces: IntArray, counts: NgramCounts) -> FloatArray:
    """By the probability behind the word before, times that of the word after behind the form."""
    before, after = (np.array([ids[place + step] for ids, place in zip(sequences, places, strict=True)])
                     for step in (-1, 1))
    logs = [np.log(counts.after(before, form)) + np.log(counts.after(form, after)) for form in pieces.T]
    return won(logs[0], logs[1])
