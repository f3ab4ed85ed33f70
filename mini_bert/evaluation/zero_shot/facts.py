"""Facts by cloze prompts, as LAMA asks them: The capital of Denmark is [MASK] .

The object of a fact is ranked among all pieces of the vocabulary except the special tokens. P@1 and P@10 are the
shares of prompts with the object among the first one and ten, MRR is the mean of 1 / rank. Pieces with equal scores
share their ranks, so constant scores gain nothing. The negated prompts are asked in the same way; a model that knows
the fact would answer them differently, so the report also says how often the first answer is the same.

Two more scores put these into perspective. `frequent` ranks the objects of a relation by how often they are correct
in the same data, ignoring the subject. `among_objects` is the model's P@1 when it only chooses among these objects.

A fact whose object is not a single piece of the vocabulary cannot be answered at one mask; it is left out and counted.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import NamedTuple

import numpy as np

from ...core.arrays import Array, IntArray
from ...core.model import MiniBERT
from ...errors import DataError
from ...text.tokenizer import Tokenizer
from ...workers import Workers, workers
from ..built_in import built_in_facts
from ..formats.lama import Fact, read_facts
from ..formats.minimal_pairs import data_files
from ..metrics import Ranks, target_ranks
from ..model_tokenizer import model_tokenizer
from ..result import Result
from ..samples import sampled
from ..statistics import Interval, over_seeds, wilson_interval
from .pseudo_likelihood import ProgressCallback, read_sequences, single_piece, window

_FIRST = 10                   # of P@10


class PromptScore(NamedTuple):
    """P@1, P@10 and MRR of a set of prompts."""

    p_at_1: Interval
    p_at_10: Interval
    mrr: float


@dataclass(frozen=True)
class RelationScore:
    """The scores of one relation; `negations` and `same_answer` are None if its facts have no negations."""

    relation: str
    facts: int
    left_out: int                 # objects that are not a single piece
    in_prompt: int                # objects that occur in their prompt and could be copied
    prompts: PromptScore
    negations: PromptScore | None
    same_answer: Interval | None          # of a prompt and its negation
    frequent: PromptScore
    among_objects: Interval


@dataclass(frozen=True)
class FactsReport(Result):
    """All relations, and the means over them; every relation has the same weight."""

    relations: list[RelationScore]
    means: dict[str, Interval]
    facts: int
    left_out: int
    left_out_relations: list[str]         # relations without any object that is a single piece
    windowed: int                         # prompts longer than the model's maximum: the part around the mask was read


def probe_factual_knowledge(model: MiniBERT, tokenizer: Tokenizer | None = None,
                            names: Sequence[str | PathLike[str]] | None = None, *, max_samples: int | None = None,
                            seed: int = 0, threads: int = 0, progress: ProgressCallback | None = None) -> FactsReport:
    """Ask for the facts of files, or of all .jsonl files in folders; at most `max_samples` of each file.

    The tokenizer is by default that of the loaded model, and the facts are a small built-in set.
    """
    tokenizer = model_tokenizer(model, tokenizer)
    files = [(path.stem, read_facts(path)) for path in data_files(names)] if names is not None \
        else list(built_in_facts().items())
    chosen: dict[str, list[Fact]] = {}
    for relation, facts in files:
        chosen.setdefault(relation, []).extend(sampled(facts, max_samples, seed, "facts", relation))
    asked = {relation: [fact for fact in facts if single_piece(tokenizer, fact.object) is not None]
             for relation, facts in chosen.items()}
    texts = [text for facts in asked.values() for fact in facts for text in _texts(fact)]
    if not texts:
        raise DataError("No object of these facts is a single piece of the vocabulary.")
    relations, done = [], 0
    with workers(threads) as team:
        for relation, facts in asked.items():
            if facts:
                answers = _answers(model, tokenizer, facts, team)
                relations.append(_scored(relation, facts, len(chosen[relation]) - len(facts), answers, tokenizer))
            done += sum(len(_texts(fact)) for fact in facts)
            if progress is not None:
                progress(done, len(texts))
    kept = sum(map(len, asked.values()))
    return FactsReport(relations, _means(relations), kept, sum(map(len, chosen.values())) - kept,
                       [relation for relation, facts in asked.items() if not facts],
                       sum(len(tokenizer.ids(text)) + tokenizer.template.added() > model.config.max_seq_length
                           for text in texts))


def _texts(fact: Fact) -> list[str]:
    return [fact.prompt] if fact.negation is None else [fact.prompt, fact.negation]


class _Answer(NamedTuple):
    above: int                # ordinary pieces with a higher score than the object
    equal: int                # with the same score, including the object
    top: int                  # the piece with the highest score
    among_objects: float      # 1 if the object ranks first among the relation's objects; a tie counts in part


def _answers(model: MiniBERT, tokenizer: Tokenizer, facts: list[Fact],
             team: Workers) -> dict[tuple[str, str], _Answer]:
    """The model's answers to the prompts of one relation, by prompt and object."""
    ordinary, template = tokenizer.vocabulary.ordinary_ids, tokenizer.template
    room = model.config.max_seq_length - template.added()
    asks = [(text, fact.object) for fact in facts for text in _texts(fact)]
    pieces = np.array([single_piece(tokenizer, answer) for _, answer in asks], np.int64)
    objects = np.unique(pieces)
    place, place_of_object = np.searchsorted(ordinary, pieces), np.searchsorted(objects, pieces)
    above, equal, top = (np.zeros(len(asks), np.int64) for _ in range(3))
    among = np.zeros(len(asks))

    def read(logits: Array, numbers: IntArray) -> None:
        scores = logits[:, ordinary]
        above[numbers], equal[numbers] = target_ranks(scores, place[numbers])
        top[numbers] = ordinary[scores.argmax(axis=1)]
        among[numbers] = target_ranks(logits[:, objects], place_of_object[numbers]).found(1)

    whole = [tokenizer.ids(tokenizer.with_mask(text)) for text, _ in asks]
    parts = [window(ids, ids.index(tokenizer.vocabulary.mask), room) for ids in whole]
    read_sequences(model, [tokenizer.with_special(ids) for ids, _ in parts],
                   [len(template.before) + place for _, place in parts], read, team)
    return dict(zip(asks, map(_Answer, above.tolist(), equal.tolist(), top.tolist(), among.tolist()), strict=True))


def _scored(relation: str, facts: list[Fact], left_out: int, answers: dict[tuple[str, str], _Answer],
            tokenizer: Tokenizer) -> RelationScore:
    own = [answers[fact.prompt, fact.object] for fact in facts]
    negated = [(answers[fact.prompt, fact.object], answers[fact.negation, fact.object])
               for fact in facts if fact.negation is not None]
    pieces = [single_piece(tokenizer, fact.object) for fact in facts]
    by_frequency = {piece: rank for rank, (piece, _) in enumerate(Counter(pieces).most_common(), 1)}
    return RelationScore(
        relation, len(facts), left_out,
        sum(piece in tokenizer.ids(fact.prompt) for fact, piece in zip(facts, pieces, strict=True)),
        _ranked(own), _ranked([answer for _, answer in negated]) if negated else None,
        wilson_interval(sum(a.top == b.top for a, b in negated), len(negated)) if negated else None,
        _scores(Ranks(np.array([by_frequency[piece] - 1 for piece in pieces]), np.ones(len(pieces), np.int64))),
        wilson_interval(sum(answer.among_objects for answer in own), len(facts)))


def _ranked(answers: Sequence[_Answer]) -> PromptScore:
    return _scores(Ranks(np.array([answer.above for answer in answers]),
                         np.array([answer.equal for answer in answers])))


def _scores(ranks: Ranks) -> PromptScore:
    """Pieces with equal scores get the mean of their ranks."""
    count = len(ranks.above)
    shares = [wilson_interval(min(float(ranks.found(top).sum()), count), count) for top in (1, _FIRST)]
    return PromptScore(shares[0], shares[1], float((1 / (ranks.above + (ranks.equal + 1) / 2)).mean()))


def _means(relations: list[RelationScore]) -> dict[str, Interval]:
    """Means over relations, with intervals from the variation between relations."""
    values = {"same_answer": [r.same_answer.mean for r in relations if r.same_answer is not None],
              "among_objects": [r.among_objects.mean for r in relations]}
    for prefix, scores in (("", [r.prompts for r in relations]), ("frequent_", [r.frequent for r in relations]),
                           ("negated_", [r.negations for r in relations if r.negations is not None])):
        values |= {f"{prefix}p_at_1": [score.p_at_1.mean for score in scores],
                   f"{prefix}p_at_10": [score.p_at_10.mean for score in scores],
                   f"{prefix}mrr": [score.mrr for score in scores]}
    return {name: over_seeds(found) for name, found in values.items() if found}

