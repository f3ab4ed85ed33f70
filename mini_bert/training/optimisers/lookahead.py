"""Lookahead: slow weights that follow the fast weights of another optimiser, k steps at a time.

    after every k-th step of the inner optimiser:     slow <- slow + alpha (fast - slow)
                                                      fast <- slow
                                                                        derivation: docs/math/lookahead.md

The slow weights begin as the weights of step 0. They are what is evaluated and saved as a model.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ...core.arrays import Array
from ...core.registry import register
from ...errors import ConfigError
from .optimiser import CHUNK, Optimiser
from .wrapper import Wrapper


@register("optimiser", "lookahead")
class Lookahead(Wrapper):
    title = "Lookahead"
    states = ("slow",)

    def __init__(self, inner: Optimiser, *, k: int = 6, alpha: float = 0.5):
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise ConfigError(f"lookahead: k must be a whole number of steps above zero, not {k}.")
        if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha <= 1:
            raise ConfigError(f"lookahead: alpha must be above 0 and at most 1, not {alpha}.")
        super().__init__(inner)
        self.k, self.alpha = k, alpha
        self.slow[...] = inner.params.flat

    @property
    def slow(self) -> Array:
        return self.state["slow"]

    def after_step(self) -> None:
        if self.t % self.k:
            return
        fast, slow = self.params.flat, self.slow
        for start in range(0, fast.size, CHUNK):                  # in pieces that stay in the cache
            f, s = fast[start : start + CHUNK], slow[start : start + CHUNK]
            change = np.subtract(f, s)                            # slow <- slow + alpha (fast - slow)
            change *= self.alpha
            s += change
            f[...] = s                                            # fast <- slow

    @contextmanager
    def evaluation_weights(self) -> Iterator[None]:
        fast = self.params.flat.copy()
        self.params.flat[...] = self.slow
        try:
            yield
        finally:
            self.params.flat[...] = fast
