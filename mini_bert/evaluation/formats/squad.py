"""Questions about a text, in SQuAD's JSON or as a list of objects with question, context and answer."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, NamedTuple

from ...errors import DataError
from ...readers import LARGEST_JSON, parse_json, read_bytes, shown


class Question(NamedTuple):
    """A question, the text that contains its answer, and the answers that count as correct."""

    id: str
    question: str
    context: str
    answers: tuple[str, ...]
    start: int                # character offset of the first answer in the context; -1 if it is not there
    moved: bool = False       # the answer was found at another offset than answer_start


def read_questions(path: str | PathLike[str]) -> tuple[list[Question], int]:
    """All questions of a file, and how many were left out because none of their answers occurs in the context.

    Questions that SQuAD 2 marks as is_impossible are also left out.
    """
    content = parse_json(read_bytes(path, DataError, largest=LARGEST_JSON), DataError, shown(path))
    if isinstance(content, dict) and isinstance(content.get("data"), list):
        articles = [_article(article, f"data[{i}]", path) for i, article in enumerate(content["data"])]
        found = [question for questions, _ in articles for question in questions]
        impossible = sum(count for _, count in articles)
    elif isinstance(content, list):
        found, impossible = [_plain(item, number, path) for number, item in enumerate(content)], 0
    else:
        raise DataError(f"{path} is neither SQuAD's JSON (an object with 'data') nor a list of questions.")
    usable = [question for question in found if question.start >= 0]
    if not usable:
        raise DataError(f"{path} has no question whose answer occurs in its context.")
    return usable, len(found) - len(usable) + impossible


def _article(article: Any, place: str, path: str | PathLike[str]) -> tuple[list[Question], int]:
    """The questions of an article, and how many of them are marked as having no answer."""
    found, impossible = [], 0
    for j, paragraph in enumerate(_list(article, "paragraphs", place, path)):
        where = f"{place}.paragraphs[{j}]"
        questions = _list(paragraph, "qas", where, path)
        context = _text(paragraph, "context", where, path)
        for k, qa in enumerate(questions):
            here = f"{where}.qas[{k}]"
            asked = _text(qa, "question", here, path)
            if not asked.strip():
                raise DataError(f"{path}: the question of {here} is empty.")
            if qa.get("is_impossible"):
                impossible += 1
                continue
            answers = [(_text(answer, "text", f"{here}.answers[{n}]", path),
                        _start(answer, f"{here}.answers[{n}]", path))
                       for n, answer in enumerate(_list(qa, "answers", here, path))]
            found.append(make_question(str(qa.get("id", here)), asked, context, answers))
    return found, impossible


def _list(item: Any, key: str, place: str, path: str | PathLike[str]) -> list[Any]:
    if not isinstance(item, dict) or not isinstance(item.get(key), list):
        raise DataError(f"{path} is not SQuAD's JSON: {place} is not an object with the list {key!r}.")
    found: list[Any] = item[key]
    return found


def _text(item: Any, key: str, place: str, path: str | PathLike[str]) -> str:
    if not isinstance(item, dict) or not isinstance(item.get(key), str):
        raise DataError(f"{path} is not SQuAD's JSON: {place} is not an object with the text {key!r}.")
    return str(item[key])


def _start(answer: dict[str, Any], place: str, path: str | PathLike[str]) -> int:
    start = answer.get("answer_start")
    if type(start) is not int:
        raise DataError(f"{path} is not SQuAD's JSON: {place} has no integer 'answer_start'.")
    return start


def _plain(item: Any, number: int, path: str | PathLike[str]) -> Question:
    if not isinstance(item, dict):
        raise DataError(f"{path}, item {number}: it is a JSON {type(item).__name__}, not an object.")
    answers = item.get("answers", item.get("answer"))
    if isinstance(answers, dict):                 # as on the Hugging Face hub: {"text": [...], "answer_start": [...]}
        answers = answers.get("text")
    texts = [answers] if isinstance(answers, str) else answers
    question, context = item.get("question"), item.get("context")
    if not isinstance(question, str) or not isinstance(context, str) or not isinstance(texts, list) \
            or not texts or not all(isinstance(text, str) for text in texts):
        raise DataError(f"{path}, item {number}: it needs the fields question, context and answer, all text.")
    return make_question(str(item.get("id", number)), question, context, [(text, None) for text in texts])


def make_question(name: str, question: str, context: str, answers: Sequence[tuple[str, int | None]]) -> Question:
    """A question with its answers, each with its stated offset; an answer that is not there is searched for.

    An answer that occurs in the context is put first, because training uses the first answer.
    """
    for text, stated in answers:
        start = _found(text, stated, context)
        if start >= 0:
            texts = tuple(dict.fromkeys([text, *(other for other, _ in answers)]))
            return Question(name, question, context, texts, start, moved=stated is not None and start != stated)
    return Question(name, question, context, tuple(dict.fromkeys(text for text, _ in answers)), -1)


def _found(text: str, stated: int | None, context: str) -> int:
    """The offset of an answer, preferably the stated one; -1 if it does not occur."""
    if not text:
        return -1
    if stated is not None and stated >= 0 and context[stated : stated + len(text)] == text:
        return stated
    start = context.find(text)
    return start if start >= 0 else context.lower().find(text.lower())
