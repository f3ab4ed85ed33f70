"""Subject-verb agreement after Linzen, Dupoux & Goldberg (2016), by the number of attractors.

An attractor is a noun between subject and verb that has the other number: the *keys* to the cabinet *are* here. The
verb is masked, and the model is right if it finds the true form more likely than the other form. A causal model is
asked for the next token after the words before the verb; a model that finds replaced tokens, which of the two forms
looks more original in the sentence. A tie counts one half. Verbs whose two forms are not both single, different pieces
of the vocabulary are left out and counted, because forms of several pieces would need another score.

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
from ...workers import workers
from ..formats.agreement import AgreementItem
from ..ngrams import NgramCounts
from ..result import Result
from ..samples import sampled
from ..statistics import Interval, wilson_interval
from .causal_likelihood import next_token_logits
from .minimal_pairs import pair_wins
from .original_tokens import token_log_odds
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
    asked, pieces = _askable(chosen, tokenizer)
    sequences, places, windowed = _masked(asked, tokenizer, model.config.max_seq_length - tokenizer.template.added())
    if model.modules.causal:
        scores = next_token_logits(model, tokenizer, [tokenizer.ids(item.before) for item in asked], pieces,
                                   threads=threads, progress=progress)
    elif model.modules.finds_replaced:
        scores = _originality(model, sequences, places, pieces, threads, progress)
    else:
        scores = _mask_logits(model, sequences, places, pieces, threads, progress)
    singular = [item.singular for item in asked]
    most = singular.count(True) >= singular.count(False)
    wins = {"model": pair_wins(scores[:, 0], scores[:, 1]),
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


def ngram_agreement(tokenizer: Tokenizer, items: Sequence[AgreementItem], counts: NgramCounts) -> dict[str, Interval]:
    """The accuracy of the baselines `frequent` and `bigram` alone, with whole sentences."""
    asked, pieces = _askable(items, tokenizer)
    sequences, places, _ = _masked(asked, tokenizer, max(len(item.before) + len(item.after) + 2 for item in asked))
    return {name: wilson_interval(float(wins.sum()), len(asked)) for name, wins in (
        ("frequent", _frequent(asked, pieces, counts)), ("bigram", _by_neighbours(sequences, places, pieces, counts)))}


def _askable(items: Sequence[AgreementItem], tokenizer: Tokenizer) -> tuple[list[AgreementItem], IntArray]:
    """The items whose two forms are single, different pieces, and those pieces (N, 2)."""
    forms = [(single_piece(tokenizer, item.right), single_piece(tokenizer, item.other)) for item in items]
    kept = [number for number, pair in enumerate(forms) if None not in pair and pair[0] != pair[1]]
    if not kept:
        raise DataError(f"None of the {len(items)} verbs has two forms that are single pieces of the vocabulary.")
    return [items[i] for i in kept], np.array([forms[i] for i in kept], np.int64)


def _mask_logits(model: MiniBERT, sequences: list[list[int]], places: list[int], pieces: IntArray, threads: int,
                 progress: ProgressCallback | None) -> FloatArray:
    """The logits (N, 2) of both forms at the mask."""
    found = np.zeros(pieces.shape)

    def read(logits: Array, numbers: IntArray) -> None:
        found[numbers] = np.take_along_axis(logits, pieces[numbers], axis=1)

    with workers(threads) as team:
        read_sequences(model, sequences, places, read, team, progress)
    return found


def _originality(model: MiniBERT, sequences: list[list[int]], places: list[int], pieces: IntArray, threads: int,
                 progress: ProgressCallback | None) -> FloatArray:
    """The log-odds (N, 2) that each form, put into the sentence, is original."""
    rows = [[*ids[:place], form, *ids[place + 1 :]] for ids, place, both in zip(sequences, places, pieces.tolist(),
                                                                                strict=True) for form in both]
    odds = token_log_odds(model, rows, threads=threads, progress=progress)
    return np.array([row[places[i // 2]] for i, row in enumerate(odds)]).reshape(-1, 2)


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
