"""The same budget for every run of an experiment: steps, tokens, time or FLOPs.

    tokens:      steps = tokens / (mean real tokens of a batch)
    flops:       steps = flops / (mean FLOPs of a step: the products of forward and backward)
    equal_time:  steps = steps of the shared config for these tokens / relative time of a step   (step_times.py)

A budget of time (`budget: 4m`) ends each run by the clock, and so depends on what else the machine does; `equal_time`
measures what a step costs beforehand, and gives every run as many steps as the shared config's time pays for.

The means are over steps that are spread evenly over the run, since a schedule of masking rates, lengths or batch
sizes changes them on the way; so the number of steps is found by repetition. Optimisers are not counted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

from ..bench.flops import step_flops
from ..core.config import ModelConfig
from ..core.model import MiniBERT
from ..errors import ConfigError
from ..settings import LARGEST, coerce
from ..text.corpora.corpus import Corpus
from ..text.schedule import Step
from ..training.config import TrainingConfig, make_objective, parse_duration
from .step_times import Configs, relative_step_time

KINDS = ("steps", "tokens", "budget", "flops", "equal_time")
_SAMPLED = {"tokens": 16, "flops": 4}     # steps that are counted
_ROUNDS = 4
_CLOSE = 0.01


@dataclass(frozen=True)
class EqualBudget:
    """A kind, and how much of it: a number, or a time such as 4m."""

    kind: str
    amount: float | str

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], source: str) -> "EqualBudget | None":
        """The one budget among the keys of an experiment; None if there is none."""
        given = [kind for kind in KINDS if kind in content]
        if len(given) > 1:
            raise ConfigError(f"{source} has {' and '.join(given)}; a budget is one of {', '.join(KINDS)}.")
        if not given:
            return None
        kind, value = given[0], content[given[0]]
        if kind == "budget":
            parse_duration(str(value))
            return cls(kind, str(value))
        amount = coerce(f"{source}, {kind}", value, float)
        if not isfinite(amount) or amount < 1 or (kind == "steps" and amount != int(amount)):
            what = "a whole number of at least 1" if kind == "steps" else "a number of at least 1"
            raise ConfigError(f"{source}: {kind} must be {what}, not {str(value)[:100]}.")
        return cls(kind, amount)

    def require_alone(self, changes: Iterable[str], place: str) -> None:
        """Refuse changes that set the length of a run in addition to the budget."""
        for change in changes:
            if change.partition("=")[0].strip() in ("training.steps", "training.budget"):
                raise ConfigError(f"{place}: {change} sets the length of a run, which {self.kind}: {self.shown()} sets "
                                  "for all runs; remove one of them.")

    def shown(self) -> str:
        return self.amount if isinstance(self.amount, str) else f"{self.amount:g}"

    def changes(self) -> list[str]:
        """What it changes in a config before the text is known."""
        if self.kind == "budget":
            return [f"training.budget={self.amount}"]
        return ["training.budget=", *([f"training.steps={int(self.amount)}"] if self.kind == "steps" else [])]

    @property
    def is_counted(self) -> bool:
        """Does the number of steps follow from what a step costs?"""
        return self.kind == "equal_time" or self.kind in _SAMPLED

    def steps(self, run: Configs, shared: Configs, corpus: Corpus) -> int:
        """The number of steps that the budget pays for. `shared` is the config of all runs."""
        if self.kind == "equal_time":
            of_shared = EqualBudget("tokens", self.amount).steps(shared, shared, corpus)
            return max(1, round(of_shared / relative_step_time(run, shared, corpus)))
        model, given = run
        training = replace(given.resolved(model), seed=0, threads=1)
        steps = training.steps
        for _ in range(_ROUNDS):
            cost = _mean_cost(self.kind, model, replace(training, steps=steps), corpus)
            before, steps = steps, min(max(1, round(float(self.amount) / cost)), LARGEST)
            if abs(steps - before) <= _CLOSE * before:
                break
        return steps


def flops_per_token(model: ModelConfig, training: TrainingConfig, corpus: Corpus) -> float:
    """Of a run with these configs, on average."""
    training = replace(training, seed=0)
    return _mean_cost("flops", model, training, corpus) / _mean_cost("tokens", model, training, corpus)


def _mean_cost(kind: str, model: ModelConfig, training: TrainingConfig, corpus: Corpus) -> float:
    """Tokens or FLOPs of a step, on average over the run."""
    training = training.resolved(model)
    objective = make_objective(training, MiniBERT(model, seed=0))
    batches = objective.batches(corpus, training)
    places = np.unique(np.linspace(0, training.steps - 1, _SAMPLED[kind]).astype(int)).tolist()
    seen = [batches[Step(step, training.steps)] for step in places]
    return float(np.mean([objective.tokens(batch) if kind == "tokens" else step_flops(objective, batch)
                          for batch in seen]))
