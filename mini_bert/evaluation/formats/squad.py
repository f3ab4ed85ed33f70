"""Questions about a text, in SQuAD's JSON or as a plain list of objects with question, context and answer."""

import json
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import DataError


class Question(NamedTuple):
    """A question, the text that holds its answer, and the answers that count as right."""

    id: str
    question: str
    context: str
    answers: tuple[str, ...]
    start: int                # of the first answer in the context, in characters; -1 if it has none


def read_questions(path: str | PathLike[str]) -> tuple[list[Question], int]:
    """All questions of a file, and how many were left out because their answer does not stand in the context."""
    try:
        content = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON: {error}.") from None
    if isinstance(content, dict) and isinstance(content.get("data"), list):
        found = [question for article in content["data"] for question in _article(article, path)]
    elif isinstance(content, list):
        found = [_plain(item, number, path) for number, item in enumerate(content)]
    else:
        raise DataError(f"{path} is neither SQuAD's JSON, an object with 'data', nor a list of questions.")
    usable = [question for question in found if question.start >= 0]
    if not usable:
        raise DataError(f"{path} has no question whose answer stands in its context.")
    return usable, len(found) - len(usable)


def _article(article: Any, path: str | PathLike[str]) -> list[Question]:
    try:
        return [question_of(str(qa["id"]), qa["question"], paragraph["context"],
                          [(answer["text"], answer["answer_start"]) for answer in qa["answers"]])
                for paragraph in article["paragraphs"] for qa in paragraph["qas"] if not qa.get("is_impossible")]
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is not SQuAD's JSON: {type(error).__name__} {error}.") from None


def _plain(item: Any, number: int, path: str | PathLike[str]) -> Question:
    if not isinstance(item, dict):
        raise DataError(f"{path}, item {number}: it is a JSON {type(item).__name__}, not an object.")
    answers = item.get("answers", item.get("answer"))
    if isinstance(answers, dict):                 # as the hub has them: {"text": [...], "answer_start": [...]}
        answers = answers.get("text")
    texts = [answers] if isinstance(answers, str) else answers
    question, context = item.get("question"), item.get("context")
    if not isinstance(question, str) or not isinstance(context, str) or not isinstance(texts, list) \
            or not texts or not all(isinstance(text, str) for text in texts):
        raise DataError(f"{path}, item {number}: it needs the fields question, context and answer, all text.")
    return question_of(str(item.get("id", number)), question, context, [(text, -1) for text in texts])


def question_of(name: str, question: str, context: str, answers: list[tuple[str, int]]) -> Question:
    """A question with its answers, each with where it is said to begin; if it does not stand there it is looked for."""
    texts = tuple(dict.fromkeys(text for text, _ in answers))
    text, start = answers[0] if answers else ("", -1)
    if not text or context[max(start, 0) : max(start, 0) + len(text)] != text:
        start = context.find(text) if text else -1
        if start < 0 and text:
            start = context.lower().find(text.lower())
    return Question(name, question, context, texts, start)
