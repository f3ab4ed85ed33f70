"""The shipped model's own curve, which a run of the same model on the same vocabulary can be held against.

A curve is the held-out loss with 15 % of the tokens masked, as every run measures it, over the tokens seen. Where it
was trained from several seeds it has a band, the lowest and the highest of them; with one seed there is none, and
nothing is said beyond the last point. Runs with much larger or smaller batches take another number of steps for the
same tokens, and are not held against it.
"""

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...core.config import ModelConfig
from ...errors import MiniBertError
from ...evaluation.probabilities import Floats
from ...pretrained import model_directory, shipped_names
from ...text.vocabulary import Vocabulary
from .run_record import NotThere, RunRecord

FILE = "reference.json"
ANOTHER_BATCH = 2.0           # times the tokens of a step: twice the batch costs a young run a few tenths of a nat
# what a model is trained with or begins with; all other settings are what it is
_BESIDES = {"dropout", "attention_dropout", "init_std", "scale_residual_init"}


@dataclass(frozen=True, eq=False)
class Reference:
    """A curve; `low` and `high` are NaN where there is no band."""

    name: str
    seeds: int
    tokens: Floats
    mean: Floats
    low: Floats
    high: Floats
    unigram: float                        # of its text: that of another may be harder or easier
    tokens_a_step: float

    def at(self, tokens: float) -> tuple[float, float | None, float | None]:
        """Mean, lowest and highest after so many tokens, between the first point and the last."""
        low, high = (float(np.interp(tokens, self.tokens, edge)) for edge in (self.low, self.high))
        banded = np.isfinite(low) and np.isfinite(high)
        return float(np.interp(tokens, self.tokens, self.mean)), low if banded else None, high if banded else None

    def until(self, tokens: float) -> "Reference":
        """The part of the curve up to so many tokens, for a picture of a run that has seen those."""
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
class Comparison:
    """The run's last held-out loss beside the curve of `name` after as many tokens; no band: low and high are None."""

    name: str
    seeds: int
    tokens: float
    loss: float
    reference: float
    low: float | None
    high: float | None
    unigram: float                        # of the reference's text

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        apart = self.loss - self.reference
        band = f"; the band of {self.seeds} seeds is {self.low:.3f} to {self.high:.3f}" if self.low is not None else ""
        return (f"The held-out loss, 15 % masked, is {abs(apart):.3f} {'above' if apart > 0 else 'below'} the "
                f"reference curve of {self.name} at {self.tokens:,.0f} tokens ({self.reference:.3f}{band}).")


def reference_of(run: RunRecord) -> Reference:
    """The curve of the shipped model that the run trains; NotThere where there is none, or none to compare with."""
    shape, digest = _shape(run.description["model"]), run.description["data"].get("vocab_digest")
    try:
        name = next((name for name in shipped_names()
                     if _shape(_read(model_directory(name) / "config.json")) == shape), None)
        if name is None:
            raise NotThere(f"no shipped model has its shape; there are curves of {', '.join(shipped_names())}.")
        if digest != Vocabulary.read(model_directory(name) / "vocab.txt").digest():
            raise NotThere("its vocabulary is not that of the reference curve, so their losses cannot be compared.")
        return _curve(name, _read(model_directory(name) / FILE))
    except (MiniBertError, OSError, ValueError, KeyError, TypeError):
        raise NotThere("the reference curve cannot be read.") from None


def compared_with_reference(run: RunRecord) -> Comparison:
    """The last held-out loss beside the curve of the same model."""
    reference, curve = reference_of(run), run.heldout_curve
    if not len(curve):
        raise NotThere("there is no held-out loss in its log yet.")
    seen, loss = float(curve.tokens[-1]), float(curve.losses[-1])
    first, last = float(reference.tokens[0]), float(reference.tokens[-1])
    if seen < 0.99 * first:                       # a hundredth more or less is how batches were packed
        raise NotThere(f"the reference curve begins at {first:,.0f} tokens, and the run has seen {seen:,.0f}.")
    if seen > 1.01 * last:
        raise NotThere(f"the reference curve ends at {last:,.0f} tokens, and the run has seen {seen:,.0f}.")
    step, usual = seen / float(curve.steps[-1]), reference.tokens_a_step
    if not 1 / ANOTHER_BATCH <= step / usual <= ANOTHER_BATCH:
        raise NotThere(f"it reads {step:,.0f} tokens a step and the reference run {usual:,.0f}, so after as many "
                       "tokens their losses cannot be compared.")
    return Comparison(reference.name, reference.seeds, seen, loss, *reference.at(min(max(seen, first), last)),
                      reference.unigram)


def _shape(model: dict[str, Any]) -> dict[str, Any]:
    """What a model is, by its settings; those that are not said have their defaults."""
    defaults = ModelConfig().to_dict()
    return {field.name: model.get(field.name, defaults[field.name]) for field in fields(ModelConfig)
            if field.name not in _BESIDES}


def _read(path: Path) -> dict[str, Any]:
    content = json.loads(path.read_text("utf-8"))
    if not isinstance(content, dict):
        raise ValueError(f"{path} is not an object.")
    return content


def _curve(name: str, content: dict[str, Any]) -> Reference:
    """`low` and `high` may be null, and are so beyond `band_until`, where not all seeds were trained."""
    tokens, mean, low, high = (np.array([np.nan if value is None else value for value in content[key]], np.float64)
                               for key in ("tokens", "mean", "low", "high"))
    if not len(tokens) or not len(tokens) == len(mean) == len(low) == len(high):
        raise ValueError(f"The lists of {name}'s {FILE} are not of one length.")
    seeds = len(content["seeds"])
    without = tokens > (float(content.get("band_until", tokens[-1])) if seeds > 1 else -np.inf)
    return Reference(name, seeds, tokens, mean, np.where(without, np.nan, low), np.where(without, np.nan, high),
                     float(content["unigram_loss"]), float(content["tokens_a_step"]))
