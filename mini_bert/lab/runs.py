"""The runs of an experiment, each in its own directory: finished runs are not repeated, interrupted ones continue."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

from ..core.config import ModelConfig
from ..core.model import MiniBERT
from ..errors import CheckpointError, ConfigError
from ..text.corpora.corpus import Corpus
from ..training.config import TrainingConfig, make_objective
from ..training.initial_model import require_suitable
from ..training.loop import Listener
from ..training.runs.log import read_log
from ..training.runs.run import CONFIG, read_run, require_fitting, resume_run, start_run
from .experiment import Experiment
from .outcomes import kept

Announce = Callable[[str, int], Listener]         # name and seed of a run -> who listens to it


@dataclass(frozen=True)
class Curve:
    """Held-out losses of one run, by its own objective."""

    name: str
    seed: int
    tokens: list[int]
    seconds: list[float]
    losses: list[float]


def perform(experiment: Experiment, data: Path, out: Path, announce: Announce | None = None) -> list[Curve]:
    """Run what has not been run yet, one after the other in this process, and return the curves of all runs."""
    require_runnable(experiment, data)
    return [run_one(experiment, name, seed, data, out, listener=announce(name, seed) if announce is not None else None)
            for name in experiment.runs for seed in experiment.seeds]


def require_runnable(experiment: Experiment, data: Path) -> None:
    """Refuse models that do not fit the corpus or their objective, before the first run."""
    corpus = Corpus(data)
    for name in experiment.runs:
        model, training = experiment.settings(name, experiment.seeds[0])
        try:
            require_fitting(corpus, model)
            require_suitable(model, training)
            make_objective(training.resolved(model), MiniBERT(model, seed=None))
        except ConfigError as error:
            raise ConfigError(f"runs, {name}: {error}") from None


def run_directory(out: Path, name: str, seed: int) -> Path:
    return out / f"{name}-{seed}"


def run_one(experiment: Experiment, name: str, seed: int, data: Path, out: Path, *, threads: int = 0,
            listener: Listener | None = None) -> Curve:
    """Begin the run, go on with it, or find it finished. `threads` replaces the config's, and changes no result."""
    run, corpus = run_directory(out, name, seed), Corpus(data)
    model, training = final_settings(experiment, name, seed, corpus, out)
    if (run / CONFIG).exists():
        _require_same(run, {"model": model.to_dict(), "training": training.resolved(model).to_dict()})
        trainer = resume_run(run, threads=threads, data=corpus, listener=listener)
    else:
        training = replace(training, threads=threads or training.threads)
        trainer = start_run(model, training, corpus, run, listener=listener)
    trainer.train()
    if trainer.interrupted is not None:
        raise KeyboardInterrupt
    return read_curve(run, name, seed)


def final_settings(experiment: Experiment, name: str, seed: int, corpus: Corpus,
                   out: Path) -> tuple[ModelConfig, TrainingConfig]:
    """The configs of one run, with the number of steps that the budget gives it."""
    model, training = experiment.settings(name, seed)
    budget = experiment.budget
    if budget is None or not budget.is_counted:
        return model, training
    shared, run = experiment.shared_settings(), experiment.settings(name, experiment.seeds[0])
    described = {which: {"model": configs[0].to_dict(), "training": {**configs[1].to_dict(), "seed": 0}}
                 for which, configs in (("run", run), ("shared", shared))}
    found = kept(out, f"steps of {name}", {**described, "corpus": corpus.fingerprint(), budget.kind: budget.shown()},
                 lambda: {"steps": budget.steps(run, shared, corpus)})
    return model, replace(training, steps=found["steps"])


def _require_same(run: Path, wanted: dict[str, dict[str, Any]]) -> None:
    """Refuse a run that was begun with other settings than the experiment has now."""
    begun = read_run(run)
    begun["training"] = TrainingConfig.from_dict(begun["training"], f"{run / CONFIG}, training").to_dict()
    for section, values in wanted.items():
        for key, value in values.items():
            if key != "threads" and begun[section].get(key, value) != value:
                raise CheckpointError(f"{run} was begun with {section}.{key}={begun[section][key]}, and the experiment "
                                      f"now has {value}; choose another --out, or remove the run.")


def read_curve(run: Path, name: str, seed: int) -> Curve:
    """The evaluations in a run's log."""
    records = [record for record in read_log(run) if isinstance(record.get("eval_loss"), int | float)
               and isinstance(record.get("seconds"), int | float) and "tokens" in record]
    return Curve(name, seed, [record["tokens"] for record in records], [record["seconds"] for record in records],
                 [record["eval_loss"] for record in records])


def summary(curves: Sequence[Curve]) -> list[dict[str, Any]]:
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
