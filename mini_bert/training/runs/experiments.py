"""A laboratory: the same training with one thing changed at a time, under one budget, with several seeds.

An experiment is a YAML file:

    config: mini                          # a preset or a file; what all runs share
    set: [training.steps=2500]
    seeds: [0, 1]
    runs:
      post-LN: []
      pre-LN: [model.block=pre_ln]

Each run has a directory of its own, so an interrupted experiment goes on where it was.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from ...core.config import ModelConfig
from ...errors import ConfigError
from ...readers import read_yaml
from ..config import TrainingConfig, load_run_config
from ..loop import Listener
from .log import read_log
from .run import CONFIG, resume_run, start_run

Announce = Callable[[str, int], Listener]         # name and seed of a run -> who listens to it


@dataclass(frozen=True)
class Experiment:
    """Named lists of changes to one config, and the seeds."""

    config: str
    shared: list[str]
    seeds: list[int]
    runs: dict[str, list[str]]

    @classmethod
    def read(cls, file: Path) -> "Experiment":
        return cls.from_dict(read_yaml(file, ConfigError), str(file))

    @classmethod
    def from_dict(cls, content: Any, source: str = "The experiment") -> "Experiment":
        if not isinstance(content, Mapping) or not isinstance(content.get("runs"), Mapping) or not content["runs"]:
            raise ConfigError(f"{source} has no runs; see the head of mini_bert/training/runs/experiments.py.")
        for key in content:
            if key not in ("config", "set", "seeds", "runs"):
                raise ConfigError(f"{source} has an unknown key {key!r}; it may have config, set, seeds and runs.")
        runs = {str(name): _changes(changes, f"{source}, runs, {str(name)[:100]}")
                for name, changes in content["runs"].items()}
        seeds = content.get("seeds") or [0]
        if not isinstance(seeds, list) or not all(type(seed) is int and 0 <= seed < 1 << 63 for seed in seeds):
            raise ConfigError(f"{source}: seeds must be a list of whole numbers, not {str(seeds)[:100]}.")
        made = cls(str(content.get("config", "mini")), _changes(content.get("set"), f"{source}, set"), seeds, runs)
        for name in runs:
            if "/" in name or name.startswith("."):
                raise ConfigError(f"{source}: {name!r} cannot be the name of a directory.")
            made.settings(name, made.seeds[0])            # wrong changes are refused before anything is run
        return made

    def settings(self, name: str, seed: int) -> tuple[ModelConfig, TrainingConfig]:
        """The configs of one run."""
        return load_run_config(self.config, [*self.shared, *self.runs[name], f"training.seed={seed}"])


def _changes(given: Any, place: str) -> list[str]:
    """A list of changes such as model.block=pre_ln."""
    if given is not None and not (isinstance(given, list) and all(isinstance(change, str) for change in given)):
        raise ConfigError(f"{place}: the changes must be a list such as [model.block=pre_ln], not {str(given)[:100]}.")
    return given or []


@dataclass(frozen=True)
class Curve:
    """Held-out losses of one run."""

    name: str
    seed: int
    tokens: list[int]
    seconds: list[float]
    losses: list[float]


def perform(experiment: Experiment, data: Path, out: Path, announce: Announce | None = None) -> list[Curve]:
    """Run what has not been run yet, and return the curves of all runs."""
    curves = []
    for name in experiment.runs:
        for seed in experiment.seeds:
            run = out / f"{name}-{seed}"
            listener = announce(name, seed) if announce is not None else None
            if (run / CONFIG).exists():
                trainer = resume_run(run, data=data, listener=listener)
            else:
                model, training = experiment.settings(name, seed)
                trainer = start_run(model, training, data, run, listener=listener)
            trainer.train()
            if trainer.interrupted is not None:
                raise KeyboardInterrupt
            curves.append(read_curve(run, name, seed))
    return curves


def read_curve(run: Path, name: str, seed: int) -> Curve:
    """The evaluations in a run's log."""
    records = [record for record in read_log(run) if isinstance(record.get("eval_loss"), int | float)
               and isinstance(record.get("seconds"), int | float) and "tokens" in record]
    return Curve(name, seed, [record["tokens"] for record in records], [record["seconds"] for record in records],
                 [record["eval_loss"] for record in records])


def summary(curves: list[Curve]) -> list[dict[str, Any]]:
    """A row for each name: the last held-out loss over the seeds, its range, and what it cost; the best first."""
    rows = []
    for name in dict.fromkeys(curve.name for curve in curves):
        mine = [curve for curve in curves if curve.name == name and curve.losses]
        if mine:
            last = [curve.losses[-1] for curve in mine]
            rows.append({"name": name, "loss": mean(last), "lowest": min(last), "highest": max(last),
                         "seeds": len(last), "tokens": mine[0].tokens[-1],
                         "seconds": mean(curve.seconds[-1] for curve in mine)})
    return sorted(rows, key=lambda row: row["loss"])
