"""Facts by cloze prompts, as LAMA asks them: The capital of Denmark is [MASK] .

The object of a fact is looked for among all pieces of the vocabulary but the special tokens. P@1 and P@10 are the
shares of prompts with the object among the first one and ten, MRR the mean of 1 / rank. Pieces with equal scores
share the places that they cover, so a model that knows nothing gains nothing by it. The same is asked of the negated
prompts, where knowledge would give another answer: beside it stands how often the first answer is the same.

Two figures keep these in proportion. `frequent` ranks a relation's objects by how often they are right in the very
same data, whatever the subject. `among_objects` is the model's P@1 if it need only choose among these objects.

A fact whose object is not one piece of the vocabulary cannot be answered by one mask; it is left out and counted.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import Array, IntArray
from ...core.model import MiniBERT
from ...errors import DataError
from ...inference.inputs import require_vocabulary
from ...text.wordpiece.tokenizer import WordPieceTokenizer
from ...training.workers import Workers, workers
from ..formats.lama import Fact, read_facts
from ..formats.minimal_pairs import data_files
from ..metrics import Ranks, target_ranks
from ..samples import sampled
from ..statistics import Interval, over_seeds, share
from .pseudo_likelihood import Progress, read_sequences, single_piece, window

_FIRST = 10                   # of P@10


class PromptScore(NamedTuple):
    """P@1, P@10 and MRR of some prompts."""

    first: Interval
    first_ten: Interval
    reciprocal: float

    def to_dict(self) -> dict[str, Any]:
        return {"p_at_1": self.first._asdict(), "p_at_10": self.first_ten._asdict(), "mrr": self.reciprocal}


@dataclass(frozen=True)
class RelationScore:
    """One relation's figures. What has no negations has None for them."""

    relation: str
    facts: int
    left_out: int                 # objects that are not one piece
    in_prompt: int                # objects that stand in their prompt, to be copied
    prompts: PromptScore
    negations: PromptScore | None
    same_answer: Interval | None          # of a prompt and its negation
    frequent: PromptScore
    among_objects: Interval

    def to_dict(self) -> dict[str, Any]:
        return {"relation": self.relation, "facts": self.facts, "left_out": self.left_out,
                "in_prompt": self.in_prompt, "prompts": self.prompts.to_dict(),
                "negations": None if self.negations is None else self.negations.to_dict(),
                "same_answer": None if self.same_answer is None else self.same_answer._asdict(),
                "frequent": self.frequent.to_dict(), "among_objects": self.among_objects._asdict()}


@dataclass(frozen=True)
class FactsReport:
    """All relations, and the means over them, each relation counting the same."""

    relations: list[RelationScore]
    means: dict[str, Interval]
    facts: int
    left_out: int
    left_out_relations: list[str]         # of which no object is one piece
    windowed: int                         # prompts longer than the model takes: the part around the mask was read

    def to_dict(self) -> dict[str, Any]:
        return {"means": {name: found._asdict() for name, found in self.means.items()}, "facts": self.facts,
                "left_out": self.left_out, "left_out_relations": self.left_out_relations, "windowed": self.windowed,
                "relations": [relation.to_dict() for relation in self.relations]}


def probe_factual_knowledge(model: MiniBERT, tokenizer: WordPieceTokenizer, names: Sequence[str | PathLike[str]], *,
                            max_samples: int | None = None, seed: int = 0, threads: int = 0,
                            progress: Progress | None = None) -> FactsReport:
    """Ask the facts of files, or of all .jsonl files of folders: all, or at most `max_samples` of each file."""
    require_vocabulary(model, tokenizer)
    chosen: dict[str, list[Fact]] = {}
    for path in data_files(names):
        chosen.setdefault(path.stem, []).extend(sampled(read_facts(path), max_samples, seed, "facts", path.stem))
    asked = {relation: [fact for fact in facts if single_piece(tokenizer, fact.object) is not None]
             for relation, facts in chosen.items()}
    texts = [text for facts in asked.values() for fact in facts for text in _texts(fact)]
    if not texts:
        raise DataError("No object of these facts is one piece of the vocabulary.")
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
                       sum(len(tokenizer.ids(text)) > model.config.max_seq_length - 2 for text in texts))


def _texts(fact: Fact) -> list[str]:
    return [fact.prompt] if fact.negation is None else [fact.prompt, fact.negation]


class _Answer(NamedTuple):
    above: int                # ordinary pieces with a higher score than the object
    equal: int                # with the same score, the object included
    top: int                  # the piece in the first place
    among_objects: float      # is the object the first of the relation's objects? A tie counts by its share


def _answers(model: MiniBERT, tokenizer: WordPieceTokenizer, facts: list[Fact],
             team: Workers) -> dict[tuple[str, str], _Answer]:
    """What the model says to the prompts of one relation, by prompt and object."""
    ordinary, room = tokenizer.vocabulary.ordinary_ids, model.config.max_seq_length - 2
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

    whole = [tokenizer.ids(text) for text, _ in asks]
    parts = [window(ids, ids.index(tokenizer.vocabulary.mask), room) for ids in whole]
    read_sequences(model, [tokenizer.with_special(ids) for ids, _ in parts], [place + 1 for _, place in parts],
                   read, team)
    return dict(zip(asks, map(_Answer, above.tolist(), equal.tolist(), top.tolist(), among.tolist()), strict=True))


def _scored(relation: str, facts: list[Fact], left_out: int, answers: dict[tuple[str, str], _Answer],
            tokenizer: WordPieceTokenizer) -> RelationScore:
    own = [answers[fact.prompt, fact.object] for fact in facts]
    negated = [(answers[fact.prompt, fact.object], answers[fact.negation, fact.object])
               for fact in facts if fact.negation is not None]
    pieces = [single_piece(tokenizer, fact.object) for fact in facts]
    by_frequency = {piece: rank for rank, (piece, _) in enumerate(Counter(pieces).most_common(), 1)}
    return RelationScore(
        relation, len(facts), left_out,
        sum(piece in tokenizer.ids(fact.prompt) for fact, piece in zip(facts, pieces, strict=True)),
        _ranked(own), _ranked([answer for _, answer in negated]) if negated else None,
        share(sum(a.top == b.top for a, b in negated), len(negated)) if negated else None,
        _scores(Ranks(np.array([by_frequency[piece] - 1 for piece in pieces]), np.ones(len(pieces), np.int64))),
        share(sum(answer.among_objects for answer in own), len(facts)))


def _ranked(answers: Sequence[_Answer]) -> PromptScore:
    return _scores(Ranks(np.array([answer.above for answer in answers]),
                         np.array([answer.equal for answer in answers])))


def _scores(ranks: Ranks) -> PromptScore:
    """Of pieces with equal scores the rank is the mean of the places that they cover."""
    shares = [share(min(float(ranks.found(top).sum()), len(ranks.above)), len(ranks.above)) for top in (1, _FIRST)]
    return PromptScore(shares[0], shares[1], float((1 / (ranks.above + (ranks.equal + 1) / 2)).mean()))


def _means(relations: list[RelationScore]) -> dict[str, Interval]:
    """Over relations, with the interval that their spread gives."""
    values = {"p_at_1": [r.prompts.first.mean for r in relations],
              "p_at_10": [r.prompts.first_ten.mean for r in relations],
              "mrr": [r.prompts.reciprocal for r in relations],
              "negated_p_at_1": [r.negations.first.mean for r in relations if r.negations is not None],
              "negated_p_at_10": [r.negations.first_ten.mean for r in relations if r.negations is not None],
              "negated_mrr": [r.negations.reciprocal for r in relations if r.negations is not None],
              "same_answer": [r.same_answer.mean for r in relations if r.same_answer is not None],
              "frequent_p_at_1": [r.frequent.first.mean for r in relations],
              "frequent_p_at_10": [r.frequent.first_ten.mean for r in relations],
              "frequent_mrr": [r.frequent.reciprocal for r in relations],
              "among_objects": [r.among_objects.mean for r in relations]}
    return {name: over_seeds(found) for name, found in values.items() if found}

