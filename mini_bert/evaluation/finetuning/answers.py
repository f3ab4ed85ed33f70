"""Answers to lines of text, whatever the task: what `mini-bert predict` prints."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import DataError, InputError
from ...text.normalise import replacements
from ...training.workers import Workers
from ..formats.conll import entity_spans
from ..formats.squad import Question
from ..formats.tables import Labelled
from .encode import encode_questions, encode_texts, encode_words
from .predict import answers, labels_of_texts, labels_of_words
from .storage import Saved


@dataclass(frozen=True)
class LineAnswer:
    """What the model says of a line."""

    text: str
    shown: str
    probability: float | None
    detail: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return {"text": self.text, "answer": self.shown, "probability": self.probability, **self.detail}


def answer_lines(saved: Saved, lines: Sequence[str], team: Workers) -> list[LineAnswer]:
    """A label, entities or a stretch of text for each line."""
    if not lines:
        raise InputError("There is no text to answer.")
    answer = {"tokens": _entities, "span": _answers}.get(saved.model.head_name, _labels)
    return answer(saved, lines, team)


def _labels(saved: Saved, lines: Sequence[str], team: Workers) -> list[LineAnswer]:
    records = []
    for number, line in enumerate(lines, 1):
        first, *others = line.split("\t")
        if len(others) != (saved.task == "pair"):
            wanted = "two texts separated by a tab" if saved.task == "pair" else "one text without tabs"
            raise DataError(f"Line {number} has {1 + len(others)} columns; this model takes {wanted}.")
        records.append(Labelled(first, others[0] if others else None, ""))
    config = saved.model.config
    encoded = encode_texts(records, saved.tokenizer, config.max_seq_length, [], with_types=config.token_types > 1)
    best, probabilities = labels_of_texts(saved.model, encoded, team)
    return [LineAnswer(line, saved.labels[i], float(row[i]),
                       {"probabilities": {label: float(p) for label, p in zip(saved.labels, row, strict=True)}})
            for line, i, row in zip(lines, best.tolist(), probabilities, strict=True)]


def _entities(saved: Saved, lines: Sequence[str], team: Workers) -> list[LineAnswer]:
    table = replacements(False, False)            # as the data has them, punctuation is words of its own
    sentences = [[word for chunk in table.chunks(line) for word in table.words(chunk)] for line in lines]
    encoded = encode_words(sentences, None, saved.tokenizer, saved.model.config.max_seq_length)
    found = labels_of_words(saved.model, encoded, len(lines), team)
    results = []
    for line, words, numbers in zip(lines, sentences, found, strict=True):
        spans = entity_spans([saved.labels[i] for i in numbers])
        named = [{"text": " ".join(words[a:b]), "kind": kind} for a, b, kind in spans]
        results.append(LineAnswer(line, ", ".join(f"{item['text']} ({item['kind']})" for item in named) or "none", None,
                                  {"entities": named}))
    return results


def _answers(saved: Saved, lines: Sequence[str], team: Workers) -> list[LineAnswer]:
    questions = []
    for number, line in enumerate(lines, 1):
        parts = line.split("\t")
        if len(parts) != 2:
            raise DataError(f"Line {number} has {len(parts)} columns; write a question and its text, separated by a "
                            "tab.")
        questions.append(Question(str(number), parts[0], parts[1], ("",), -1))
    config = saved.model.config
    windows = encode_questions(questions, saved.tokenizer, config.max_seq_length, stride=config.max_seq_length // 4,
                               with_types=config.token_types > 1)
    found = answers(saved.model, windows, questions, team)
    return [LineAnswer(line, answer.text, None, {"start": answer.start, "score": answer.score})
            for line, answer in zip(lines, found, strict=True)]
