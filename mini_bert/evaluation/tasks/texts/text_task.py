"""What tasks about texts share: reading the files, setting examples aside, encoding, metrics and baselines.

A kind of answer says how a record's answer becomes numbers, which loss they are learned with, and what its metrics are.
"""

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from os import PathLike
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ....core.arrays import Array, Targets
from ....core.config import ModelConfig
from ....core.modules.heads.tasks import Answers
from ....core.task_model import TaskModel
from ....errors import DataError
from ....text.tokenizer import Tokenizer
from ....workers import Workers
from ...formats.named import DataSource
from ...formats.reading import load_labelled
from ...formats.tables import Columns, Labelled
from ...samples import sampled, set_aside
from ..encode import Encoded, encode_texts, with_masks
from ..metrics.metric import Metric, metrics_from
from ..predict import values_of_texts
from ..task import DEV_SHARE, Task, notes_about, source_name
from .bag_of_words import Answered, bag_of_words

TextSource = DataSource | Sequence[Labelled]


class TextSet(NamedTuple):
    """An encoded development or test set."""

    records: list[Labelled]
    encoded: Encoded
    truth: Targets


class TextTask(Task[TextSet]):
    """Texts, or pairs of texts, with an answer each. Without `dev`, a tenth of the training data is set aside for it;
    `max_samples` limits both, and leaves a test set as it is."""

    head = "sequence"
    answers = Answers.SEQUENCE
    form: ClassVar[type[Encoded]] = Encoded           # of the encoded answers
    metric_type: ClassVar[type[Metric]]
    usual_metrics: ClassVar[tuple[str, ...]]          # the first is the main one
    without_answer: ClassVar[bool] = False            # may a label be empty?
    same_answer: ClassVar[str]                        # what the baseline is called that answers all texts alike

    def __init__(self, train: TextSource, dev: TextSource | None, tokenizer: Tokenizer, config: ModelConfig, *,
                 max_samples: int | None = None, seed: int = 0, test: TextSource | None = None,
                 columns: Columns | None = None, metric: str | None = None):
        self.metrics = metrics_from(self.usual_metrics, metric, self.metric_type)
        given, self.columns = self._read(train, columns, None)
        self._learn_answers(given, source_name(train))                    # of all, since a sample may lack some
        if dev is None:
            there = set(set_aside([(record.text, record.pair) for record in given],
                                  [self._stratum(record) for record in given], DEV_SHARE, seed, "development set"))
            held = [given[i] for i in sorted(there)]
            given = [record for i, record in enumerate(given) if i not in there]
            self.said.append(f"{len(held):,} of {len(held) + len(given):,} examples are set aside as the "
                             "development set.")
        else:
            held, _ = self._read(dev, columns, self.columns)
        held, given = (sampled(records, max_samples, seed, "samples") for records in (held, given))
        asked = [(held, train if dev is None else dev)]
        if test is not None:
            asked.append((self._read(test, columns, self.columns)[0], test))
        self._train, self._tokenizer, self._config = given, tokenizer, config
        self.pairs = given[0].pair is not None
        for records, place in [(given, train), *asked]:
            if any((record.pair is not None) != self.pairs for record in records):
                raise DataError(f"{source_name(place)} has {'single texts' if self.pairs else 'pairs of texts'}, but "
                                f"the training data begins with {'pairs' if self.pairs else 'single texts'}.")
        self.train = self._encoded(given, source_name(train))
        sets = []
        for records, place in asked:
            made = self._encoded(records, source_name(place))
            rows = np.flatnonzero(np.diff(made.owners, prepend=-1)).tolist()          # one for each text
            sets.append(TextSet(records, made, self.form.targets([made.answers[row] for row in rows])))
        self.dev, self.measured = sets[0], sets[-1]
        everything = [self.train, *(part.encoded for part in sets)]
        read: list[Sequence[Hashable]] = [[(record.text, record.pair) for record in records]
                                          for records in (given, *(records for records, _ in asked))]
        self.notes = notes_about(read, {"longer than the model reads at once": sum(e.split for e in everything)} | (
            {"of pairs, the shorter text cut": cut} if (cut := sum(e.parts_cut for e in everything)) else {}))

    def _read(self, given: TextSource, columns: Columns | None,
              known: Columns | None) -> tuple[list[Labelled], Columns | None]:
        """The examples of a file, and the columns that they were read from, which other files may have, too."""
        if not isinstance(given, str | PathLike):
            return list(given), columns
        found = load_labelled(given, columns, empty_labels=self.without_answer, known=known)
        self.said += [found.says] if found.says else []
        return found.records, found.columns

    def _encoded(self, records: Sequence[Labelled], source: str) -> Encoded:
        return encode_texts(records, self._tokenizer, self._config.max_seq_length, self._answers(records, source),
                            with_types=self._config.token_types > 1, form=self.form)

    def encoded(self, records: Sequence[Labelled]) -> Encoded:
        return encode_texts(with_masks(records, self._tokenizer), self._tokenizer, self._config.max_seq_length, [],
                            with_types=self._config.token_types > 1)

    # ---------------------------------------------------------------- what a kind of answer says

    @abstractmethod
    def _learn_answers(self, records: Sequence[Labelled], source: str) -> None:
        """Set `labels`, `outputs` and, if it depends on the data, `loss`; refuse what cannot be learned."""

    @abstractmethod
    def _answers(self, records: Sequence[Labelled], source: str) -> list[list[float]]:
        """The numbers of each record's answer."""

    @abstractmethod
    def _stratum(self, record: Labelled) -> Any:
        """What sets that are split should have equal shares of."""

    @abstractmethod
    def _constant(self) -> Array:
        """The best values (C,) for somebody who has not read the text."""

    # ---------------------------------------------------------------- metrics

    def _figures(self, data: TextSet, model: TaskModel, team: Workers) -> dict[str, float]:
        values = values_of_texts(model, data.encoded, team)
        return {name: metric(values, data.truth) for name, metric in self.metrics.items()}

    @property
    def main(self) -> Metric:
        return next(iter(self.metrics.values()))

    def majority(self, metric: str | None = None) -> float:
        """The main metric, or another one, of giving the same answer to everything."""
        values = np.tile(self._constant(), (len(self.measured.records), 1))
        return (self.main if metric is None else self.metrics[metric])(values, self.measured.truth)

    def baselines(self) -> dict[str, float]:
        sets: list[Answered] = [(self._train, self.form.targets(self._answers(self._train, "The data")))]
        sets += [(part.records, part.truth) for part in (self.dev, self.measured)]
        return {self.same_answer: self.majority(),
                "bag of words": bag_of_words(sets, self.outputs, self.loss, self.main)}
