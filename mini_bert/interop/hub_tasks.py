"""Tasks from the Hugging Face hub, or from a local directory that `datasets` can read: hub:NAME[:CONFIG][:SPLIT].

    texts with labels     sentence or text, or a pair such as sentence1 and sentence2, and label, as in GLUE
    named entities        tokens and ner_tags, as in CoNLL
    questions             question, context and answers, as in SQuAD

The records are the same as those of the file readers. Numeric labels become names if the dataset declares them.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import DataError
from ..evaluation.formats.conllu import Sentence
from ..evaluation.formats.squad import Question, make_question
from ..evaluation.formats.tables import LABELS, Labelled
from ..evaluation.tasks.bio import as_bio, is_bio
from ..text.tables.columns import TEXTS
from .hub import open_dataset, read_examples


class HubTasks:
    """The task reader for hub: names."""

    def labelled(self, name: str) -> list[Labelled]:
        examples, columns = _open_examples(name)
        texts = next((wanted for wanted in TEXTS if all(column in columns for column in wanted)), None)
        label = next((column for column in LABELS if column in columns), None)
        if texts is None or label is None:
            raise _missing_columns(name, columns, "a text and its label, such as sentence and label")
        names, records = _label_names(examples, label), []
        for number, example in _numbered(examples, name):
            first, *others = (_text(example, column, name, number) for column in texts)
            records.append(Labelled(first, others[0] if others else None, _label(example[label], names, name, number)))
        return _require_some(records, name)

    def sentences(self, name: str) -> list[Sentence]:
        examples, columns = _open_examples(name)
        if not {"tokens", "ner_tags"} <= set(columns):
            raise _missing_columns(name, columns, "words and their entities: tokens and ner_tags")
        names, found = _label_names(examples, "ner_tags"), []
        for number, example in _numbered(examples, name):
            words, tags = example["tokens"], example["ner_tags"]
            if not isinstance(words, list) or not isinstance(tags, list) or len(words) != len(tags):
                raise _invalid(name, number, "tokens and ner_tags must be two lists of the same length")
            if words:
                labels = [_label(tag, names, name, number) for tag in tags]
                for label in labels:
                    if not is_bio(label):
                        raise _invalid(name, number, f"the label {label!r} must be O, B-TYPE or I-TYPE")
                found.append(Sentence(tuple(map(str, words)), entities=as_bio(labels)))
        return _require_some(found, name)

    def questions(self, name: str) -> tuple[list[Question], int]:
        examples, columns = _open_examples(name)
        if not {"question", "context", "answers"} <= set(columns):
            raise _missing_columns(name, columns, "question, context and answers")
        found = []
        for number, example in _numbered(examples, name):
            answers = example["answers"]
            texts, starts = (answers.get(key) if isinstance(answers, dict) else None
                             for key in ("text", "answer_start"))
            if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
                raise _invalid(name, number, "answers must have the lists text and answer_start")
            if not all(isinstance(text, str) for text in texts) or not all(type(start) is int for start in starts):
                raise _invalid(name, number, "each answer must have a text and a whole number as answer_start")
            found.append(make_question(str(example.get("id", number)), _text(example, "question", name, number),
                                       _text(example, "context", name, number), list(zip(texts, starts, strict=True))))
        usable = [question for question in _require_some(found, name) if question.start >= 0]
        return _require_some(usable, name), len(found) - len(usable)


def _open_examples(name: str) -> tuple[Any, list[str]]:
    """The examples of a dataset, and the names of its columns."""
    examples, columns = open_dataset(name)
    if not columns:
        raise DataError(f"{name} has no examples.")
    return examples, list(columns)


def _numbered(examples: Any, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    return enumerate(read_examples(examples, name, DataError))


def _label_names(examples: Any, column: str) -> Sequence[str] | None:
    """The declared names of the labels, of the column or of the items of its lists; None if not declared."""
    kind = (examples.features or {}).get(column)
    names = getattr(getattr(kind, "feature", kind), "names", None)
    return names if isinstance(names, list | tuple) else None


def _label(value: Any, names: Sequence[str] | None, name: str, number: int) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str | float) or str(value).strip() in ("", "-1"):
        raise _invalid(name, number, f"its label is {value!r}; choose a split that has labels")
    if names is not None and isinstance(value, int):
        if not 0 <= value < len(names):
            raise _invalid(name, number, f"its label must be from 0 to {len(names) - 1}, not {value}")
        return str(names[value])
    return str(value).strip()


def _text(example: dict[str, Any], column: str, name: str, number: int) -> str:
    value = example.get(column)
    if not isinstance(value, str) or not value.strip():
        raise _invalid(name, number, f"its {column} is empty or not a string")
    return value.strip() if column != "context" else value          # answer_start counts from its first character


def _invalid(name: str, number: int, problem: str) -> DataError:
    return DataError(f"{name}, example {number}: {problem}.")


def _missing_columns(name: str, columns: Sequence[str], wanted: str) -> DataError:
    return DataError(f"{name} needs {wanted}; its columns are {', '.join(columns)}.")


def _require_some(records: list[Any], name: str) -> list[Any]:
    if not records:
        raise DataError(f"{name} has no usable examples.")
    return records
