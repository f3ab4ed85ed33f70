"""Tasks from the Hugging Face hub, or from a directory that its library reads: hub:NAME[:CONFIG][:SPLIT].

    texts with labels     sentence or text, or a pair such as sentence1 and sentence2, and label, as GLUE has them
    named entities        tokens and ner_tags, as CoNLL's sets have them
    questions             question, context and answers, as SQuAD has them

The records are those that the readers of files give. Labels that are numbers get their names where the dataset
declares them.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import DataError
from ..evaluation.formats.conllu import Sentence
from ..evaluation.formats.squad import Question, make_question
from ..evaluation.formats.tables import LABELS, TEXTS, Labelled, require_classes
from ..evaluation.tasks.bio import as_bio, is_bio
from .hub import opened, sentence_of


class HubTasks:
    """The reader of such names."""

    def labelled(self, name: str) -> list[Labelled]:
        examples, columns = _opened(name)
        texts = next((wanted for wanted in TEXTS if all(column in columns for column in wanted)), None)
        label = next((column for column in LABELS if column in columns), None)
        if texts is None or label is None:
            raise _lacks(name, columns, "a text and its label, such as sentence and label")
        known, records = _names(examples, label), []
        for number, example in _numbered(examples, name):
            first, *others = (_text(example, column, name, number) for column in texts)
            records.append(Labelled(first, others[0] if others else None, _label(example[label], known, name, number)))
        require_classes(records, name)
        return _some(records, name)

    def sentences(self, name: str) -> list[Sentence]:
        examples, columns = _opened(name)
        if not {"tokens", "ner_tags"} <= set(columns):
            raise _lacks(name, columns, "words and their entities: tokens and ner_tags")
        known, found = _names(examples, "ner_tags"), []
        for number, example in _numbered(examples, name):
            words, tags = example["tokens"], example["ner_tags"]
            if not isinstance(words, list) or not isinstance(tags, list) or len(words) != len(tags):
                raise _wrong(name, number, "its tokens and ner_tags are not two lists of one length")
            if words:
                labels = [_label(tag, known, name, number) for tag in tags]
                for label in labels:
                    if not is_bio(label):
                        raise _wrong(name, number, f"its label {label!r} is none of O, B-TYPE and I-TYPE")
                found.append(Sentence(tuple(map(str, words)), entities=as_bio(labels)))
        return _some(found, name)

    def questions(self, name: str) -> tuple[list[Question], int]:
        examples, columns = _opened(name)
        if not {"question", "context", "answers"} <= set(columns):
            raise _lacks(name, columns, "question, context and answers")
        found = []
        for number, example in _numbered(examples, name):
            answers = example["answers"]
            texts, starts = (answers.get(key) if isinstance(answers, dict) else None
                             for key in ("text", "answer_start"))
            if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
                raise _wrong(name, number, "its answers are not the lists text and answer_start")
            if not all(isinstance(text, str) for text in texts) or not all(type(start) is int for start in starts):
                raise _wrong(name, number, "its answers' text is not text, or their answer_start is not a whole number")
            found.append(make_question(str(example.get("id", number)), _text(example, "question", name, number),
                                       _text(example, "context", name, number), list(zip(texts, starts, strict=True))))
        usable = [question for question in _some(found, name) if question.start >= 0]
        return _some(usable, name), len(found) - len(usable)


def _opened(name: str) -> tuple[Any, list[str]]:
    """The examples, and the names of their columns."""
    examples, columns = opened(name)
    if not columns:
        raise DataError(f"{name} has no examples.")
    return examples, list(columns)


def _numbered(examples: Any, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    number, stream = 0, iter(examples)
    while True:
        try:
            example = next(stream)
        except StopIteration:
            return
        except Exception as error:        # whatever the library, the network or the files may raise
            raise DataError(f"{name} cannot be read: {sentence_of(error)}.") from None
        yield number, example
        number += 1


def _names(examples: Any, column: str) -> Sequence[str] | None:
    """The labels' names, if the dataset declares them: of the column, or of the items of its lists."""
    kind = (examples.features or {}).get(column)
    names = getattr(getattr(kind, "feature", kind), "names", None)
    return names if isinstance(names, list | tuple) else None


def _label(value: Any, known: Sequence[str] | None, name: str, number: int) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str | float) or str(value).strip() in ("", "-1"):
        raise _wrong(name, number, f"its label is {value!r}; a split without labels cannot be used")
    if known is not None and isinstance(value, int):
        if not 0 <= value < len(known):
            raise _wrong(name, number, f"its label is {value}; there are 0 to {len(known) - 1}")
        return str(known[value])
    return str(value).strip()


def _text(example: dict[str, Any], column: str, name: str, number: int) -> str:
    value = example.get(column)
    if not isinstance(value, str) or not value.strip():
        raise _wrong(name, number, f"its {column} is empty or is not text")
    return value.strip() if column != "context" else value          # answers are counted from the context's start


def _wrong(name: str, number: int, problem: str) -> DataError:
    return DataError(f"{name}, example {number}: {problem}.")


def _lacks(name: str, columns: Sequence[str], wanted: str) -> DataError:
    return DataError(f"{name} has the columns {', '.join(columns)}, and not {wanted}.")


def _some(records: list[Any], name: str) -> list[Any]:
    if not records:
        raise DataError(f"{name} has no examples that can be used.")
    return records
