"""Exercise: one step of AdamW, compared with the library's step."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.params import Parameters, ParamSpec
from ...randomness import generator
from ...training.optimisers.adamw import AdamW
from ..answer import Answer
from ..compared import ComparedExercise, require_unchanged
from ..exercise import Clues, Pieces, Wrong, outputs_by_name

_SETTINGS = {"lr": 0.05, "beta1": 0.9, "beta2": 0.99, "eps": 1e-4, "weight_decay": 0.1}


@dataclass(frozen=True, eq=False)
class AdamWExercise(ComparedExercise):
    """adamw_step, compared with a step of mini_bert.AdamW from the same moments."""

    @property
    def writes(self) -> str:
        return "adamw_step"

    @lru_cache(maxsize=64)                                # noqa: B019  exercises are never freed
    def cases(self, seed: int) -> tuple[Pieces, ...]:
        return tuple(_case(name, shape, t, generator(seed, "exercise", self.name, name)) for name, shape, t in (
            ("the first step", (3, 4), 1), ("the sixth step", (2, 5), 6), ("a bias", (4,), 3)))

    def attempt(self, answer: Answer, pieces: Pieces) -> dict[str, Any]:
        arrays = [pieces.old_w, pieces.g, pieces.old_m, pieces.old_v]
        made, after = answer.call(self.writes, [*arrays, pieces.t], _SETTINGS)
        named = outputs_by_name(made, ("w", "m", "v"), self.writes)
        require_unchanged(after, arrays, f"{self.writes} changes its arguments in place; it should return new arrays.")
        return named


def _case(name: str, shape: tuple[int, ...], t: int, rng: np.random.Generator) -> Pieces:
    """The library's optimiser after t - 1 steps, and w, m and v after its next step."""
    params = Parameters([ParamSpec("w", shape)], np.float64)
    params.flat[...] = rng.standard_normal(params.flat.size)
    optimiser = AdamW(params, _SETTINGS["lr"], beta1=_SETTINGS["beta1"], beta2=_SETTINGS["beta2"],
                      epsilon=_SETTINGS["eps"], weight_decay=_SETTINGS["weight_decay"])
    gradients = params.zeros_like()
    old: dict[str, Any] = {}
    for _ in range(t):
        old = {f"old_{key}": value for key, value in _state(optimiser, shape).items()}
        gradients.flat[...] = rng.standard_normal(params.flat.size)
        optimiser.step(gradients)
    expected = _state(optimiser, shape)
    return Pieces(case=name, t=t, g=gradients["w"].copy(), expected=expected, **old, **expected, **_SETTINGS)


def _state(optimiser: AdamW, shape: tuple[int, ...]) -> dict[str, Any]:
    """w, m and v; the library stores the moments without the factors 1 - beta."""
    return {"w": optimiser.params["w"].copy(), "m": (1 - optimiser.beta1) * optimiser.m.reshape(shape),
            "v": (1 - optimiser.beta2) * optimiser.v.reshape(shape)}


def _moved(p: Pieces, *, m_power: float = 0, v_power: float = 0, decay: Any = None, sign: float = 1,
           root: bool = True, eps_inside: bool = False) -> Any:
    """The new weights with one thing changed; a power is the exponent of beta in a bias correction, 0 for t."""
    mhat = p.m / (1 - p.beta1 ** (m_power or p.t))
    vhat = p.v / (1 - p.beta2 ** (v_power or p.t))
    if decay is None:
        decay = p.lr * p.weight_decay * p.old_w if p.old_w.ndim > 1 else 0
    size = np.sqrt(vhat + p.eps) if eps_inside else (np.sqrt(vhat) if root else vhat) + p.eps
    return p.old_w - decay - sign * p.lr * mhat / size


def _coupled(p: Pieces) -> tuple[Any, ...]:
    """Weight decay as part of the gradient: Adam with an L2 penalty."""
    g = p.g + p.weight_decay * p.old_w if p.old_w.ndim > 1 else p.g
    m, v = p.beta1 * p.old_m + (1 - p.beta1) * g, p.beta2 * p.old_v + (1 - p.beta2) * g**2
    return _moved(Pieces(**{**vars(p), "m": m, "v": v}), decay=0), m, v


_NEVER = float("inf")                                     # beta to this power is zero: no correction
EXERCISE = AdamWExercise(
    "adamw", "one step of AdamW", 2, "math/adamw.md",
    hints=("Five lines, in the order of the formula: m, v, mhat, vhat, w. Only mhat and vhat depend on t.",
           "m and v are returned for the next step, without the correction; mhat and vhat are used only in this "
           "step.",
           "Weight decay is lr times wd times the old w, subtracted from w directly and only if w.ndim > 1; it is "
           "not added to g."),
    clues=Clues(
        sizes=lambda p: {"1 / (1 - beta1)": 1 / (1 - p.beta1), "1 / (1 - beta2)": 1 / (1 - p.beta2)},
        wrong=[
            Wrong("w m v", "Weight decay is added to the gradient, and therefore divided by sqrt(vhat). In AdamW "
                           "it acts on w directly.", _coupled),
            Wrong("w", "The bias correction is missing in both moments: m and v start at zero, and the first averages "
                       "are too small.", lambda p: _moved(p, m_power=_NEVER, v_power=_NEVER)),
            Wrong("w", "The bias correction of m is missing.", lambda p: _moved(p, m_power=_NEVER)),
            Wrong("w", "The bias correction of v is missing.", lambda p: _moved(p, v_power=_NEVER)),
            Wrong("w", "The bias correction uses t + 1; t is already 1 in the first step.",
                  lambda p: _moved(p, m_power=p.t + 1, v_power=p.t + 1)),
            Wrong("w", "The bias correction uses beta to the power 1 in every step; the power is t.",
                  lambda p: _moved(p, m_power=1, v_power=1)),
            Wrong("w", "Weight decay is missing.", lambda p: _moved(p, decay=0)),
            Wrong("w", "Weight decay acts on biases too; it should act only on matrices.",
                  lambda p: _moved(p, decay=p.lr * p.weight_decay * p.old_w)),
            Wrong("w", "Weight decay is not multiplied by the learning rate.",
                  lambda p: _moved(p, decay=p.weight_decay * p.old_w if p.old_w.ndim > 1 else 0)),
            Wrong("w", "The step goes uphill: it must be subtracted from w.", lambda p: _moved(p, sign=-1)),
            Wrong("w", "The square root of vhat is missing.", lambda p: _moved(p, root=False)),
            Wrong("w", "eps is inside the square root; it is added outside.", lambda p: _moved(p, eps_inside=True)),
            Wrong("m", "m lacks the factor 1 - beta1 of the new gradient.", lambda p: p.beta1 * p.old_m + p.g),
            Wrong("v", "v lacks the factor 1 - beta2 of the new square.", lambda p: p.beta2 * p.old_v + p.g**2),
            Wrong("v", "v averages the gradient; it is the average of its square.",
                  lambda p: p.beta2 * p.old_v + (1 - p.beta2) * p.g),
            Wrong("m", "m is returned after the bias correction; the next step needs it before.",
                  lambda p: p.m / (1 - p.beta1**p.t)),
            Wrong("v", "v is returned after the bias correction; the next step needs it before.",
                  lambda p: p.v / (1 - p.beta2**p.t)),
            Wrong("m", "The two weights of m are swapped: the old average has the weight beta1.",
                  lambda p: (1 - p.beta1) * p.old_m + p.beta1 * p.g),
        ]))
