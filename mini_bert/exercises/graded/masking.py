"""Exercise: choose and mask tokens, graded by rules that hold exactly and by statistics.

A share is measured over thousands of tokens and compared with the correct one in standard deviations of the binomial
distribution; more than six count as wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ...randomness import generator
from ..answer import Answer, AnswerError
from ..compared import require_unchanged
from ..exercise import Exercise, Grade, OutputGrade, outputs_by_name
from ..solutions.masking import MASK, SHARE, SPECIAL

V, ROWS, T, SHORTEST = 40, 2000, 32, 12
LIMIT = 6.0                   # standard deviations


class Sample(NamedTuple):
    """An answer's outputs on test rows; all arrays are (ROWS, T)."""

    ids: Any
    seen: Any
    targets: Any
    chosen: Any

    @property
    def ordinary(self) -> Any:
        return ~np.isin(self.ids, SPECIAL)

    @property
    def wanted(self) -> Any:
        """The number of tokens to choose in each row."""
        counts = self.ordinary.sum(axis=1)
        return np.minimum(counts, np.maximum(1, np.array([round(SHARE * n) for n in counts.tolist()])))


class Rule(NamedTuple):
    """A property of correct masking, a measure of its violation, and the likely cause."""

    name: str
    measure: Callable[[Sample], float]            # a share that must be 0, or standard deviations from a share
    cause: str
    limit: float = 0.0


def _deviation(measured: float, right: float, n: int) -> float:
    """The deviation of a share of n draws, in standard deviations."""
    return abs(measured - right) / sqrt(right * (1 - right) / n) if n else float("inf")


def _share(of: Callable[[Sample], Any], right: float) -> Callable[[Sample], float]:
    def measure(s: Sample) -> float:
        hits = of(s)[s.chosen]
        return _deviation(float(hits.mean()) if len(hits) else 0.0, right, len(hits))
    return measure


def _evenness(s: Sample) -> float:
    """The largest deviation of a position's share of choices, over positions that are ordinary in nearly every row."""
    rows = s.ordinary[:, 1 : SHORTEST - 1].all(axis=1)
    right = float(np.mean(s.wanted[rows] / s.ordinary[rows].sum(axis=1)))
    shares = s.chosen[rows, 1 : SHORTEST - 1].mean(axis=0)
    return max(_deviation(share, right, int(rows.sum())) for share in shares.tolist())


# a random token equals the old one with probability 1 / (V - 5)
_SAME = 0.1 + 0.1 / (V - len(SPECIAL))
RULES = [
    Rule("targets are the original ids", lambda s: float((s.targets != s.ids).mean()),
         "The second output is the target: the original ids, before masking."),
    Rule("specials are never chosen", lambda s: float((s.chosen & ~s.ordinary).mean()),
         "Special tokens are chosen: choose only ordinary ones. Predicting [CLS], [SEP] and padding teaches nothing."),
    Rule("only the chosen change", lambda s: float(((s.seen != s.ids) & ~s.chosen).mean()),
         "Tokens change that are not marked as chosen: the input would be damaged where there is no target."),
    Rule("the number in each row", lambda s: float((s.chosen.sum(axis=1) != s.wanted).mean()),
         "The number chosen in a row is not max(1, round(0.15 n)) of its n ordinary tokens. An independent "
         "draw per token gives 0.15 n only on average; chosen = (seen != ids) loses the tenth that stays."),
    Rule("random tokens are ordinary", lambda s: float((np.isin(s.seen, SPECIAL[:MASK]) & s.chosen).mean()),
         "Some random tokens are special tokens: draw from 5 to V - 1."),
    Rule("all positions are equally likely", _evenness,
         "Some positions are chosen more often than others: shuffle the ordinary positions of a row before taking the "
         "first of them.", LIMIT),
    Rule("[MASK] in 80 %", _share(lambda s: s.seen == MASK, 0.8),
         "80 % of the chosen tokens become [MASK]: one draw per token decides between the three cases.", LIMIT),
    Rule("unchanged in 10 %", _share(lambda s: s.seen == s.ids, _SAME),
         "A tenth of the chosen tokens stay unchanged: otherwise the model would learn that only [MASK] has a "
         "target.", LIMIT),
    Rule("random in 10 %", _share(lambda s: (s.seen != MASK) & (s.seen != s.ids), 0.2 - _SAME),
         "A tenth of the chosen tokens become random tokens.", LIMIT),
    Rule("random tokens are varied", lambda s: _variety(s),
         "There are few distinct random tokens: draw one for each position, from all ordinary ids.", LIMIT),
]


def _variety(s: Sample) -> float:
    drawn = s.seen[s.chosen & (s.seen != MASK) & (s.seen != s.ids)]
    counts = np.bincount(drawn, minlength=V)[len(SPECIAL):V]
    return max((_deviation(n / len(drawn), 1 / len(counts), len(drawn)) for n in counts.tolist()), default=0.0) \
        if len(drawn) else 0.0


@dataclass(frozen=True, eq=False)
class MaskingExercise(Exercise):
    @property
    def writes(self) -> str:
        return "choose_and_mask"

    def grade(self, answer: Answer, seed: int = 0) -> Grade:
        try:
            sample = self._sample(answer, seed)
        except AnswerError as fault:
            return Grade(self.name, [OutputGrade(rule.name, float("nan"), False, "", "did not run") for rule in RULES],
                         [f"To begin: {self.hints[0]}"] if fault.kind is NotImplementedError else [], str(fault))
        return grade_sample(self.name, sample)

    def _sample(self, answer: Answer, seed: int) -> Sample:
        ids = rows(seed)
        calls = [answer.call(self.writes, [ids, V, generator(seed, "exercise", "masking", "answer")])
                 for _ in range(2)]
        first, again = (outputs_by_name(call.result, ("seen", "targets", "chosen"), self.writes) for call in calls)
        for call in calls:
            require_unchanged(call.arguments, [ids], f"{self.writes} changes ids in place; work on a copy, the targets "
                              "are the old ids.")
        for name, kind in (("seen", "iu"), ("targets", "iu"), ("chosen", "b")):
            value = first[name]
            if not isinstance(value, np.ndarray) or value.shape != ids.shape or value.dtype.kind not in kind:
                what = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
                wanted = "booleans" if kind == "b" else "integers"
                raise AnswerError(f"{name} must be an array of {wanted} of the shape of ids, {ids.shape}, not {what}.")
            if not np.array_equal(value, again[name]):
                raise AnswerError(f"{self.writes} gives a different {name} for the same generator; draw only from rng.")
        return Sample(ids, **first)


def rows(seed: int) -> Any:
    """Rows as in batches: [CLS] words [SEP] padding; one without words, one with a single word."""
    rng = generator(seed, "exercise", "masking", "rows")
    ids = rng.integers(len(SPECIAL), V, (ROWS, T))
    lengths = rng.integers(SHORTEST, T + 1, ROWS)
    lengths[:3] = 2, 3, 8
    ids[np.arange(T) >= lengths[:, None]] = 0
    ids[:, 0], ids[np.arange(ROWS), lengths - 1] = 2, 3
    ids[5, 4] = 1                                         # an unknown word
    return ids


def grade_sample(name: str, sample: Sample) -> Grade:
    """Grade by every rule."""
    rows = []
    for rule in RULES:
        off = rule.measure(sample)
        note = "" if off <= rule.limit else f"wrong by {off:.1f} standard deviations" if rule.limit else \
            f"violated for a share of {off:.3f}"
        rows.append(OutputGrade(rule.name, off, off <= rule.limit, "", note))
    failed = [rule.cause for rule, row in zip(RULES, rows, strict=True) if not row.passed]
    return Grade(name, rows, failed[:2])


EXERCISE = MaskingExercise(
    "masking", "the 80/10/10 choice of masked tokens", 3, "math/masking.md",
    hints=("Three steps: find the positions that may be chosen, choose some of them, and replace their tokens. Work on "
           "a copy of ids.",
           "Row by row: the ordinary positions, shuffled by rng.permutation, and the first max(1, round(0.15 n)) of "
           "them.",
           "One number from rng.random per position decides: below 0.8 [MASK], below 0.9 a random id from 5 to V - "
           "1, otherwise the token stays. In all three cases the position is chosen."))
