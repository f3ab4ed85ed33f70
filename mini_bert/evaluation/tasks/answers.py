"""Predictions for lines of text, for every kind of task: the output of `mini-bert predict`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ...core.modules.heads.tasks import Answers
from ...errors import DataError, InputError
from ...text.wordpiece.normalise import normaliser
from ...workers import Workers
from ..formats.squad import Question
from ..formats.tables import Labelled
from .bio import entity_spans, is_bio
from .encode import encode_questions, encode_texts, encode_words
from .predict import answers, labels_of_words, values_of_texts
from .storage import SavedTask

# what was done to lines that are too long for the model, and the message about it
_CUT = {"in_windows": "read in overlapping windows, because they have more than {longest} tokens; their scores are the "
                      "mean over the windows",
        "cut": "read with the shorter text cut to half of {longest} tokens",
        "in_parts": "read in overlapping windows, because they have more than {longest} tokens",
        "words_cut": "read with cut words, because a single word has more than {longest} tokens",
        "question_cut": "read with the question cut, because it has more than half of {longest} tokens"}


@dataclass(frozen=True)
class LineAnswer:
    """The prediction for a line, or for a text of a table; `probabilities` are of all labels, if it has labels."""

    text: str
    shown: str
    probability: float | None
    detail: dict[str, Any]

    @property
    def probabilities(self) -> dict[str, float]:
        found: dict[str, float] = self.detail.get("probabilities", {})
        return found

    def to_dict(self) -> dict[str, Any]:
        return {"text": self.text, "answer": self.shown, "probability": self.probability, **self.detail}


class WordSpan(NamedTuple):
    """A word and its character offsets in the line."""

    word: str
    start: int
    end: int


def answer_lines(saved: SavedTask, lines: Sequence[str], team: Workers) -> list[LineAnswer]:
    """A label, entities or an answer span for each line; `detail` says which lines were too long."""
    if not lines:
        raise InputError("There is no text to predict for.")
    return _ANSWERERS[saved.model.task.answers](saved, lines, team)


def too_long(found: Sequence[LineAnswer], longest: int) -> list[str]:
    """Messages about lines that were too long for the model."""
    counts = {key: sum(bool(answer.detail.get(key)) for answer in found) for key in _CUT}
    return [f"{counts[key]:,} of {len(found):,} lines were {what.format(longest=longest)}."
            for key, what in _CUT.items() if counts[key]]


def _labels(saved: SavedTask, lines: Sequence[str], team: Workers) -> list[LineAnswer]:
    records = []
    for number, line in enumerate(lines, 1):
        first, *others = line.split("\t")
        if len(others) > 1 or saved.pairs not in (None, bool(others)):
            wanted = "two texts separated by a tab" if saved.pairs else "one text without tabs" \
                if saved.pairs is not None else "one text, or two separated by a tab"
            raise DataError(f"Line {number} has {1 + len(others)} columns; this model takes {wanted}.")
        records.append(Labelled(first, others[0] if others else None, ""))
    return [replace(answer, text=line) for answer, line in zip(answer_records(saved, records, team), lines,
                                                               strict=True)]


def answer_records(saved: SavedTask, records: Sequence[Labelled], team: Workers) -> list[LineAnswer]:
    """The answers to texts, or to pairs of texts: for a span, of questions and the texts that have the answers."""
    if saved.model.task.answers is not Answers.SEQUENCE:
        parts = ((record.text,) if record.pair is None else (record.text, record.pair) for record in records)
        return answer_lines(saved, ["\t".join(" ".join(part.split()) for part in some) for some in parts], team)
    config, loss = saved.model.config, saved.model.loss
    encoded = encode_texts(records, saved.tokenizer, config.max_seq_length, [], with_types=config.token_types > 1)
    answers = [loss.reading(row, saved.labels) for row in values_of_texts(saved.model, encoded, team)]
    return [LineAnswer(record.text, answer.shown, answer.probability, {
        loss.figures: answer.figures, "in_windows": number in encoded.long, "cut": number in encoded.shortened})
            for number, (record, answer) in enumerate(zip(records, answers, strict=True))]


def word_spans(line: str) -> Iterator[WordSpan]:
    """The words of a line; punctuation marks are separate words, as in the training data for entities."""
    table = normaliser(False, False)
    letters, first, last = "", 0, 0
    for place, character in enumerate([*line, " "]):
        for letter in table[ord(character)]:
            if letter != " ":
                first, last = (place if not letters else first), place
                letters += letter
            elif letters:
                yield WordSpan(letters, first, last + 1)
                letters = ""


def _entities(saved: SavedTask, lines: Sequence[str], team: Workers) -> list[LineAnswer]:
    sentences = [list(word_spans(line)) for line in lines]
    encoded = encode_words([[placed.word for placed in sentence] for sentence in sentences], None, saved.tokenizer,
                           saved.model.config.max_seq_length)
    found = labels_of_words(saved.model, encoded, len(lines), team)
    results = []
    bio = all(map(is_bio, saved.labels))
    for number, (line, words, labels) in enumerate(zip(lines, sentences, found, strict=True)):
        if not bio:                               # parts of speech, for instance: a label of each word
            tagged = [{"text": word.word, "label": saved.labels[i], "start": word.start, "end": word.end}
                      for word, i in zip(words, labels, strict=True)]
            results.append(LineAnswer(line, " ".join(f"{item['text']}/{item['label']}" for item in tagged), None,
                                      {"words": tagged, "in_parts": number in encoded.long,
                                       "words_cut": encoded.shortened.get(number, 0)}))
            continue
        spans = [(words[a].start, words[b - 1].end, kind) for a, b, kind in entity_spans([saved.labels[i]
                                                                                          for i in labels])]
        named = [{"text": line[start:end], "kind": kind, "start": start, "end": end} for start, end, kind in spans]
        results.append(LineAnswer(line, ", ".join(f"{item['text']} ({item['kind']})" for item in named) or "none", None,
                                  {"entities": named, "in_parts": number in encoded.long,
                                   "words_cut": encoded.shortened.get(number, 0)}))
    return results


def _answers(saved: SavedTask, lines: Sequence[str], team: Workers) -> list[LineAnswer]:
    questions = []
    for number, line in enumerate(lines, 1):
        parts = line.split("\t")
        if len(parts) != 2:
            raise DataError(f"Line {number} has {len(parts)} columns; write a question and its text, separated by a "
                            "tab.")
        questions.append(Question(str(number), parts[0], parts[1], ("",), -1))
    config = saved.model.config
    windows = encode_questions(questions, saved.tokenizer, config.max_seq_length, with_types=config.token_types > 1)
    found, encoded = answers(saved.model, windows, questions, team), windows.encoded
    return [LineAnswer(line, answer.text, None, {"start": answer.start, "score": answer.score,
                                                 "in_parts": number in encoded.long,
                                                 "question_cut": number in encoded.shortened})
            for number, (line, answer) in enumerate(zip(lines, found, strict=True))]


_ANSWERERS: dict[Answers, Callable[[SavedTask, Sequence[str], Workers], list[LineAnswer]]] = {
    Answers.SEQUENCE: _labels, Answers.TOKENS: _entities, Answers.SPAN: _answers}
