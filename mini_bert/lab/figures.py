"""How the figures of a comparison are shown: names, digits and order."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .comparison import Comparison, spread


class Figure(NamedTuple):
    """A column: the key of its figure, its heading, and whether it is a share, shown in percent, or a number."""

    key: str
    heading: str
    share: bool = False

    def shown(self, values: Sequence[float]) -> str:
        """The mean, and half of the range where there are several values: 56.6±0.3; a dash without values."""
        found = spread(values)
        if found is None:
            return "–"
        scale, digits = (100, 1) if self.share else (1, 3)
        margin = scale * (found["highest"] - found["lowest"]) / 2
        return f"{scale * found['mean']:.{digits}f}" + (f"±{margin:.{digits}f}" if len(values) > 1 else "")

    def of(self, scores: Mapping[str, float | None]) -> list[float]:
        """Its value among those of one scorer, as a list: empty, if there is none."""
        value = scores.get(self.key)
        return [] if value is None else [value]

    def shown_range(self, values: Sequence[float]) -> str:
        """The mean, and the lowest and the highest value: 56.6 (56.3 to 56.9)."""
        found = spread(values)
        if found is None:
            return "–"
        scale, digits = (100, 1) if self.share else (1, 3)
        mean, low, high = (f"{scale * found[name]:.{digits}f}" for name in ("mean", "lowest", "highest"))
        return f"{mean} ({low} to {high})" if len(values) > 1 else mean


ZERO_SHOT = (Figure("loss", "held-out"), Figure("mask_loss", "hidden"), Figure("causal_loss", "causal"),
             Figure("blimp", "BLiMP", share=True), Figure("agreement", "attractor", share=True))

EXPLAINED = (
    "held-out: loss with 15 % of the tokens chosen (80 % [MASK], 10 % another token, 10 % kept); hidden: the same "
    "tokens, all hidden; causal: the next token of the same sequences. BLiMP: the mean over paradigms, by "
    "pseudo-log-likelihood, for causal models by log-likelihood, for replaced tokens by the log-odds that they are "
    "original. Attractor: verbs with exactly one. A dash: the model has no such figure. ±: half of the "
    "range over the seeds.")


def tunings(comparison: Comparison) -> list[Figure]:
    """The columns of fine-tuning that there are."""
    keys = dict.fromkeys(key for row in comparison.rows for outcome in row.outcomes for key in outcome.scores
                         if key.startswith("sst2_"))
    return [Figure(key, f"{int(key.removeprefix('sst2_')):,} examples", share=True) for key in keys]


def amount(number: float) -> str:
    """4,498,880 as 4.50M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.0f}"
