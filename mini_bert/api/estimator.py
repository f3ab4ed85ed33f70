"""What scikit-learn asks of an object in a pipeline or a grid search, without scikit-learn.

The arguments of `__init__` are the parameters, kept as they are given; `fit` makes what ends in an underscore.
"""

import sys
from collections.abc import Iterable
from inspect import signature
from typing import Any, Self

import numpy as np

from ..errors import ConfigError, InputError


class Estimator:
    """The base of the classes for scikit-learn. `kind` is "classifier" or "transformer"."""

    kind: str

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments by name."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change arguments; they take effect when `fit` is called."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ConfigError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = [f"{name}={getattr(self, name)!r}" for name, parameter in signature(type(self)).parameters.items()
                   if getattr(self, name) != parameter.default]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return any(name.endswith("_") and not name.startswith("_") for name in vars(self))

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn wants to know of this object. It is there if it asks."""
        made = sys.modules["sklearn.utils"]
        classifies = self.kind == "classifier"
        return made.Tags(
            estimator_type="classifier" if classifies else None,
            target_tags=made.TargetTags(required=classifies),
            transformer_tags=None if classifies else made.TransformerTags(preserves_dtype=[]),
            classifier_tags=made.ClassifierTags() if classifies else None, regressor_tags=None,
            input_tags=made.InputTags(one_d_array=True, two_d_array=False, string=True), requires_fit=classifies)

    def _fitted(self, name: str) -> Any:
        if not hasattr(self, name):
            raise InputError(f"This {type(self).__name__} has not been fitted; call fit first.")
        return getattr(self, name)


def as_texts(X: Iterable[Any], *, pairs: bool = False) -> list[Any]:
    """A list of texts, or with `pairs` of pairs of texts; from lists, arrays and columns of a table alike."""
    if isinstance(X, str):
        raise InputError("A list of texts is needed, not one text; put it into a list.")
    texts = [tuple(one) if isinstance(one, list | tuple | np.ndarray) else one for one in X]
    for number, text in enumerate(texts):
        parts = text if isinstance(text, tuple) else (text,)
        if not 1 <= len(parts) <= 1 + pairs or not all(isinstance(part, str) for part in parts):
            wanted = "a text or a pair of texts" if pairs else "a text"
            raise InputError(f"Example {number} is {str(text)[:60]!r}, not {wanted}.")
    return [text[0] if isinstance(text, tuple) and len(text) == 1 else text for text in texts]
