"""The tasks that a model can be fine-tuned for, each with its data, its figures and its baselines.

    classification   a label for a text, or for a pair of texts        accuracy, macro F1
    ner              a BIO label for each word                         F1 of entities, accuracy of words
    qa               a stretch of a text that answers a question       F1 and exact match, as SQuAD has them
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from ...core.config import ModelConfig
from ...core.task_model import TaskModel
from ...errors import DataError
from ...randomness import generator
from ...text.tokenizer import WordPieceTokenizer
from ...training.workers import Workers
from ..formats.conll import entity_f1
from ..formats.conllu import Sentence
from ..formats.named import Place
from ..formats.reading import asked_questions, labelled_texts, labelled_words
from ..formats.squad import Question
from ..formats.tables import Labelled
from ..samples import sampled
from .bag_of_words import bag_of_words_accuracy
from .encode import Encoded, encode_questions, encode_texts, encode_words
from .predict import answers, labels_of_texts, labels_of_words
from .scores import answer_f1, exact_match, macro_f1

Texts = Place | Sequence[Labelled]
Words = Place | Sequence[Sentence]
Asked = Place | Sequence[Question]
_STRIDE = 0.5                 # of a window, between the beginnings of two


class Task(ABC):
    """Data of a task, encoded for one model: files, registered names such as hub:NAME, or records that were read.

    The first of its figures is the one that training raises.
    """

    head: str
    outputs: int
    labels: list[str]
    train: Encoded
    notes: dict[str, Any]     # how many were cut, left out and the like

    @abstractmethod
    def figures(self, model: TaskModel, team: Workers) -> dict[str, float]:
        """Of the model on the development set."""

    @abstractmethod
    def baselines(self) -> dict[str, float]:
        """The first figure, as it is without a model of sequences."""

    def reduced(self, share: float, seed: int) -> Encoded:
        """A part of the training data, for learning curves."""
        rng = generator(seed, "share", str(share))
        owners = sorted(set(self.train.owners))
        kept = set(rng.choice(owners, max(1, round(share * len(owners))), replace=False).tolist())
        chosen = [i for i, owner in enumerate(self.train.owners) if owner in kept]
        train = self.train
        return type(train)(train.pad, [train.rows[i] for i in chosen],
                           None if train.types is None else [train.types[i] for i in chosen],
                           [train.answers[i] for i in chosen],
                           None if train.places is None else [train.places[i] for i in chosen],
                           [train.owners[i] for i in chosen], train.cut)


class Classification(Task):
    """Texts, or pairs of texts, with a label each."""

    head = "sequence"

    def __init__(self, train: Texts, dev: Texts, tokenizer: WordPieceTokenizer, config: ModelConfig, *,
                 max_samples: int | None = None, seed: int = 0):
        self._train, self._dev = (sampled(_with_labels(some), max_samples, seed, "samples") for some in (train, dev))
        self.labels = sorted({record.label for record in self._train})
        if len(self.labels) < 2:
            raise DataError(f"{_name(train)} has one label alone, {self.labels[0]!r}; there is nothing to tell apart.")
        self.outputs = len(self.labels)
        longest, types = config.max_seq_length, config.token_types > 1
        self.train = encode_texts(self._train, tokenizer, longest, self.labels, with_types=types, source=_name(train))
        self._encoded = encode_texts(self._dev, tokenizer, longest, self.labels, with_types=types, source=_name(dev))
        self._truth = np.array([answer for answer, in self._encoded.answers])
        self.notes = {"train": len(self._train), "dev": len(self._dev),
                      "too long, cut": self.train.cut + self._encoded.cut}

    def figures(self, model: TaskModel, team: Workers) -> dict[str, float]:
        predicted, _ = labels_of_texts(model, self._encoded, team)
        return {"accuracy": float((predicted == self._truth).mean()),
                "macro_f1": macro_f1(predicted, self._truth, self.outputs)}

    def majority(self) -> float:
        """The accuracy of the most frequent label."""
        most = Counter(record.label for record in self._train).most_common(1)[0][0]
        return sum(record.label == most for record in self._dev) / len(self._dev)

    def baselines(self) -> dict[str, float]:
        return {"majority": self.majority(),
                "bag of words": bag_of_words_accuracy(self._train, self._dev, self.labels)}


class Entities(Task):
    """Words with BIO labels, from CoNLL or CoNLL-U files."""

    head = "tokens"

    def __init__(self, train: Words, dev: Words, tokenizer: WordPieceTokenizer, config: ModelConfig, *,
                 max_samples: int | None = None, seed: int = 0):
        self._train, self._dev = (sampled(_with_entities(some), max_samples, seed, "samples") for some in (train, dev))
        given = {label for sentence in self._train for label in _entities(sentence)}
        self.labels = sorted(given, key=lambda label: (label != "O", label))
        self.outputs = len(self.labels)
        numbers = {label: i for i, label in enumerate(self.labels)}
        self._truth = [_entities(sentence) for sentence in self._dev]
        unseen = Counter(label for row in self._truth for label in row if label not in numbers)
        self.train = encode_words([s.words for s in self._train],
                                  [[numbers[label] for label in _entities(s)] for s in self._train], tokenizer,
                                  config.max_seq_length)
        self._encoded = encode_words([s.words for s in self._dev], None, tokenizer, config.max_seq_length)
        self.notes = {"train": len(self._train), "dev": len(self._dev),
                      "too long, in several parts": self.train.cut + self._encoded.cut,
                      "words with labels unseen in training, which count as wrong": sum(unseen.values())}

    def figures(self, model: TaskModel, team: Workers) -> dict[str, float]:
        found = [[self.labels[i] for i in row] for row in labels_of_words(model, self._encoded, len(self._dev), team)]
        pairs = [(a, b) for ours, theirs in zip(found, self._truth, strict=True)
                 for a, b in zip(ours, theirs, strict=True)]
        return {"entity_f1": entity_f1(self._truth, found), "word_accuracy": sum(a == b for a, b in pairs) / len(pairs)}

    def baselines(self) -> dict[str, float]:
        seen: dict[str, Counter[str]] = {}
        for sentence in self._train:
            for word, label in zip(sentence.words, _entities(sentence), strict=True):
                seen.setdefault(word.lower(), Counter())[label] += 1
        memory = {word: counts.most_common(1)[0][0] for word, counts in seen.items()}
        return {"word-type memory": entity_f1(self._truth, [[memory.get(word.lower(), "O") for word in s.words]
                                                            for s in self._dev])}


class Questions(Task):
    """Questions whose answer is a stretch of a text."""

    head, outputs = "span", 2

    def __init__(self, train: Asked, dev: Asked, tokenizer: WordPieceTokenizer, config: ModelConfig, *,
                 max_samples: int | None = None, seed: int = 0):
        (given, lost_train), (asked, lost_dev) = map(_with_answers, (train, dev))
        given, self._dev = (sampled(some, max_samples, seed, "samples") for some in (given, asked))
        self.labels = []
        longest, types = config.max_seq_length, config.token_types > 1
        stride = max(1, int(_STRIDE * longest / 2))
        self.train = encode_questions(given, tokenizer, longest, stride=stride, with_types=types).encoded
        self._windows = encode_questions(self._dev, tokenizer, longest, stride=stride, with_types=types)
        self.notes = {"train": len(given), "dev": len(self._dev), "windows of the training": len(self.train.rows),
                      "left out, as the answer is not in the text": lost_train + lost_dev,
                      "answerable in some window": self._windows.answerable / len(self._dev)}

    def figures(self, model: TaskModel, team: Workers) -> dict[str, float]:
        found = answers(model, self._windows, self._dev, team)
        pairs = [(answer.text, question.answers) for answer, question in zip(found, self._dev, strict=True)]
        return {"f1": float(np.mean([answer_f1(*pair) for pair in pairs])),
                "exact_match": float(np.mean([exact_match(*pair) for pair in pairs]))}

    def baselines(self) -> dict[str, float]:
        """The sentence with the most words of the question, and a random span of three words."""
        rng = generator(0, "spans")
        sentence, guess = [], []
        for item in self._dev:
            asked = set(item.question.lower().split())
            parts = item.context.split(". ")
            sentence.append(answer_f1(max(parts, key=lambda part: len(asked & set(part.lower().split()))),
                                      item.answers))
            words = item.context.split()
            start = int(rng.integers(max(1, len(words) - 2)))
            guess.append(answer_f1(" ".join(words[start : start + 3]), item.answers))
        return {"sentence with most words of the question": float(np.mean(sentence)),
                "three words at random": float(np.mean(guess))}


def _with_answers(given: Asked) -> tuple[Sequence[Question], int]:
    return asked_questions(given) if isinstance(given, str | PathLike) else (given, 0)


def _with_labels(given: Texts) -> Sequence[Labelled]:
    return labelled_texts(given) if isinstance(given, str | PathLike) else given


def _with_entities(given: Words) -> Sequence[Sentence]:
    sentences = labelled_words(given) if isinstance(given, str | PathLike) else given
    if not any(sentence.entities for sentence in sentences):
        raise DataError(f"{_name(given)} has no named entities: neither Entity= in its last column nor BIO labels.")
    return sentences


def _name(given: Place | Sequence[Any]) -> str:
    return str(given) if isinstance(given, str | PathLike) else "The data"


def _entities(sentence: Sentence) -> Sequence[str]:
    return sentence.entities if sentence.entities is not None else ["O"] * len(sentence.words)


TASKS: dict[str, type[Classification] | type[Entities] | type[Questions]] = {
    "sst2": Classification, "classification": Classification, "pair": Classification, "ner": Entities,
    "qa": Questions}
