"""95 % confidence intervals: over seeds, of a share, and of values in groups."""

from collections.abc import Sequence
from math import sqrt
from statistics import mean, stdev
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InputError

# quantiles 0.975 of Student's t by degrees of freedom; beyond 30 the normal quantile is used
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
            2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)
Z_95 = 1.960


class Interval(NamedTuple):
    """A mean with its 95 % confidence interval and the number of values; a single value has no interval."""

    mean: float
    low: float | None
    high: float | None
    values: int

    @property
    def margin(self) -> float | None:
        """Half the width."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    def shown(self, digits: int = 1, scale: float = 100.0) -> str:
        """For a table, in percent unless `scale` says otherwise: 84.2 ± 0.6.

        An asymmetric interval, such as that of a share near 0 or 1, is written out: 98.0 (93.0 to 99.4).
        """
        value = f"{scale * self.mean:.{digits}f}"
        if self.low is None or self.high is None:
            return value
        below, above = (f"{scale * width:.{digits}f}" for width in (self.mean - self.low, self.high - self.mean))
        low, high = (f"{scale * bound:.{digits}f}" for bound in (self.low, self.high))
        return f"{value} ± {above}" if below == above else f"{value} ({low} to {high})"


def over_seeds(values: Sequence[float]) -> Interval:
    """The mean of several runs with the interval of Student's t."""
    if not values:
        raise InputError("There are no values to average.")
    middle = mean(values)
    if len(values) == 1:
        return Interval(middle, None, None, 1)
    quantile = _STUDENT[len(values) - 2] if len(values) - 2 < len(_STUDENT) else Z_95
    margin = quantile * stdev(values) / sqrt(len(values))
    return Interval(middle, middle - margin, middle + margin, len(values))


def wilson_interval(successes: float, count: int) -> Interval:
    """A share of `count` independent trials with Wilson's interval; a tie may count as half a success."""
    if count < 1 or not 0 <= successes <= count:
        raise InputError(f"{successes} successes in {count} trials are not a share.")
    p, z2 = successes / count, Z_95**2
    centre = (p + z2 / (2 * count)) / (1 + z2 / count)
    margin = Z_95 * sqrt(p * (1 - p) / count + z2 / (4 * count**2)) / (1 + z2 / count)
    return Interval(p, centre - margin, centre + margin, count)


def clustered_mean(values: npt.ArrayLike, groups: npt.ArrayLike) -> Interval:
    """The mean of all values, with an interval that allows for correlation inside a group, such as a sequence.

    The variance is that of the groups' summed deviations from the mean; a single group has no interval.
    """
    given, of = np.asarray(values, np.float64), np.unique(np.asarray(groups), return_inverse=True)[1]
    if not len(given) or given.shape != of.shape:
        raise InputError(f"Every value needs its group, but there are {given.shape} values and {of.shape} groups.")
    middle = float(given.mean())
    apart = np.bincount(of, given - middle)
    if len(apart) == 1:
        return Interval(middle, None, None, 1)
    margin = Z_95 * sqrt(len(apart) / (len(apart) - 1) * float(apart @ apart)) / len(given)
    return Interval(middle, middle - margin, middle + margin, len(given))
