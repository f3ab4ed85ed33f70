"""AdamW over the flat buffer.

    m <- b1 m + g                   mhat = m (1 - b1) / (1 - b1^t)
    v <- b2 v + g^2                 vhat = v (1 - b2) / (1 - b2^t)
    w <- w - lr decay w - lr mhat / (sqrt(vhat) + eps)

The moments are kept as plain sums; the factors that make averages of them join the constants of the last line.

Weight decay acts on the weights directly, not through the gradient (that is the W), and on matrices only:
biases and LayerNorms are left alone. The buffer is worked through in chunks that stay in the cache from the
first line of the formula to the last, so memory is read once instead of a dozen times; the chunks are shared
out among the threads. Each number is computed by itself, so neither chunks nor threads change the result.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np

from ...core.arrays import Array
from ...core.params import Parameters
from ...errors import ConfigError, InputError
from ..workers import Item, Result, Workers

CHUNK = 1 << 16               # numbers: small enough for the cache, large enough for threads not to wait for the lock


@dataclass(frozen=True)
class _Range:
    """A run of the buffer whose parameters are treated alike."""

    start: int
    stop: int
    part: str                 # whose norms it counts for
    factor: float             # of the learning rate; 0 for frozen
    decays: bool


@dataclass(frozen=True)
class Measures:
    """Norms by part of the model: of the gradient, and of the change of a step relative to the weights."""

    grad_norm: dict[str, float]
    update_ratio: dict[str, float]


class AdamW:
    """Moments, and the step that moves `params` by them.

    `factors` gives names of parameters a factor of the learning rate, 0 to freeze them. `parts` says to which
    part of the model a parameter belongs, for `measure`.
    """

    def __init__(self, params: Parameters, learning_rate: float = 1e-3, *, beta1: float = 0.9, beta2: float = 0.999,
                 epsilon: float = 1e-8, weight_decay: float = 0.01, factors: Mapping[str, float] | None = None,
                 parts: Mapping[str, str] | None = None):
        for name, value, top in (("beta1", beta1, 1), ("beta2", beta2, 1), ("learning_rate", learning_rate, np.inf),
                                 ("epsilon", epsilon, np.inf), ("weight_decay", weight_decay, np.inf)):
            if not 0 <= value < top:
                raise ConfigError(f"{name} must be {'in [0, 1)' if top == 1 else 'zero or more'}, not {value}.")
        self.params, self.learning_rate = params, learning_rate
        self.beta1, self.beta2, self.epsilon, self.weight_decay = beta1, beta2, epsilon, weight_decay
        self.m = np.zeros_like(params.flat)
        self.v = np.zeros_like(params.flat)
        self.t = 0            # steps taken
        self._chunks = list(_chunks(_ranges(params, factors or {}, parts or {})))

    def grad_norm(self, gradients: Parameters, workers: Workers | None = None) -> float:
        """The norm of all gradients that are not frozen, summed in float64 across chunks."""
        g = gradients.flat
        shares = _shares(self._chunks, workers.threads if workers else 1)
        squares = _map(workers, lambda share: [_square(g[c.start : c.stop]) for c in share if c.factor], shares)
        return sqrt(sum(square for share in squares for square in share))

    def step(self, gradients: Parameters, *, learning_rate: float | None = None, scale: float = 1.0,
             workers: Workers | None = None, measure: bool = False) -> Measures | None:
        """One step against `scale` times the gradients. With `measure`, what it did to each part of the model."""
        if gradients.flat.shape != self.params.flat.shape:
            raise InputError(f"There are {gradients.flat.size} gradients for {self.params.flat.size} parameters.")
        self.t += 1
        rate = self.learning_rate if learning_rate is None else learning_rate
        update = self._update(gradients.flat, rate, scale, measure)
        shares = _shares(self._chunks, workers.threads if workers else 1)
        norms = _map(workers, lambda share: _run(update, share, self.params.flat.dtype), shares)
        return _measures([row for rows in norms for row in rows]) if measure else None

    def _update(self, g: Array, rate: float, scale: float, measure: bool) -> "_Update":
        w, m, v, b1, b2 = self.params.flat, self.m, self.v, self.beta1, self.beta2
        # mhat / (sqrt(vhat) + eps) = (m_factor / root) m / (sqrt(v) + eps / root)
        m_factor, root = (1 - b1) / (1 - b1**self.t), sqrt((1 - b2) / (1 - b2**self.t))

        def update(c: _Range, s: Array, u: Array) -> tuple[float, float, float]:
            if not c.factor:
                return 0.0, 0.0, 0.0
            here = slice(c.start, c.stop)
            wc, mc, vc = w[here], m[here], v[here]
            np.multiply(g[here], scale, out=s)
            mc *= b1                                                  # m <- b1 m + g
            mc += s
            s *= s                                                    # v <- b2 v + g^2
            vc *= b2
            vc += s
            np.sqrt(vc, out=u)                                        # u = lr mhat / (sqrt(vhat) + eps)
            u += self.epsilon / root
            np.divide(mc, u, out=u)
            u *= rate * c.factor * m_factor / root
            fade = rate * c.factor * self.weight_decay if c.decays else 0.0
            sizes = (float(s.sum()), _square(u + fade * wc), _square(wc)) if measure else (0.0, 0.0, 0.0)
            if fade:
                wc *= 1 - fade
            wc -= u
            return sizes

        return update


def clip_factor(norm: float, limit: float) -> float:
    """What gradients of this norm are multiplied by, so that it is at most the limit; a limit of 0 is none."""
    return min(1.0, limit / norm) if limit and norm else 1.0


_Update = Callable[[_Range, Array, Array], tuple[float, float, float]]
_Norms = list[tuple[str, float, float, float]]        # part; squares of gradient, update and weight


def _run(update: _Update, chunks: list[_Range], dtype: np.dtype[np.floating]) -> _Norms:
    scratch = np.empty((2, max((c.stop - c.start for c in chunks), default=0)), dtype)
    return [(c.part, *update(c, *scratch[:, : c.stop - c.start])) for c in chunks]


def _measures(norms: _Norms) -> Measures:
    totals: dict[str, list[float]] = {}
    for part, *squares in norms:
        sums = totals.setdefault(part, [0.0, 0.0, 0.0])
        for i, square in enumerate(squares):
            sums[i] += square
    return Measures({part: sqrt(gradient) for part, (gradient, _, _) in totals.items()},
                    {part: sqrt(update / weight) if weight else 0.0 for part, (_, update, weight) in totals.items()})


def _square(x: Array) -> float:
    return float(np.dot(x, x))


def _map(workers: Workers | None, function: Callable[[Item], Result], items: list[Item]) -> list[Result]:
    return workers.map(function, items) if workers is not None else [function(item) for item in items]


def _ranges(params: Parameters, factors: Mapping[str, float], parts: Mapping[str, str]) -> Iterator[_Range]:
    """Neighbours that are treated alike, as one."""
    for name in factors:
        params[name]          # an unknown name is answered with the nearest
    current: _Range | None = None
    for name, place in params.slices.items():
        made = _Range(place.start, place.stop, parts.get(name, "all"), factors.get(name, 1.0),
                      decays=params[name].ndim > 1)
        if current is not None and (current.part, current.factor, current.decays) \
                == (made.part, made.factor, made.decays):
            current = _Range(current.start, made.stop, made.part, made.factor, made.decays)
            continue
        if current is not None:
            yield current
        current = made
    if current is not None:
        yield current


def _chunks(ranges: Iterator[_Range]) -> Iterator[_Range]:
    for r in ranges:
        for start in range(r.start, r.stop, CHUNK):
            yield _Range(start, min(start + CHUNK, r.stop), r.part, r.factor, r.decays)


def _shares(chunks: list[_Range], n: int) -> list[list[_Range]]:
    """The chunks in n runs of about equal length in numbers."""
    ends = np.cumsum([c.stop - c.start for c in chunks])
    cuts = [0, *np.searchsorted(ends, ends[-1] * np.arange(1, n) / n).tolist(), len(chunks)]
    return [chunks[a:b] for a, b in pairwise(cuts) if a < b]
