"""An experiment: models and ways to train them under the same budget, with several seeds. It is a YAML file:

    config: mini                          # a preset or a file; what all runs share
    set: [training.warmup_steps=100]
    flops: 5e13                           # or tokens: 5e6, equal_time: 1e7, budget: 4m, or steps: 2500
    seeds: [0, 1]
    runs:
      mini: []
      pre-LN: [model.block=pre_ln]
      rotary: [model=mini-rope]           # the model of another preset or file, trained as all are
      GPT: [config=mini-gpt]              # its way of training too, where the preset has one
      by its recipe: [training=mini-deep] # the way of training alone

What a run names comes first, then what is `set` for all, then the run's own changes, so that a run has the last word.
A budget is the same for every run. Of tokens and of FLOPs (floating-point operations of the products in forward and
backward, counted on the run's own batches) it gives each run its number of steps; of time, the run's own clock does.
`equal_time: 1e7` gives each run the time in which the shared config learns from ten million tokens, by what a step of
each was measured to take (budget.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..configs import load_sections
from ..core.config import ModelConfig
from ..errors import ConfigError
from ..readers import read_yaml
from ..training.config import TrainingConfig, changed
from .budget import KINDS, EqualBudget

_KEYS = ("config", "set", "seeds", "runs", *KINDS)
_NAMES = ("config", "model", "training")          # presets or files that a run may name


@dataclass(frozen=True)
class Experiment:
    """Named lists of changes to one config, the seeds, and the budget of every run."""

    config: str
    shared: list[str]
    seeds: list[int]
    runs: dict[str, list[str]]
    budget: EqualBudget | None = None             # None: what the configs say

    @classmethod
    def read(cls, file: Path) -> "Experiment":
        return cls.from_dict(read_yaml(file, ConfigError), str(file))

    @classmethod
    def from_dict(cls, content: Any, source: str = "The experiment") -> "Experiment":
        if not isinstance(content, Mapping) or not isinstance(content.get("runs"), Mapping) or not content["runs"]:
            raise ConfigError(f"{source} has no runs; see the head of mini_bert/lab/experiment.py.")
        for key in content:
            if key not in _KEYS:
                raise ConfigError(f"{source} has an unknown key {str(key)[:100]!r}; it may have {', '.join(_KEYS)}.")
        runs = {str(name): _changes(changes, f"{source}, runs, {str(name)[:100]}")
                for name, changes in content["runs"].items()}
        seeds = content.get("seeds") or [0]
        if not isinstance(seeds, list) or not all(type(seed) is int and 0 <= seed < 1 << 63 for seed in seeds):
            raise ConfigError(f"{source}: seeds must be a list of whole numbers, not {str(seeds)[:100]}.")
        if len(set(seeds)) < len(seeds):
            raise ConfigError(f"{source}: seeds has the same seed twice: {str(seeds)[:100]}.")
        made = cls(str(content.get("config", "mini")), _changes(content.get("set"), f"{source}, set"), seeds, runs,
                   EqualBudget.from_dict(content, source))
        for name, changes in runs.items():
            if "/" in name or name.startswith("."):
                raise ConfigError(f"{source}: {name!r} cannot be the name of a directory.")
            if made.budget is not None:
                made.budget.require_alone([*made.shared, *changes], f"{source}, runs, {name}")
            made.settings(name, made.seeds[0])            # wrong changes are refused before anything is run
        return made

    def settings(self, name: str, seed: int) -> tuple[ModelConfig, TrainingConfig]:
        """The configs of one run, before a budget that depends on the text has set the number of its steps."""
        return self._configs(self.runs[name], seed, f"runs, {name}")

    def shared_settings(self) -> tuple[ModelConfig, TrainingConfig]:
        """What all runs share, as if it were a run."""
        return self._configs([], 0, "set")

    def _configs(self, changes: list[str], seed: int, place: str) -> tuple[ModelConfig, TrainingConfig]:
        named, own = _named(changes)
        model, training = load_sections(named.get("config", self.config))
        if "config" in named and not training:
            training = load_sections(self.config)[1]
        if "model" in named:
            model = load_sections(named["model"])[0]
        if "training" in named:
            training = load_sections(named["training"])[1]
            if not training:
                raise ConfigError(f"{place}: {named['training']} says nothing about training.")
        length = self.budget.changes() if self.budget is not None else []
        sections = changed({"model": model.to_dict(), "training": {**training, "snapshots": 0}},       # of many runs
                           [*self.shared, *own, *length, f"training.seed={seed}"])
        return ModelConfig.from_dict(sections["model"]), TrainingConfig.from_dict(sections["training"])


def _changes(given: Any, place: str) -> list[str]:
    """A list of changes such as model.block=pre_ln."""
    if given is not None and not (isinstance(given, list) and all(isinstance(change, str) for change in given)):
        raise ConfigError(f"{place}: the changes must be a list such as [model.block=pre_ln], not {str(given)[:100]}.")
    return given or []


def _named(changes: list[str]) -> tuple[dict[str, str], list[str]]:
    """The presets or files that a run names, and its changes."""
    named, others = dict[str, str](), list[str]()
    for change in changes:
        name, _, value = change.partition("=")
        if name.strip() in _NAMES:
            named[name.strip()] = value.strip()
        else:
            others.append(change)
    return named, others
