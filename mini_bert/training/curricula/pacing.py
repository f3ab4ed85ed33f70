"""How fast a curriculum opens: x is the share of the pacing's time, the result the share of the way from the share that
is open at the start to everything.

    linear         x
    root           x^(1/power)                  power 2 unless given
    quadratic      x^2
    log            1 + ln(x + e^-10) / 10
    exponential    (e^(10 x) - 1) / (e^10 - 1)

root and log open fast and then slow down, quadratic and exponential the other way round. The last two have the form of
the study of curricula by Wu, Dyer and Neyshabur (2021), which CLIMB took for small models of language.
"""

from math import exp, expm1, log

from ...core.registry import register
from ...errors import ConfigError

_STEEPNESS = 10               # of log and exponential


@register("pacing", "linear")
def linear(x: float) -> float:
    return x


@register("pacing", "root")
def root(x: float, power: float = 2.0) -> float:
    if isinstance(power, bool) or not isinstance(power, int | float) or not 0 < power < 100:
        raise ConfigError(f"pacing: the power of root must be above 0 and below 100, not {power}.")
    return float(x ** (1 / power))


@register("pacing", "quadratic")
def quadratic(x: float) -> float:
    return x * x


@register("pacing", "log")
def logarithmic(x: float) -> float:
    return min(1 + log(x + exp(-_STEEPNESS)) / _STEEPNESS, 1.0)


@register("pacing", "exponential")
def exponential(x: float) -> float:
    return expm1(_STEEPNESS * x) / expm1(_STEEPNESS)
