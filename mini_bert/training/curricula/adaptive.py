"""Adaptive masking: tokens that the model does not find are asked for more often.

    every 200 steps, for each token v of the vocabulary, asked for n_v times and found r_v times since the last time,

        acc_v = (r_v + 1/2) / (n_v + 1)                 a half where v was not asked for
        w_v  <-  0.2 w_v + 0.8 p (1 - acc_v)            p: the masking rate
        w_v  <-  max(w_v, 0.005)                        the floor: what is known is asked for now and then
        w_v  <-  p w_v / mean of w                      the weights keep the mean p

from w_v = p (Edman and Fraser, 2025). What is kept here is w_v / p, whose mean is 1. A token counts as found if no
other is likelier, which the loss knows already (core/ops/cross_entropy.py), so counting costs no pass over the logits.
The counts are whole numbers: their sum is the same in any order. Derivation, and what goes wrong without the floor and
the mean: docs/math/adaptive_masking.md

What was learned up to step s is in force from step s + `every` on. So batches can be made up to `every` steps ahead of
the step that takes them, and a resumed run has the same ones.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.registry import register
from ...errors import CheckpointError, ConfigError
from ...text.masking import BoolArray, Floats, IntArray, MaskingWeights

HARDEST = 0.1                 # of the vocabulary, whose share of all weight is logged
_STATE = "masking_"           # its names in a checkpoint


@register("masking_weights", "even")
def even(ordinary: BoolArray) -> MaskingWeights | None:
    """All tokens alike."""
    return None


def next_weights(w: Floats, counts: IntArray, p: float, keep: float = 0.2, floor: float = 0.005) -> Floats:
    """One step of the rule: weights (V,), counts (2, V), asked for and found, of the tokens that can be masked."""
    asked, found = counts
    accuracy = (found + 0.5) / (asked + 1)
    new = np.maximum(keep * w + (1 - keep) * p * (1 - accuracy), floor)
    weights: Floats = p * new / new.mean()
    return weights


@register("masking_weights", "adaptive")
class AdaptiveWeights:
    """Of the tokens of a vocabulary, `ordinary` (V,) of which can be masked."""

    def __init__(self, ordinary: BoolArray, *, every: int = 200, keep: float = 0.2, floor: float = 0.005):
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise ConfigError(f"adaptive: every must be a whole number of steps, at least 1, not {every}.")
        for name, value in (("keep", keep), ("floor", floor)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
                raise ConfigError(f"adaptive: {name} must be at least 0 and below 1, not {value}.")
        self.ordinary, self.every, self.keep, self.floor = ordinary, every, keep, floor
        self._reset()

    def _reset(self) -> None:
        V = len(self.ordinary)
        # the weights in force before a step, those from then on, and that step; replaced as a whole, since another
        # thread may be making batches
        self.tables: tuple[Floats, Floats, int] = np.ones(V), np.ones(V), 0
        self.since = -1                                   # steps that were done when the present counts began
        self.counts: IntArray = np.zeros((2, V), np.int64)
        self.last: IntArray = np.zeros((2, V), np.int64)  # the counts that the newer weights were made of

    def at(self, step: int) -> Floats | None:
        older, newer, turn = self.tables
        table = newer if step >= turn else older
        return None if table.min() == table.max() else table

    def learn(self, step: int, counts: IntArray, rate: float) -> None:
        if self.since < 0:
            self.since = step - 1
        self.counts = self.counts + counts
        if step - self.since < self.every:
            return
        of, made, now = self.ordinary, np.ones(len(self.ordinary)), self.tables[1]
        made[of] = next_weights(rate * now[of], self.counts[:, of], rate, self.keep, self.floor) / rate
        self.tables, self.since = (now, made, step + self.every), step
        self.last, self.counts = self.counts, np.zeros_like(self.counts)

    def noted(self) -> dict[str, float]:
        """The lowest and the highest weight, as multiples of the mean; the share of all weight that the hardest tenth
        of the vocabulary has; and the mean accuracy over the tokens that were asked for."""
        weights = np.sort(self.tables[1][self.ordinary])
        hardest = weights[-max(1, round(HARDEST * len(weights))):]
        asked, found = self.last[:, self.last[0] > 0]
        noted = {"lowest": float(weights[0]), "highest": float(weights[-1]),
                 "hardest_tenth": float(hardest.sum() / weights.sum())}
        if len(asked):
            noted["found"] = float((found / asked).mean())
        return {f"masking_weights_{name}": value for name, value in noted.items()}

    # ---------------------------------------------------------------- checkpoints

    def state(self) -> dict[str, Any]:
        older, newer, turn = self.tables
        return {f"{_STATE}weights": np.stack([older, newer]), f"{_STATE}counts": np.stack([self.counts, self.last]),
                f"{_STATE}steps": [turn, self.since]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Without a state, as where a run is continued with weights that it did not have, they begin anew."""
        self._reset()
        names = [f"{_STATE}{name}" for name in ("weights", "counts", "steps")]
        if not any(name in state for name in names):
            return
        given: list[Any] = [state.get(name) for name in names]
        weights, counts, steps = given
        if not (_is_weights(weights, len(self.ordinary)) and _is_counts(counts, len(self.ordinary))
                and isinstance(steps, list) and len(steps) == 2 and all(type(step) is int for step in steps)):
            raise CheckpointError("The checkpoint's masking weights do not match this vocabulary.")
        (older, newer), (turn, self.since) = weights, steps
        self.tables, (self.counts, self.last) = (older, newer, turn), counts


def _is_weights(array: Any, V: int) -> bool:
    return isinstance(array, np.ndarray) and array.shape == (2, V) and array.dtype == np.float64 \
        and bool((np.isfinite(array) & (array > 0)).all())


def _is_counts(array: Any, V: int) -> bool:
    return isinstance(array, np.ndarray) and array.shape == (2, 2, V) and array.dtype == np.int64 \
        and bool(((array >= 0) & (array <= array[:, :1])).all())
