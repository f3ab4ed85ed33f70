"""Facts by cloze prompts, as LAMA asks them: The capital of Denmark is [MASK] .

The object of a fact is looked for among all pieces of the vocabulary but the special tokens. P@1 and P@10 are the
shares of prompts with the object among the first one and ten, MRR the mean of 1 / rank. The same is asked of the
negated prompts, where knowledge would give another answer: beside it stands how often the first answer is the same.

Two figures keep these in proportion. `frequent` ranks a relation's objects by how often they are right in the very
same data, whatever the subject. `among_objects` is the model's P@1 if it need only choose among these objects.

A fact whose object is not one piece of the vocabulary cannot be answered by one mask; it is left out and counted.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.arrays import Array, IntArray
from ..core.model import MiniBERT
from ..errors import DataError
from ..inference.inputs import require_vocabulary
from ..text.tokenizer import WordPieceTokenizer
from ..text.vocabulary import SPECIAL_TOKENS
from ..training.workers import Workers, workers
from .formats.lines import json_lines, text_field, wrong
from .formats.minimal_pairs import data_files
from .pseudo_likelihood import Progress, read_sequences, single_piece, window
from .samples import sampled
from .statistics import Interval, over_seeds, share

_MASK = SPECIAL_TOKENS[4]
_FIRST = 10                   # of P@10


class Fact(NamedTuple):
    """A prompt with one [MASK], its negation if there is one, and the object that belongs there."""

    relation: str
    subject: str
    object: str
    prompt: str
    negation: str | None


def read_facts(path: str | PathLike[str]) -> list[Fact]:
    """The facts of a JSONL file of LAMA's; its name is the relation's. Each of several prompts is a fact of its own."""
    facts = []
    for line, content in json_lines(path):
        subject, answer = (text_field(content, key, path, line) for key in ("sub_label", "obj_label"))
        if not answer.strip():
            raise wrong(path, line, "the field 'obj_label' is empty")
        prompts = _prompts(content, "masked_sentences", path, line)
        negations: Sequence[str | None] = [None] * len(prompts)
        if content.get("masked_negations"):
            negations = _prompts(content, "masked_negations", path, line)
        if len(negations) != len(prompts):
            raise wrong(path, line, f"it has {len(prompts)} prompts and {len(negations)} negations")
        facts += [Fact(Path(path).stem, subject, answer, *both) for both in zip(prompts, negations, strict=True)]
    if not facts:
        raise DataError(f"{path} has no facts.")
    return facts


def _prompts(content: dict[str, Any], key: str, path: str | PathLike[str], line: int) -> list[str]:
    value = content.get(key)
    if not isinstance(value, list) or not value or not all(isinstance(prompt, str) for prompt in value):
        raise wrong(path, line, f"the field {key!r} is missing or is not a list of texts")
    for prompt in value:
        if prompt.count(_MASK) != 1:
            raise wrong(path, line, f"a text of {key!r} has {prompt.count(_MASK)} times {_MASK}, not once")
    return value


class Ranks(NamedTuple):
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
    prompts: Ranks
    negations: Ranks | None
    same_answer: Interval | None          # of a prompt and its negation
    frequent: Ranks
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
    rank: int                 # of the object among the ordinary pieces, from 1
    top: int                  # the piece in the first place
    best_object: int          # of the relation's objects the one with the highest score


def _answers(model: MiniBERT, tokenizer: WordPieceTokenizer, facts: list[Fact],
             team: Workers) -> dict[tuple[str, str], _Answer]:
    """What the model says to the prompts of one relation, by prompt and object."""
    ordinary, room = tokenizer.vocabulary.ordinary_ids, model.config.max_seq_length - 2
    asks = [(text, fact.object) for fact in facts for text in _texts(fact)]
    pieces = np.array([single_piece(tokenizer, answer) for _, answer in asks], np.int64)
    objects = np.unique(pieces)
    rank, top, best = (np.zeros(len(asks), np.int64) for _ in range(3))

    def read(logits: Array, numbers: IntArray) -> None:
        scores = logits[:, ordinary]
        own = logits[np.arange(len(numbers)), pieces[numbers]]
        rank[numbers] = (scores > own[:, None]).sum(axis=1) + 1
        top[numbers] = ordinary[scores.argmax(axis=1)]
        best[numbers] = objects[logits[:, objects].argmax(axis=1)]

    whole = [tokenizer.ids(text) for text, _ in asks]
    parts = [window(ids, ids.index(tokenizer.vocabulary.mask), room) for ids in whole]
    read_sequences(model, [tokenizer.with_special(ids) for ids, _ in parts], [place + 1 for _, place in parts],
                   read, team)
    return dict(zip(asks, map(_Answer, rank.tolist(), top.tolist(), best.tolist()), strict=True))


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
        _ranks(np.array([answer.rank for answer in own])),
        _ranks(np.array([answer.rank for _, answer in negated])) if negated else None,
        share(sum(a.top == b.top for a, b in negated), len(negated)) if negated else None,
        _ranks(np.array([by_frequency[piece] for piece in pieces])),
        share(sum(answer.best_object == piece for answer, piece in zip(own, pieces, strict=True)), len(facts)))


def _ranks(ranks: IntArray) -> Ranks:
    return Ranks(share(int((ranks == 1).sum()), len(ranks)), share(int((ranks <= _FIRST).sum()), len(ranks)),
                 float((1 / ranks).mean()))


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

