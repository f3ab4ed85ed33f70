"""Subject-verb agreement after Linzen, Dupoux & Goldberg (2016), by the number of attractors.

An attractor is a noun between subject and verb that has the other number: the *keys* to the cabinet *are* here. The
verb is masked, and the model is right if it finds the true form more likely than the other form. A tie counts one
half. Verbs whose two forms are not both single, different pieces of the vocabulary are left out and counted, because
forms of several pieces would need another score.

The data are read by formats/agreement.py.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.arrays import Array, IntArray
from ...core.model import MiniBERT
from ...errors import DataError
from ...inference.inputs import require_vocabulary
from ...text.tokenizer import Tokenizer
from ...training.workers import workers
from ..formats.agreement import AgreementItem
from ..ngrams import NgramCounts
from ..result import Result
from ..samples import sampled
from ..statistics import Interval, wilson_interval
from .minimal_pairs import pair_wins
from .pseudo_likelihood import FloatArray, ProgressCallback, read_sequences, single_piece, window


@dataclass(frozen=True)
class AttractorScore:
    """The accuracy of each scorer on the sentences with this number of attractors; None stands for all sentences."""

    attractors: int | None
    sentences: int
    left_out: int
    accuracy: dict[str, Interval]


@dataclass(frozen=True)
class AgreementReport(Result):
    """The accuracy of the model and of the baselines, in total and by number of attractors."""

    total: AttractorScore
    by_attractors: list[AttractorScore]
    majority: str                 # the more frequent number of the verbs
    windowed: int                 # sentences longer than the model's maximum: only the part around the verb was read


def agreement(model: MiniBERT, tokenizer: Tokenizer, items: Sequence[AgreementItem], *,
              counts: NgramCounts | None = None, max_samples: int | None = None, seed: int = 0, threads: int = 0,
              progress: ProgressCallback | None = None) -> AgreementReport:
    """Score all items, or `max_samples` of them drawn by the seed.

    Baselines: `frequent`, the more frequent form by `counts`, or without them in the given sentences with the verbs
    removed; `bigram`, the form that fits its neighbours better, if there are counts; `majority`, the more frequent
    number.
    """
    require_vocabulary(model, tokenizer)
    chosen = sampled(items, max_samples, seed, "agreement")
    forms = [(single_piece(tokenizer, item.right), single_piece(tokenizer, item.other)) for item in chosen]
    kept = [number for number, pair in enumerate(forms) if None not in pair and pair[0] != pair[1]]
    if not kept:
        raise DataError(f"None of the {len(chosen)} verbs has two forms that are single pieces of the vocabulary.")
    asked, pieces = [chosen[i] for i in kept], np.array([forms[i] for i in kept], np.int64)      # (N, 2)
    sequences, places, windowed = _masked(asked, tokenizer, model.config.max_seq_length - tokenizer.template.added())
    logits_of = np.zeros((len(kept), 2))

    def read(logits: Array, numbers: IntArray) -> None:
        logits_of[numbers] = np.take_along_axis(logits, pieces[numbers], axis=1)

    with workers(threads) as team:
        read_sequences(model, sequences, places, read, team, progress)
    singular = [item.singular for item in asked]
    most = singular.count(True) >= singular.count(False)
    wins = {"model": pair_wins(logits_of[:, 0], logits_of[:, 1]),
            "frequent": _frequent(asked, pieces, counts),
            **({} if counts is None else {"bigram": _by_neighbours(sequences, places, pieces, counts)}),
            "majority": np.array([0.5 if number is None else float(number == most) for number in singular])}
    of, of_all = np.array([item.attractors for item in asked]), np.array([item.attractors for item in chosen])

    def scored(attractors: int | None) -> AttractorScore:
        here = np.ones(len(of), bool) if attractors is None else of == attractors
        count, whole = int(here.sum()), len(of_all) if attractors is None else int((of_all == attractors).sum())
        accuracy = {scorer: wilson_interval(float(values[here].sum()), count) for scorer, values in wins.items()}
        return AttractorScore(attractors, count, whole - count, accuracy)

    return AgreementReport(scored(None), [scored(n) for n in np.unique(of).tolist()],
                           "singular" if most else "plural", windowed)


def _masked(items: Sequence[AgreementItem], tokenizer: Tokenizer,
            room: int) -> tuple[list[list[int]], list[int], int]:
    sequences, places, windowed = [], [], 0
    for item in items:
        before, after = tokenizer.ids(item.before), tokenizer.word_ids(item.after)
        whole = [*before, tokenizer.vocabulary.mask, *after]
        ids, place = window(whole, len(before), room)
        windowed += len(whole) > room
        sequences.append(tokenizer.with_special(ids))
        places.append(len(tokenizer.template.before) + place)
    return sequences, places, windowed


def _frequent(items: Sequence[AgreementItem], pieces: IntArray, counts: NgramCounts | None) -> FloatArray:
    if counts is not None:
        times = counts.counts[pieces]
    else:                                 # count words of the sentences, which do not contain the masked verbs
        words = Counter(word for item in items for part in (item.before, item.after) for word in part.split())
        times = np.array([[words[item.right], words[item.other]] for item in items], np.float64)
    return pair_wins(times[:, 0], times[:, 1])


def _by_neighbours(sequences: list[list[int]], places: list[int], pieces: IntArray, counts: NgramCounts) -> FloatArray:
    """Compare p(form | previous word) p(next word | form) of the two forms."""
    before, after = (np.array([ids[place + step] for ids, place in zip(sequences, places, strict=True)])
                     for step in (-1, 1))
    logs = [np.log(counts.bigram(before, form)) + np.log(counts.bigram(form, after)) for form in pieces.T]
    return pair_wins(logs[0], logs[1])
