"""MiniBertVectorizer: texts to vectors, as a step of a scikit-learn pipeline."""

from collections.abc import Iterable
from os import PathLike
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .estimator import Estimator, as_texts
from .pipeline import pipeline


class MiniBertVectorizer(Estimator):
    """A vector for each text: the mean of its tokens' hidden states.

    It learns nothing from the texts, so `transform` needs no `fit`.
    """

    kind = "transformer"

    def __init__(self, model: str | PathLike[str] = "mini", *, normalise: bool = True, batch_size: int = 256):
        self.model, self.normalise, self.batch_size = model, normalise, batch_size

    def fit(self, X: Iterable[str], y: Any = None) -> Self:
        """Open the model."""
        self.pipeline_ = pipeline(self.model)
        return self

    def transform(self, X: Iterable[str]) -> npt.NDArray[np.float32]:
        """Vectors (N, H)."""
        opened = self.pipeline_ if hasattr(self, "pipeline_") else pipeline(self.model)
        return opened.embed(as_texts(X), normalise=self.normalise, batch_size=self.batch_size)

    def fit_transform(self, X: Iterable[str], y: Any = None) -> npt.NDArray[np.float32]:
        return self.fit(X).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        width = self._fitted("pipeline_").model.config.hidden_size
        return np.array([f"minibert{number}" for number in range(width)], object)
