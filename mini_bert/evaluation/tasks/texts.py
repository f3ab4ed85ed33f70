"""Text classification: one label per text, or per pair of texts."""

from collections import Counter
from collections.abc import Sequence
from os import PathLike
from typing import NamedTuple

import numpy as np

from ...core.config import ModelConfig
from ...core.modules.heads.tasks import Answers
from ...core.registry import register
from ...core.task_model import TaskModel
from ...errors import DataError
from ...text.tokenizer import Tokenizer
from ...training.workers import Workers
from ..formats.named import DataSource
from ..formats.reading import load_texts
from ..formats.tables import Labelled
from ..samples import sampled
from .bag_of_words import bag_of_words_accuracy
from .encode import Encoded, IntArray, encode_texts, with_masks
from .predict import labels_of_texts
from .scores import macro_f1
from .task import Task, notes_about, source_name

TextSource = DataSource | Sequence[Labelled]


class TextSet(NamedTuple):
    """An encoded development or test set."""

    records: list[Labelled]
    encoded: Encoded
    truth: IntArray


@register("task", "sst2")
@register("task", "classification")
class Classification(Task[TextSet]):
    """Texts, or pairs of texts, with one label each."""

    head = "sequence"
    answers = Answers.SEQUENCE

    def __init__(self, train: TextSource, dev: TextSource, tokenizer: Tokenizer, config: ModelConfig, *,
                 max_samples: int | None = None, seed: int = 0, test: TextSource | None = None):
        places = [train, dev] if test is None else [train, dev, test]
        read_all = [_read(place) for place in places]
        self.labels = sorted({record.label for record in read_all[0]})        # a sample may lack some
        if len(self.labels) < 2:
            raise DataError(f"{source_name(train)} has only the label {self.labels[0]!r}, so there is nothing to "
                            "learn.")
        given, *asked = [sampled(records, max_samples, seed, "samples") for records in read_all]
        self._train = given
        self.outputs, self.pairs = len(self.labels), given[0].pair is not None
        for place, records in zip(places, [given, *asked], strict=True):
            if any((record.pair is not None) != self.pairs for record in records):
                raise DataError(f"{source_name(place)} has {'single texts' if self.pairs else 'pairs of texts'}, but "
                                f"the training data begins with {'pairs' if self.pairs else 'single texts'}.")
        self._tokenizer, self._config = tokenizer, config
        encoded = [encode_texts(records, tokenizer, config.max_seq_length, self.labels,
                                with_types=config.token_types > 1, source=source_name(place))
                   for place, records in zip(places, [given, *asked], strict=True)]
        self.train = encoded[0]
        sets = [TextSet(records, made, np.array([answer for answer, in made.answers]))
                for records, made in zip(asked, encoded[1:], strict=True)]
        self.dev, self.measured = sets[0], sets[-1]
        read = [[(record.text, record.pair) for record in records] for records in (given, *asked)]
        self.notes = notes_about(read, {"too long, cut": sum(made.cut for made in encoded)})

    def texts(self) -> Sequence[Labelled]:
        return self._train

    def encoded(self, records: Sequence[Labelled]) -> Encoded:
        return encode_texts(with_masks(records, self._tokenizer), self._tokenizer, self._config.max_seq_length, [],
                            with_types=self._config.token_types > 1)

    def _figures(self, data: TextSet, model: TaskModel, team: Workers) -> dict[str, float]:
        predicted, _ = labels_of_texts(model, data.encoded, team)
        return {"accuracy": float((predicted == data.truth).mean()),
                "macro_f1": macro_f1(predicted, data.truth, self.outputs)}

    def majority(self) -> float:
        """The accuracy of always predicting the most frequent label."""
        most = Counter(record.label for record in self._train).most_common(1)[0][0]
        return sum(record.label == most for record in self.measured.records) / len(self.measured.records)

    def baselines(self) -> dict[str, float]:
        test = self.measured.records if self.has_test else None
        return {"majority": self.majority(),
                "bag of words": bag_of_words_accuracy(self._train, self.dev.records, self.labels, test)}


@register("task", "pair")
class Pairs(Classification):
    """Pairs of texts; single texts are refused."""

    def __init__(self, train: TextSource, dev: TextSource, tokenizer: Tokenizer, config: ModelConfig, *,
                 max_samples: int | None = None, seed: int = 0, test: TextSource | None = None):
        super().__init__(train, dev, tokenizer, config, max_samples=max_samples, seed=seed, test=test)
        if not self.pairs:
            raise DataError(f"{source_name(train)} has single texts; the task pair needs two columns of text, such as "
                            "sentence1 and sentence2.")


def _read(given: TextSource) -> Sequence[Labelled]:
    return load_texts(given) if isinstance(given, str | PathLike) else given
