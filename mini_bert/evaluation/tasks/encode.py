"""Encode the examples of a task as sequences of ids, ready for batching.

Examples longer than the model reads at once become several sequences (inference/windows.py), and are counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from ...core.arrays import IntArray, Targets
from ...core.task_model import TaskBatch
from ...errors import DataError
from ...inference.inputs import pad_sequences, some_ids
from ...inference.windows import pair_parts, text_parts, windows
from ...text.tokenizer import Tokenizer
from ..formats.squad import Question
from ..formats.tables import Labelled


@dataclass
class Encoded:
    """Sequences with their answers; `owners` is the index of the example that each sequence comes from.

    The scores of a text are the mean of those of its sequences, by their `weights`. Each answer is a whole number.
    """

    pad: int
    rows: list[list[int]] = field(default_factory=list)
    types: list[list[int]] | None = None              # token types, if the model has them
    answers: list[Sequence[float]] = field(default_factory=list)      # of each row, in the form that the head needs
    places: list[list[int]] | None = None             # of each row, the tokens that the head reads
    owners: list[int] = field(default_factory=list)
    weights: list[int] = field(default_factory=list)
    long: set[int] = field(default_factory=set)       # examples that became several sequences
    shortened: dict[int, int] = field(default_factory=dict)     # example -> number of its words or questions cut

    @property
    def split(self) -> int:
        """The number of examples that became several sequences."""
        return len(self.long)

    @property
    def parts_cut(self) -> int:
        """The number of single words, questions or second texts that were too long."""
        return sum(self.shortened.values())

    def of(self, owners: set[int]) -> Self:
        """Only the sequences of these examples."""
        chosen = [i for i, owner in enumerate(self.owners) if owner in owners]
        return replace(self, rows=[self.rows[i] for i in chosen],
                       types=None if self.types is None else [self.types[i] for i in chosen],
                       answers=[self.answers[i] for i in chosen],
                       places=None if self.places is None else [self.places[i] for i in chosen],
                       owners=[self.owners[i] for i in chosen],
                       weights=[self.weights[i] for i in chosen], long=self.long & owners,
                       shortened={owner: n for owner, n in self.shortened.items() if owner in owners})

    @property
    def lengths(self) -> list[int]:
        return [len(row) for row in self.rows]

    def collate(self, numbers: IntArray) -> TaskBatch:
        """The sequences with these indices as one batch."""
        ids, mask = pad_sequences([self.rows[i] for i in numbers], self.pad)
        types = None if self.types is None else pad_sequences([self.types[i] for i in numbers], 0)[0]
        answers = [self.answers[i] for i in numbers]
        return TaskBatch(ids, mask, self.targets(answers), self.places_of(numbers, ids.shape), types)

    def places_of(self, numbers: IntArray, shape: tuple[int, ...]) -> npt.NDArray[np.bool_] | None:
        """The tokens (B, T) that the head reads of these sequences; None if it chooses by itself."""
        if self.places is None:
            return None
        places = np.zeros(shape, bool)
        for row, number in enumerate(numbers):
            places[row, self.places[number]] = True
        return places

    @staticmethod
    def targets(answers: Sequence[Sequence[float]]) -> Targets:
        """What a loss compares the scores with."""
        return np.array([answer for row in answers for answer in row], np.int64)

    def add(self, ids: list[int], answers: Sequence[float], owner: int, weight: int = 1, *,
            types: list[int] | None = None, places: list[int] | None = None) -> None:
        """One more sequence; its types and places are kept if the others have them."""
        self.rows.append(ids)
        self.answers.append(answers)
        self.owners.append(owner)
        self.weights.append(weight)
        if self.types is not None and types is not None:
            self.types.append(types)
        if self.places is not None and places is not None:
            self.places.append(places)


class EncodedSpans(Encoded):
    """Answers are spans; the head returns all starts and then all ends."""

    @staticmethod
    def targets(answers: Sequence[Sequence[float]]) -> Targets:
        return np.array(answers, np.int64).reshape(-1, 2).T.reshape(-1)


class EncodedValues(Encoded):
    """Answers have a number for each score: whether a label holds, or the right value."""

    @staticmethod
    def targets(answers: Sequence[Sequence[float]]) -> Targets:
        return np.array(answers, np.float64)


def label_numbers(labels: Sequence[str], known: Sequence[str], source: str) -> list[int]:
    """The index of each label; a label that does not occur in training is refused."""
    numbers = {label: i for i, label in enumerate(known)}
    unseen = sorted({label for label in labels if label not in numbers})
    if unseen:
        raise DataError(f"{source} has the label {unseen[0]!r}, which does not occur in training; that has "
                        f"{', '.join(known[:10])}{' ...' if len(known) > 10 else ''}.")
    return [numbers[label] for label in labels]


def encode_texts(records: Sequence[Labelled], tokenizer: Tokenizer, longest: int,
                 answers: Sequence[Sequence[float]], *, with_types: bool, form: type[Encoded] = Encoded) -> Encoded:
    """Texts or pairs, each with its answers; without `answers` all are 0."""
    made = form(tokenizer.vocabulary.pad, types=[] if with_types else None)
    for owner, record in enumerate(records):
        ids = tokenizer.ids(record.text)
        read = text_parts(ids, tokenizer, longest) if record.pair is None else \
            pair_parts(ids, tokenizer.ids(record.pair), tokenizer, longest)
        for part in read.parts:
            made.add(part.ids, answers[owner] if answers else [0], owner, part.weight, types=part.types)
        if len(read.parts) > 1:
            made.long.add(owner)
        if read.cut:
            made.shortened[owner] = 1
    return made


def with_masks(records: Sequence[Labelled], tokenizer: Tokenizer) -> list[Labelled]:
    """The records with the tokenizer's own name of its mask for each [MASK]."""
    return [record._replace(text=tokenizer.with_mask(record.text),
                            pair=None if record.pair is None else tokenizer.with_mask(record.pair))
            for record in records]


def encode_words(sentences: Sequence[Sequence[str]], labels: Sequence[Sequence[int]] | None,
                 tokenizer: Tokenizer, longest: int) -> Encoded:
    """Words with one label each, at the first piece; a long sentence becomes windows of whole words."""
    made = Encoded(tokenizer.vocabulary.pad, places=[])
    room, before = max(1, longest - tokenizer.template.added()), len(tokenizer.template.before)
    for owner, words in enumerate(sentences):
        whole = [some_ids(tokenizer.word_ids(word), tokenizer) for word in words]
        if cut := sum(len(ids) > room for ids in whole):
            made.shortened[owner] = cut
        lengths = [min(len(ids), room) for ids in whole]
        found = windows(lengths, room) if words else []
        for window in found:
            ids = [piece for number in range(window.first, window.last) for piece in whole[number][:room]]
            starts = before + np.cumsum([0, *lengths[window.first : window.last]])
            asked = range(window.begin, window.end)
            made.add(tokenizer.with_special(ids), [0 if labels is None else labels[owner][i] for i in asked], owner,
                     len(asked), places=[int(starts[i - window.first]) for i in asked])
        if len(found) > 1:
            made.long.add(owner)
    return made


@dataclass
class Windows:
    """Questions with windows over their contexts, and the character offsets of the tokens of each window."""

    encoded: EncodedSpans
    offsets: list[list[tuple[int, int]]]      # of each row, the offsets of its tokens; (0, 0) outside the context
    nowhere: list[int]                        # of each row, the place of the token that means "not here"
    answerable: int                           # questions whose whole answer is in some window


def encode_questions(questions: Sequence[Question], tokenizer: Tokenizer, longest: int, *, with_types: bool,
                     stride: int | None = None) -> Windows:
    """[CLS] question [SEP] window [SEP], with windows `stride` tokens apart, by default a quarter of `longest`.

    The head chooses among the tokens of the window and [CLS], which means "not here" and is the target of windows
    without the answer. [CLS] is where the tokenizer's template has it; without one the first token stands for it.
    """
    made = EncodedSpans(tokenizer.vocabulary.pad, places=[], types=[] if with_types else None)
    stride = max(1, longest // 4) if stride is None else stride
    all_offsets: list[list[tuple[int, int]]] = []
    all_nowhere: list[int] = []
    answerable = 0
    for owner, item in enumerate(questions):
        whole = tokenizer.ids(item.question)
        asked = whole[: longest // 2 - 2]
        if len(asked) < len(whole):
            made.shortened[owner] = 1
        text = tokenizer.align(item.context, add_special_tokens=False)
        ids, offsets = text.ids, text.offsets
        room = longest - len(asked) - tokenizer.template.added(pair=True)
        first, last = _answer_tokens(item, offsets)
        found = False
        starts = list(range(0, max(len(ids) - room, 0) + stride, stride)) if len(ids) > room else [0]
        if len(starts) > 1:
            made.long.add(owner)
        for begin in starts:
            window = ids[begin : begin + room]
            if not window:
                continue
            before = tokenizer.template.second_at(len(asked))
            here = begin <= first and last < begin + len(window) and first >= 0
            found = found or here
            row, types = tokenizer.template.apply(asked, window)
            nowhere = tokenizer.template.place_of(tokenizer.vocabulary.roles.get("cls"), len(asked), len(window))
            answer = [before + first - begin, before + last - begin] if here else [nowhere, nowhere]
            made.add(row, answer, owner, types=types, places=[nowhere, *range(before, before + len(window))])
            all_nowhere.append(nowhere)
            after = len(row) - before - len(window)
            all_offsets.append([(0, 0)] * before + offsets[begin : begin + room] + [(0, 0)] * after)
        answerable += found
    return Windows(made, all_offsets, all_nowhere, answerable)


def _answer_tokens(item: Question, offsets: list[tuple[int, int]]) -> tuple[int, int]:
    """The first and the last token of the answer; (-1, -1) if there is none."""
    begin, end = item.start, item.start + len(item.answers[0])
    touched = [i for i, (a, b) in enumerate(offsets) if a < end and b > begin]
    return (touched[0], touched[-1]) if touched else (-1, -1)
