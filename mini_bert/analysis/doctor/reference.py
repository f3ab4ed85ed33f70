"""The loss curve of a shipped model, with which a run of the same model and vocabulary can be compared.

A curve is the held-out loss with 15 % of the tokens masked, as every run measures it, over the tokens seen. With
several seeds it has a band from the lowest to the highest of them. It is not extrapolated beyond its last point. Runs
with much larger or smaller batches take a different number of steps for the same tokens, and are not compared.
"""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...core.config import ModelConfig
from ...errors import CheckpointError, MiniBertError
from ...evaluation.probabilities import Floats
from ...evaluation.result import Result
from ...pretrained import model_directory, shipped_names
from ...readers import read_json
from ...text.vocabulary import Vocabulary
from .run_record import RunRecord, Unavailable

FILE = "reference.json"
MOST_BATCH_RATIO = 2.0        # tokens per step; doubling the batch costs a young run a few tenths of a nat
# settings of training and initialisation; all others define the model
_NOT_SHAPE = {"dropout", "attention_dropout", "init_std", "scale_residual_init"}


@dataclass(frozen=True, eq=False)
class ReferenceCurve:
    """A loss curve over tokens; `low` and `high` are NaN where there is no band."""

    name: str
    seeds: int
    tokens: Floats
    mean: Floats
    low: Floats
    high: Floats
    unigram: float                        # the unigram loss of its text, which says how hard the text is
    tokens_per_step: float

    def at(self, tokens: float) -> tuple[float, float | None, float | None]:
        """Mean, lowest and highest loss after `tokens`, interpolated."""
        low, high = (float(np.interp(tokens, self.tokens, edge)) for edge in (self.low, self.high))
        banded = np.isfinite(low) and np.isfinite(high)
        return float(np.interp(tokens, self.tokens, self.mean)), low if banded else None, high if banded else None

    def until(self, tokens: float) -> "ReferenceCurve":
        """The curve up to `tokens`, to be drawn together with a run."""
        rows = np.stack([self.tokens, self.mean, self.low, self.high])
        part = rows[:, self.tokens <= tokens]
        if self.tokens[0] < tokens < self.tokens[-1]:
            end = [[np.interp(tokens, self.tokens, row)] for row in rows]
            part = np.append(part, end, axis=1)
        return replace(self, tokens=part[0], mean=part[1], low=part[2], high=part[3])

    def to_dict(self) -> dict[str, list[float]]:
        """The curve and its band as lists, NaN where there is no band."""
        return {key: getattr(self, key).tolist() for key in ("tokens", "mean", "low", "high")}

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True)
class ReferenceComparison(Result):
    """The run's last held-out loss, and the reference curve after as many tokens; without a band, low and high are
    None."""

    name: str
    seeds: int
    tokens: float
    loss: float
    reference: float
    low: float | None
    high: float | None
    unigram: float                        # of the reference's text

    def __str__(self) -> str:
        apart = self.loss - self.reference
        band = f"; the band of {self.seeds} seeds is {self.low:.3f} to {self.high:.3f}" if self.low is not None else ""
        return (f"The held-out loss, 15 % masked, is {abs(apart):.3f} {'above' if apart > 0 else 'below'} the "
                f"reference curve of {self.name} at {self.tokens:,.0f} tokens ({self.reference:.3f}{band}).")


def reference_curve(run: RunRecord) -> ReferenceCurve:
    """The curve of the shipped model that the run trains; raises Unavailable if there is no comparable one."""
    shape, digest = _shape(run.description["model"]), run.description["data"].get("vocab_digest")
    try:
        name = next((name for name in shipped_names()
                     if _shape(_read(model_directory(name) / "config.json")) == shape), None)
        if name is None:
            raise Unavailable(f"no shipped model has its config; there are curves of {', '.join(shipped_names())}.")
        if digest != Vocabulary.read(model_directory(name) / "vocab.txt").digest():
            raise Unavailable("its vocabulary differs from the reference run's, so their losses cannot be compared.")
        return _curve(name, _read(model_directory(name) / FILE))
    except (MiniBertError, OSError, ValueError, KeyError, TypeError):
        raise Unavailable("the reference curve cannot be read.") from None


def compare_with_reference(run: RunRecord) -> ReferenceComparison:
    """Compare the last held-out loss with the curve of the same model."""
    reference, curve = reference_curve(run), run.heldout_curve
    if not len(curve):
        raise Unavailable("there is no held-out loss in its log yet.")
    seen, loss = float(curve.tokens[-1]), float(curve.losses[-1])
    first, last = float(reference.tokens[0]), float(reference.tokens[-1])
    if seen < 0.99 * first:                       # packing changes the tokens per batch by up to a hundredth
        raise Unavailable(f"the reference curve begins at {first:,.0f} tokens, and the run has seen {seen:,.0f}.")
    if seen > 1.01 * last:
        raise Unavailable(f"the reference curve ends at {last:,.0f} tokens, and the run has seen {seen:,.0f}.")
    step, usual = seen / float(curve.steps[-1]), reference.tokens_per_step
    if not 1 / MOST_BATCH_RATIO <= step / usual <= MOST_BATCH_RATIO:
        raise Unavailable(f"it reads {step:,.0f} tokens per step and the reference run {usual:,.0f}, so their losses "
                          "after as many tokens cannot be compared.")
    return ReferenceComparison(reference.name, reference.seeds, seen, loss, *reference.at(min(max(seen, first), last)),
                      reference.unigram)


def _shape(model: dict[str, Any]) -> dict[str, Any]:
    """The settings that define a model, with defaults for missing ones."""
    defaults = ModelConfig().to_dict()
    return {field.name: model.get(field.name, defaults[field.name]) for field in fields(ModelConfig)
            if field.name not in _NOT_SHAPE}


def _read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = read_json(path, CheckpointError)
    return content


def _curve(name: str, content: dict[str, Any]) -> ReferenceCurve:
    """The curve in a reference file. There is no band beyond `band_until`, where not all seeds were trained."""
    tokens, mean, low, high = (np.array([np.nan if value is None else value for value in content[key]], np.float64)
                               for key in ("tokens", "mean", "low", "high"))
    if not len(tokens) or not len(tokens) == len(mean) == len(low) == len(high):
        raise ValueError(f"The lists in {FILE} of {name} differ in length.")
    seeds = len(content["seeds"])
    without = tokens > (float(content.get("band_until", tokens[-1])) if seeds > 1 else -np.inf)
    return ReferenceCurve(name, seeds, tokens, mean, np.where(without, np.nan, low), np.where(without, np.nan, high),
                     float(content["unigram_loss"]), float(content["tokens_a_step"]))
