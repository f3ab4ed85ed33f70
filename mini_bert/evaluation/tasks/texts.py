"""Classification: a label for a text, or for a pair of texts."""

from collections import Counter
from collections.abc import Sequence
from os import PathLike
from typing import NamedTuple

import numpy as np

from ...core.config import ModelConfig
from ...core.task_model import TaskModel
from ...errors import DataError
from ...text.wordpiece.tokenizer import WordPieceTokenizer
from ...training.workers import Workers
from ..formats.named import Place
from ..formats.reading import labelled_texts
from ..formats.tables import Labelled
from ..samples import sampled
from .bag_of_words import bag_of_words_accuracy
from .encode import Encoded, IntArray, encode_texts
from .predict import labels_of_texts
from .scores import macro_f1
from .task import Task, name_of, shared, sizes

Texts = Place | Sequence[Labelled]


class HeldTexts(NamedTuple):
    """Texts to measure on."""

    records: list[Labelled]
    encoded: Encoded
    truth: IntArray


class Classification(Task[HeldTexts]):
    """Texts, or pairs of texts, with a label each."""

    head = "sequence"

    def __init__(self, train: Texts, dev: Texts, tokenizer: WordPieceTokenizer, config: ModelConfig, *,
                 max_samples: int | None = None, seed: int = 0, test: Texts | None = None):
        places = [train, dev] if test is None else [train, dev, test]
        read_all = [_read(place) for place in places]
        self.labels = sorted({record.label for record in read_all[0]})        # of all, so that a sample may lack some
        if len(self.labels) < 2:
            raise DataError(f"{name_of(train)} has one label alone, {self.labels[0]!r}; there is nothing to tell "
                            "apart.")
        given, *asked = [sampled(records, max_samples, seed, "samples") for records in read_all]
        self._train = given
        self.outputs, self.pairs = len(self.labels), given[0].pair is not None
        for place, records in zip(places, [given, *asked], strict=True):
            if any((record.pair is not None) != self.pairs for record in records):
                raise DataError(f"{name_of(place)} has {'single texts' if self.pairs else 'pairs of texts'}, and the "
                                f"training began with {'pairs' if self.pairs else 'single texts'}.")
        encoded = [encode_texts(records, tokenizer, config.max_seq_length, self.labels,
                                with_types=config.token_types > 1, source=name_of(place))
                   for place, records in zip(places, [given, *asked], strict=True)]
        self.train = encoded[0]
        held = [HeldTexts(records, made, np.array([answer for answer, in made.answers]))
                for records, made in zip(asked, encoded[1:], strict=True)]
        self.dev, self.measured = held[0], held[-1]
        read = [[(record.text, record.pair) for record in records] for records in (given, *asked)]
        others = read[2] if test is not None else None
        self.notes = sizes(read[0], read[1], others) | {"too long, cut": sum(made.cut for made in encoded)} \
            | shared(read[0], read[1], others)

    def _figures(self, held: HeldTexts, model: TaskModel, team: Workers) -> dict[str, float]:
        predicted, _ = labels_of_texts(model, held.encoded, team)
        return {"accuracy": float((predicted == held.truth).mean()),
                "macro_f1": macro_f1(predicted, held.truth, self.outputs)}

    def majority(self) -> float:
        """The accuracy of the most frequent label."""
        most = Counter(record.label for record in self._train).most_common(1)[0][0]
        return sum(record.label == most for record in self.measured.records) / len(self.measured.records)

    def baselines(self) -> dict[str, float]:
        test = self.measured.records if self.has_test else None
        return {"majority": self.majority(),
                "bag of words": bag_of_words_accuracy(self._train, self.dev.records, self.labels, test)}


class Pairs(Classification):
    """Pairs of texts; a table of single texts is refused."""

    def __init__(self, train: Texts, dev: Texts, tokenizer: WordPieceTokenizer, config: ModelConfig, *,
                 max_samples: int | None = None, seed: int = 0, test: Texts | None = None):
        super().__init__(train, dev, tokenizer, config, max_samples=max_samples, seed=seed, test=test)
        if not self.pairs:
            raise DataError(f"{name_of(train)} has single texts; the task pair needs two columns of texts, such as "
                            "sentence1 and sentence2.")


def _read(given: Texts) -> Sequence[Labelled]:
    return labelled_texts(given) if isinstance(given, str | PathLike) else given
