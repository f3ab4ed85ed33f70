"""Question answering: the answer is a span of a text."""

from collections.abc import Sequence
from os import PathLike
from typing import NamedTuple

import numpy as np

from ...core.config import ModelConfig
from ...core.modules.heads.tasks import Answers
from ...core.registry import register
from ...core.task_model import TaskModel
from ...randomness import generator
from ...text.tokenizer import Tokenizer
from ...workers import Workers
from ..formats.named import DataSource
from ..formats.reading import load_questions
from ..formats.squad import Question
from ..samples import sampled, set_aside
from .encode import Windows, encode_questions
from .predict import answers
from .scores import answer_f1, exact_match
from .task import DEV_SHARE, Task, notes_about

QuestionSource = DataSource | Sequence[Question]


class QuestionSet(NamedTuple):
    """An encoded development or test set."""

    questions: list[Question]
    windows: Windows


@register("task", "qa")
class Questions(Task[QuestionSet]):
    """Questions whose answer is a span of a text."""

    head, outputs = "span", 2
    answers = Answers.SPAN

    def __init__(self, train: QuestionSource, dev: QuestionSource | None, tokenizer: Tokenizer,
                 config: ModelConfig, *, max_samples: int | None = None, seed: int = 0,
                 test: QuestionSource | None = None):
        read = [_read(place) for place in (train, dev, test) if place is not None]
        parts = [list(questions) for questions, _ in read]
        if dev is None:                                   # whole texts, so that none is in both sets
            there = set(set_aside([item.context for item in parts[0]], [0] * len(parts[0]), DEV_SHARE, seed,
                                  "development set"))
            held = [item for i, item in enumerate(parts[0]) if i in there]
            parts[:1] = [item for i, item in enumerate(parts[0]) if i not in there], held
            total = len(held) + len(parts[0])
            self.said.append(f"{len(held):,} of {total:,} questions, those of a tenth of the texts, are set aside as "
                             "the development set.")
        parts[:2] = [sampled(questions, max_samples, seed, "samples") for questions in parts[:2]]
        self.labels = []
        windows = [encode_questions(questions, tokenizer, config.max_seq_length, with_types=config.token_types > 1)
                   for questions in parts]
        self.train = windows[0].encoded
        sets = [QuestionSet(*pair) for pair in zip(parts[1:], windows[1:], strict=True)]
        self.dev, self.measured = sets[0], sets[-1]
        asked = [[(item.question, item.context) for item in questions] for questions in parts]
        self.notes = notes_about(asked, {
            "windows of the training": len(self.train.rows),
            "left out, as the answer is not in the text": sum(lost for _, lost in read),
            "not at their answer_start, found elsewhere": sum(item.moved for part in parts for item in part),
            "answerable in some window": self.measured.windows.answerable / len(self.measured.questions),
            "texts too long, in several windows": sum(made.encoded.split for made in windows),
            "questions too long, cut": sum(made.encoded.parts_cut for made in windows)})

    def _figures(self, data: QuestionSet, model: TaskModel, team: Workers) -> dict[str, float]:
        found = answers(model, data.windows, data.questions, team)
        pairs = [(answer.text, question.answers) for answer, question in zip(found, data.questions, strict=True)]
        return {"f1": float(np.mean([answer_f1(*pair) for pair in pairs])),
                "exact_match": float(np.mean([exact_match(*pair) for pair in pairs]))}

    def baselines(self) -> dict[str, float]:
        """The sentence with most words of the question, and a random span of three words."""
        rng = generator(0, "spans")
        sentence, guess = [], []
        for item in self.measured.questions:
            asked = set(item.question.lower().split())
            parts = item.context.split(". ")
            sentence.append(answer_f1(max(parts, key=lambda part: len(asked & set(part.lower().split()))),
                                      item.answers))
            words = item.context.split()
            start = int(rng.integers(max(1, len(words) - 2)))
            guess.append(answer_f1(" ".join(words[start : start + 3]), item.answers))
        return {"sentence with most words of the question": float(np.mean(sentence)),
                "three words at random": float(np.mean(guess))}


def _read(given: QuestionSource) -> tuple[Sequence[Question], int]:
    return load_questions(given) if isinstance(given, str | PathLike) else (given, 0)
