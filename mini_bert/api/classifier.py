"""MiniBertClassifier: a fine-tuned model with the methods of a scikit-learn classifier."""

from collections.abc import Iterable
from os import PathLike
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..errors import DataError
from ..evaluation.formats.tables import Labelled
from ..evaluation.tasks.run import tune, usual_learning_rate
from ..evaluation.tasks.storage import SavedTask, save_task
from ..evaluation.tasks.texts import Classification
from ..training.finetune import FinetuneConfig
from .estimator import Estimator, as_texts
from .pipeline import Pipeline, pipeline


class MiniBertClassifier(Estimator):
    """Fine-tunes a model on texts, or on pairs of texts, with one label each.

    A tenth of the texts is set aside to decide when to stop; the parameters that are best there are kept.
    `learning_rate` None is 7e-4 for small models and 5e-5 for others, as in `mini-bert finetune`.
    """

    kind = "classifier"

    def __init__(self, model: str | PathLike[str] = "mini", *, epochs: int = 5, learning_rate: float | None = None,
                 batch_size: int = 32, seed: int = 0, threads: int = 0):
        self.model, self.epochs, self.learning_rate, self.batch_size = model, epochs, learning_rate, batch_size
        self.seed, self.threads = seed, threads

    def fit(self, X: Iterable[Any], y: Iterable[Any]) -> Self:
        """Fine-tune on the texts X (N) and their labels y (N), which may be text or numbers."""
        texts, labels = as_texts(X, pairs=True), np.asarray(list(y))
        if len(texts) != len(labels):
            raise DataError(f"There are {len(texts)} texts and {len(labels)} labels.")
        opened = pipeline(self.model)
        classes = np.unique(labels)
        records = [Labelled(text[0], text[1], str(label)) if isinstance(text, tuple) else
                   Labelled(text, None, str(label)) for text, label in zip(texts, labels.tolist(), strict=True)]
        task = Classification(records, None, opened.tokenizer, opened.model.config, seed=self.seed)
        rate = usual_learning_rate(opened.model) if self.learning_rate is None else self.learning_rate
        tuned, _ = tune(task, opened.model, FinetuneConfig(
            epochs=self.epochs, learning_rate=rate, batch_size=self.batch_size, seed=self.seed, threads=self.threads))
        self.classes_ = classes
        self.pipeline_ = Pipeline(f"{type(self).__name__} of {opened.name}", tuned, opened.tokenizer, SavedTask(
            tuned, opened.tokenizer, "classification", task.labels, task.pairs), threads=self.threads)
        return self

    def predict_proba(self, X: Iterable[Any]) -> npt.NDArray[np.float64]:
        """The probability of each class (N, C), in the order of `classes_`."""
        fitted, texts = self._fitted("pipeline_"), as_texts(X, pairs=True)
        names = [str(label) for label in self.classes_.tolist()]
        rows = [[found.probabilities[name] for name in names] for found in fitted.predict(texts)] if texts else []
        return np.array(rows, np.float64).reshape(len(rows), len(names))

    def predict(self, X: Iterable[Any]) -> npt.NDArray[Any]:
        """The most probable class of each text (N,)."""
        probabilities = self.predict_proba(X)
        found: npt.NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return found

    def score(self, X: Iterable[Any], y: Iterable[Any]) -> float:
        """The accuracy."""
        return float((self.predict(X) == np.asarray(list(y))).mean())

    def save(self, directory: str | PathLike[str]) -> None:
        """Write the model as `mini_bert.finetune` does, for `mini_bert.pipeline` and `mini-bert predict`."""
        fitted = self._fitted("pipeline_")
        save_task(directory, fitted.model, fitted.tokenizer, "classification", fitted.task.labels, {},
                  pairs=fitted.task.pairs)

