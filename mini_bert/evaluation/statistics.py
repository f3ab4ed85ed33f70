"""How sure a figure is: intervals over seeds, and of shares."""

from collections.abc import Sequence
from math import sqrt
from statistics import mean, stdev
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InputError

# quantiles 0.975 of Student's t by degrees of freedom; beyond, the normal's
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
            2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)
NORMAL = 1.960


class Interval(NamedTuple):
    """A figure with its 95 % confidence interval, and how many values it comes from; one value has no interval."""

    mean: float
    low: float | None
    high: float | None
    values: int

    @property
    def margin(self) -> float | None:
        """Half of its width."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    def shown(self, digits: int = 1, scale: float = 100.0) -> str:
        """For a table, in percent unless `scale` is another: 84.2 ± 0.6.

        An interval that is not as wide on both sides, as those of shares near 0 and 1 are, is written out:
        98.0 (93.0 to 99.4).
        """
        value = f"{scale * self.mean:.{digits}f}"
        if self.low is None or self.high is None:
            return value
        below, above = (f"{scale * width:.{digits}f}" for width in (self.mean - self.low, self.high - self.mean))
        low, high = (f"{scale * bound:.{digits}f}" for bound in (self.low, self.high))
        return f"{value} ± {above}" if below == above else f"{value} ({low} to {high})"


def over_seeds(values: Sequence[float]) -> Interval:
    """The mean of several runs, by Student's t."""
    if not values:
        raise InputError("There are no values to average.")
    middle = mean(values)
    if len(values) == 1:
        return Interval(middle, None, None, 1)
    quantile = _STUDENT[len(values) - 2] if len(values) - 2 < len(_STUDENT) else NORMAL
    margin = quantile * stdev(values) / sqrt(len(values))
    return Interval(middle, middle - margin, middle + margin, len(values))


def share(successes: float, count: int) -> Interval:
    """A share of `count` independent trials, by Wilson's interval; half successes (ties) are allowed."""
    if count < 1 or not 0 <= successes <= count:
        raise InputError(f"{successes} of {count} is not a share.")
    p, z2 = successes / count, NORMAL**2
    centre = (p + z2 / (2 * count)) / (1 + z2 / count)
    margin = NORMAL * sqrt(p * (1 - p) / count + z2 / (4 * count**2)) / (1 + z2 / count)
    return Interval(p, centre - margin, centre + margin, count)


def of_groups(values: npt.ArrayLike, groups: npt.ArrayLike) -> Interval:
    """The mean of all values, each counting the same, where those of one group, such as a sequence, may be alike.

    The variance is that of the groups' sums around what the mean would give them; one group has no interval.
    """
    given, of = np.asarray(values, np.float64), np.unique(np.asarray(groups), return_inverse=True)[1]
    if not len(given) or given.shape != of.shape:
        raise InputError(f"{given.shape} values in {of.shape} groups have no mean.")
    middle = float(given.mean())
    apart = np.bincount(of, given - middle)
    if len(apart) == 1:
        return Interval(middle, None, None, 1)
    margin = NORMAL * sqrt(len(apart) / (len(apart) - 1) * float(apart @ apart)) / len(given)
    return Interval(middle, middle - margin, middle + margin, len(given))
