"""The classifier of a probe, on frozen vectors: linear or with one hidden layer, optionally on a mix of layers.

    x      = gamma sum_l s_l x_l        s = softmax(mix_scores)        (with a mix of layers; otherwise x is the input)
    logits = x W + b                    or        logits = max(0, x W1 + b1) W + b

    dW = h^T dlogits   db = sum dlogits   dh = dlogits W^T             (h is x, or the hidden layer)
    dW1 = x^T dz       db1 = sum dz       dz = dh [z > 0]              dx = dz W1^T
    dgamma = sum_l s_l t_l                t_l = sum over rows of dx . x_l
    dmix_scores_l = gamma s_l (t_l - sum_k s_k t_k)

Trained with AdamW on the mean cross-entropy. The learning rate is halved after an epoch without improvement on the
development set, and the parameters of the best epoch are kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...core.arrays import Array, IntArray
from ...core.context import DropoutKey
from ...core.gradcheck import CheckResult, gradient_check
from ...core.ops.cross_entropy import cross_entropy_backward, cross_entropy_forward
from ...core.ops.softmax import softmax_backward, softmax_forward
from ...core.params import Gradients, Parameters, ParamSpec
from ...errors import InputError
from ...randomness import generator
from .fitting import Schedule, fit_probe
from .quantised_vectors import QuantisedVectors

Rows = Array | QuantisedVectors                # (N, H)
Features = Sequence[Rows]                 # one, or one per layer for a mix
_AT_A_TIME = 8192                         # rows of a prediction


@dataclass(frozen=True)
class Recipe:
    """Hyperparameters for training a probe classifier."""

    learning_rate: float = 4e-3
    batch_size: int = 512
    max_epochs: int = 20
    halvings: int = 3             # of the learning rate before training ends
    weight_decay: float = 0.01


class Classifier:
    """Maps rows of features to scores of classes."""

    def __init__(self, features: int, classes: int, *, hidden: int = 0, layers: int = 1, seed: int = 0,
                 dtype: npt.DTypeLike = np.float32):
        if min(features, classes, layers) < 1 or hidden < 0:
            raise InputError(f"A classifier of {layers} layers of {features} features, {hidden} hidden units and "
                             f"{classes} classes cannot be built: all but the hidden units must be at least 1.")
        self.hidden, self.layers = hidden, layers
        self.params = Parameters(self._layout(features, classes), dtype)
        self.params.initialise(seed)

    def _layout(self, features: int, classes: int) -> Iterator[ParamSpec]:
        if self.layers > 1:
            yield ParamSpec("mix_scores", (self.layers,))
            yield ParamSpec("mix_gamma", (1,), mean=1.0)
        if self.hidden:
            yield ParamSpec("W1", (features, self.hidden), std=sqrt(2 / features))
            yield ParamSpec("b1", (self.hidden,))
        yield ParamSpec("W", (self.hidden or features, classes), std=0.1 / sqrt(self.hidden or features))
        yield ParamSpec("b", (classes,))

    def forward(self, x: Sequence[Array]) -> tuple[Array, tuple[Any, ...]]:
        """One array (N, H) per layer -> logits (N, classes)."""
        p = self.params
        weights = None
        if self.layers > 1:
            weights, _ = softmax_forward(p["mix_scores"])
            mixed: Array = x[0] * (p["mix_gamma"] * weights[0])
            for weight, layer in zip(weights[1:], x[1:], strict=True):
                mixed += layer * (p["mix_gamma"] * weight)
        else:
            mixed = x[0]
        h = mixed
        if self.hidden:
            h = mixed @ p["W1"]
            h += p["b1"]
            np.maximum(h, 0, out=h)
        logits = h @ p["W"]
        logits += p["b"]
        return logits, (x, weights, mixed, h)

    def backward(self, dlogits: Array, cache: tuple[Any, ...], grads: Gradients) -> None:
        """dlogits (N, classes): adds the gradients of all parameters to `grads`."""
        x, weights, mixed, h = cache
        p = self.params
        ones = np.ones(len(dlogits), dlogits.dtype)               # sums over rows as products, which are faster
        grads.add_product("W", h, dlogits)                        # logits = h W + b
        grads.add("b", ones @ dlogits)
        if not self.hidden and weights is None:
            return
        dx = dlogits @ p["W"].T                                   # (N, hidden or H)
        if self.hidden:
            dx *= h > 0                                           # h = max(0, z)
            grads.add_product("W1", mixed, dx)                    # z = x W1 + b1
            grads.add("b1", ones @ dx)
        if weights is None:
            return
        if self.hidden:
            dx = dx @ p["W1"].T                                   # (N, H)
        # x = gamma sum_l s_l x_l
        along = np.array([np.vdot(dx, layer) for layer in x], dx.dtype)       # (L,)
        grads.add("mix_gamma", np.atleast_1d(weights @ along))
        grads.add("mix_scores", softmax_backward(p["mix_gamma"] * along, weights))

    def predict(self, x: Features) -> IntArray:
        """The most likely class of each row."""
        parts = [self.forward([layer[start : start + _AT_A_TIME] for layer in x])[0].argmax(axis=1)
                 for start in range(0, len(x[0]), _AT_A_TIME)]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def mix(self) -> list[float]:
        """The weight of each layer."""
        weights = softmax_forward(self.params["mix_scores"])[0] if self.layers > 1 else np.ones(1)
        return [float(weight) for weight in weights]


class TrainedClassifier(NamedTuple):
    """A classifier with the parameters of its best epoch."""

    classifier: Classifier
    epochs: int
    dev_accuracy: float


def train_classifier(train: Features, labels: IntArray, dev: Features, dev_labels: IntArray, classes: int, *,
                     hidden: int = 0, recipe: Recipe | None = None, seed: int = 0) -> TrainedClassifier:
    """Train on rows of features with their labels; stop by the accuracy on `dev`."""
    recipe = recipe or Recipe()
    if not len(labels) or not len(dev_labels):
        raise InputError(f"A classifier needs rows to train on and a development set; there are {len(labels)} "
                         f"and {len(dev_labels)} rows.")
    for x, y in ((train, labels), (dev, dev_labels)):
        if any(len(layer) != len(y) for layer in x):
            raise InputError(f"There are {len(x[0])} rows of features for {len(y)} labels.")
    if labels.min() < 0 or labels.max() >= classes:
        raise InputError(f"Labels are {labels.min()} to {labels.max()}; {classes} classes are 0 to {classes - 1}.")
    made = Classifier(train[0].shape[1], classes, hidden=hidden, layers=len(train), seed=seed, dtype=train[0].dtype)
    loss = _ClassifierLoss(made, train, labels, min(recipe.batch_size, len(labels)))

    def batches(epoch: int) -> list[IntArray]:
        order = generator(seed, "probe order", epoch).permutation(len(labels))
        return [order[start : start + loss.size] for start in range(0, len(order), loss.size)]

    found = fit_probe(loss, batches, lambda: float((made.predict(dev) == dev_labels).mean()),
                      Schedule(recipe.learning_rate, recipe.max_epochs, recipe.halvings, recipe.weight_decay))
    return TrainedClassifier(made, found.epochs, found.best)


class _ClassifierLoss:
    """The cross-entropy of a classifier on rows of features; a batch is the numbers of its rows."""

    main = "probe"
    losses: Mapping[str, float] = {main: 1.0}

    def __init__(self, classifier: Classifier, train: Features, labels: IntArray, size: int):
        self.classifier, self.train, self.labels, self.size = classifier, train, labels, size
        self.params = classifier.params
        self._rows = [np.empty((size, layer.shape[1]), layer.dtype) for layer in train]

    def micro_batches(self, batch: IntArray) -> list[IntArray]:
        return [batch]

    def counts(self, part: IntArray) -> Mapping[str, int]:
        return {self.main: len(part)}

    def add_gradients(self, part: IntArray, grads: Gradients, key: DropoutKey | None,
                      factors: Mapping[str, float]) -> Mapping[str, float]:
        rows = [_taken(layer, part, row[: len(part)]) for layer, row in zip(self.train, self._rows, strict=True)]
        logits, cache = self.classifier.forward(rows)
        total, loss = cross_entropy_forward(logits, self.labels[part], overwrite=True)
        self.classifier.backward(cross_entropy_backward(factors[self.main], loss, overwrite=True), cache, grads)
        return {self.main: total}


# ---------------------------------------------------------------- features and checks


def _taken(rows: Rows, some: IntArray, out: Array) -> Array:
    if isinstance(rows, QuantisedVectors):
        return rows.take(some, out)
    return np.take(rows, some, axis=0, out=out, mode="clip")


class Scaling(NamedTuple):
    """Standardisation of features: mean zero and deviation one on the set that it was computed from."""

    mean: Array
    deviation: Array

    @classmethod
    def of(cls, x: Rows) -> "Scaling":
        starts = range(0, len(x), _AT_A_TIME)
        mean = sum(x[start : start + _AT_A_TIME].sum(axis=0, dtype=np.float64) for start in starts) / len(x)
        squares = sum(np.einsum("ij,ij->j", part, part, dtype=np.float64)
                      for part in (x[start : start + _AT_A_TIME] - mean for start in starts))
        deviation = np.sqrt(squares / len(x))
        deviation[deviation < 1e-8] = 1           # a constant feature
        return cls(mean.astype(x.dtype), deviation.astype(x.dtype))

    def apply(self, x: Array) -> None:
        """Standardise x in place."""
        x -= self.mean
        x /= self.deviation


def gradient_checks(seed: int = 0) -> list[CheckResult]:
    """Check the gradients of c . logits, with random c, and of the loss, for each form of classifier."""
    results = []
    for case, hidden, layers in (("linear", 0, 1), ("MLP", 4, 1), ("mix, linear", 0, 3), ("mix, MLP", 4, 3)):
        rng = generator(seed, "gradcheck", "classifier", case)
        made = Classifier(5, 4, hidden=hidden, layers=layers, seed=seed, dtype=np.float64)
        made.params.flat += 0.5 * rng.standard_normal(made.params.flat.size)
        x = [rng.standard_normal((7, 5)) for _ in range(layers)]
        cotangent, targets = rng.standard_normal((7, 4)), rng.integers(0, 4, 7)

        def scores(made: Classifier = made, x: Sequence[Array] = x, cotangent: Array = cotangent) -> float:
            return float((made.forward(x)[0] * cotangent).sum())

        def loss(made: Classifier = made, x: Sequence[Array] = x, targets: IntArray = targets) -> float:
            return cross_entropy_forward(made.forward(x)[0], targets)[0]

        logits, cache = made.forward(x)
        slope = cross_entropy_backward(1.0, cross_entropy_forward(logits, targets)[1])
        for what, function, dlogits in (("random cotangent", scores, cotangent), ("cross-entropy", loss, slope)):
            grads = made.params.zeros_like()
            made.backward(dlogits, cache, grads)
            results += [CheckResult("probe classifier", f"{case}, {what}", name,
                                    gradient_check(function, made.params[name], grads[name]).error)
                        for name in made.params]
    return results
