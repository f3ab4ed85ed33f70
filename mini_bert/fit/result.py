"""The result of a fit, with a verdict in one sentence."""

from dataclasses import dataclass
from pathlib import Path
from signal import Signals
from typing import Any

from ..evaluation.masked_lm import MaskedReport
from ..inference.examples import Example
from ..report.fit_page import judged


@dataclass(frozen=True, repr=False)
class FitResult:
    """The result of a fit."""

    model: Path                           # a directory for mini_bert.load and --model
    report: Path
    heldout: MaskedReport | None          # None if nothing could be held out
    before: MaskedReport | None           # of the initial model, on the same text and masks
    examples: list[Example]
    facts: dict[str, str]

    @property
    def verdict(self) -> str:
        """How far the model has come; one that is better than bigrams uses more than the word before."""
        return judged(self.heldout, self.before)[0]

    def __repr__(self) -> str:
        return f"{self.verdict}\nThe model: {self.model}\nThe report: {self.report}"

    def __fspath__(self) -> str:
        """The model's directory: what is fitted can be given wherever a model's name is expected."""
        return str(self.model)

    def to_dict(self) -> dict[str, Any]:
        return {"verdict": self.verdict, "facts": self.facts,
                "heldout": self.heldout.to_dict() if self.heldout else None,
                "before": self.before.to_dict() if self.before else None,
                "examples": [{"text": example.text, "truth": example.truth,
                              "candidates": [[c.token, round(c.probability, 4)] for c in example.candidates]}
                             for example in self.examples]}


@dataclass(frozen=True)
class Stopped:
    """Training was interrupted by a signal; the same call continues it."""

    signal: Signals
    saved: bool
