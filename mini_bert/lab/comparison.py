"""A comparison: the runs of an experiment and models that exist, each trained if it has to be, measured by the ruler,
and put into one row for each name with the mean and the range over its seeds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from ..core.config import ModelConfig
from ..core.model import MiniBERT
from ..core.storage.digests import json_digest
from ..errors import ConfigError
from ..factory import load
from ..parallel.processes import world
from ..text.corpora.corpus import Corpus
from .experiment import Experiment
from .outcomes import kept
from .processes import Failed, Work, done_at_once, done_by_processes, done_in_turn
from .ruler import Ruler, Scores
from .runs import Announce, Curve, final_settings, require_runnable, run_directory, run_one

Say = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """What came of one run, or of one existing model."""

    curve: Curve | None = None
    scores: Scores = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """One name: its figures by seed."""

    name: str
    parameters: int
    outcomes: list[Outcome]
    random: Scores = field(default_factory=dict)          # fine-tuning of the same model from random weights
    trained: bool = True                                  # here, and not before

    @property
    def curves(self) -> list[Curve]:
        return [outcome.curve for outcome in self.outcomes if outcome.curve is not None and outcome.curve.losses]

    def values(self, figure: str) -> list[float]:
        """A figure by seed, without those that cannot be had. `own_loss`, `tokens`, `seconds` are of the run."""
        if figure in ("own_loss", "tokens", "seconds"):
            series = "losses" if figure == "own_loss" else figure
            return [float(getattr(curve, series)[-1]) for curve in self.curves]
        found = [outcome.scores.get(figure) for outcome in self.outcomes]
        return [value for value in found if value is not None]

    def to_dict(self) -> dict[str, Any]:
        names = dict.fromkeys(["own_loss", "tokens", "seconds"])
        names |= dict.fromkeys(name for outcome in self.outcomes for name in outcome.scores)
        return {"name": self.name, "parameters": self.parameters, "seeds": len(self.outcomes),
                "figures": {name: spread(self.values(name)) for name in names}, "random_weights": self.random}


def spread(values: Sequence[float]) -> dict[str, Any] | None:
    """Mean, lowest and highest; None without values."""
    return {"mean": mean(values), "lowest": min(values), "highest": max(values), "values": list(values)} \
        if values else None


@dataclass(frozen=True)
class Comparison:
    """All rows in the order of the experiment, behind those of existing models; what is no model; and what failed."""

    rows: list[Row]
    baselines: dict[str, Scores]
    failures: dict[str, str]

    @property
    def curves(self) -> list[Curve]:
        return [curve for row in self.rows for curve in row.curves]

    def to_dict(self) -> dict[str, Any]:
        return {"rows": [row.to_dict() for row in self.rows], "baselines": self.baselines, "failures": self.failures,
                "curves": [asdict(curve) for curve in self.curves]}


def compare(experiment: Experiment | None, out: Path | None, *, data: Path | None = None, ruler: Ruler | None = None,
            models: Sequence[str] = (), jobs: int = 1, announce: Announce | None = None,
            say: Say = lambda line: None) -> Comparison:
    """Train and measure. With several jobs each has one thread; the results are the same, but for a budget of time."""
    existing = {name: load(name).config for name in models}
    new = _new_models(experiment, data, out)
    if twice := existing.keys() & new.keys():
        raise ConfigError(f"{sorted(twice)[0]} is a model and a run; the rows need different names.")
    configs, threads = existing | new, 1 if jobs > 1 else 0
    if ruler is not None:
        length = min([ruler.sizes.length, *(config.max_seq_length for config in configs.values())])
        ruler = replace(ruler, sizes=replace(ruler.sizes, length=length))
    work: dict[_Key, Work] = {(name, None): partial(_existing, ruler, name, threads) for name in existing}
    if experiment is not None and data is not None and out is not None:
        work |= {(name, seed): partial(_run, experiment, name, seed, data, out, ruler, threads,
                                       announce if jobs == 1 else None)
                 for seed in experiment.seeds for name in experiment.runs}    # a whole table as early as can be
    tokenizer_of = models[0] if models else data
    kinds = {name: _kind(config) for name, config in configs.items()}
    if ruler is not None and tokenizer_of is not None:
        work["n-grams and a bag of words", None] = partial(_baselines, ruler, tokenizer_of)
        if ruler.finetuning:
            work |= {(kind, None): partial(_random, ruler, configs[name], tokenizer_of, threads)
                     for name, kind in kinds.items()}
    keys, results = list(work), dict[_Key, Any]()
    for number, result in _done(list(work.values()), jobs, lambda number: say(f"{_shown(keys[number], kinds)} begins")):
        results[keys[number]] = result
        say(f"{_shown(keys[number], kinds)}: {_outcome(result)}")
    failures = {_shown(key, kinds): result.reason for key, result in results.items() if isinstance(result, Failed)}
    rows = []
    for name, config in configs.items():
        outcomes = [results[key] for key in keys if key[0] == name and isinstance(results[key], Outcome)]
        if outcomes:
            random = results.get((kinds[name], None))
            rows.append(Row(name, MiniBERT(config, seed=None).get_parameter_count(), outcomes,
                            random if isinstance(random, dict) else {}, name not in existing))
    found = results.get(("n-grams and a bag of words", None))
    return Comparison(rows, found if isinstance(found, dict) else {}, failures)


def _done(work: list[Work], jobs: int, begins: Callable[[int], None]) -> Iterator[tuple[int, Any]]:
    if world().size > 1:
        return done_by_processes(work, world())
    return done_in_turn(work) if jobs == 1 else done_at_once(work, jobs, begins)


_Key = tuple[str, int | None]                     # name and seed; the kind of a model for its random weights


def _new_models(experiment: Experiment | None, data: Path | None, out: Path | None) -> dict[str, ModelConfig]:
    """The model of each run, after everything that can be refused before the first run has been."""
    if experiment is None:
        return {}
    if data is None or out is None:
        raise ConfigError("An experiment needs --data and --out: the corpus, and a directory for its runs.")
    require_runnable(experiment, data)
    return {name: experiment.settings(name, experiment.seeds[0])[0] for name in experiment.runs}


def _kind(config: ModelConfig) -> str:
    """Models of one kind begin with the same random weights."""
    return f"random weights {json_digest(config.to_dict())}"


# -------------------------------------------------------------------- pieces of work

def _run(experiment: Experiment, name: str, seed: int, data: Path, out: Path, ruler: Ruler | None, threads: int,
         announce: Announce | None) -> Outcome:
    corpus = Corpus(data)
    model, training = final_settings(experiment, name, seed, corpus, out)
    settings = {"model": model.to_dict(), "training": {**training.resolved(model).to_dict(), "threads": 0},
                "corpus": corpus.fingerprint(), "ruler": None if ruler is None else ruler.description()}

    def compute() -> dict[str, Any]:
        listener = None if announce is None else announce(name, seed)
        curve = run_one(experiment, name, seed, data, out, threads=threads, listener=listener)
        final = run_directory(out, name, seed) / "final"
        return {"curve": asdict(curve), "scores": {} if ruler is None else ruler.measure(final, threads=threads)}

    found = kept(out, f"{name}-{seed}", settings, compute)
    return Outcome(Curve(**found["curve"]), found["scores"])


def _existing(ruler: Ruler | None, name: str, threads: int) -> Outcome:
    if ruler is None:
        raise ConfigError("A model that exists is measured by the ruler; name the folder of its data with --ruler.")
    return Outcome(scores=ruler.measure(name, threads=threads))


def _baselines(ruler: Ruler, tokenizer_of: str | Path) -> dict[str, Scores]:
    return ruler.baselines(tokenizer_of)


def _random(ruler: Ruler, config: ModelConfig, tokenizer_of: str | Path, threads: int) -> Scores:
    return ruler.random_weights(config, tokenizer_of, threads=threads)


def _shown(key: _Key, kinds: Mapping[str, str]) -> str:
    """The name of a piece of work for a person."""
    name, seed = key
    of = next((other for other, kind in kinds.items() if kind == name), None)
    return f"random weights of {of}" if of is not None else name if seed is None else f"{name}, seed {seed}"


def _outcome(result: Any) -> str:
    if isinstance(result, Failed):
        return f"failed: {result.reason}"
    if not isinstance(result, Outcome):
        return "done"
    curve = result.curve
    loss = f", {curve.tokens[-1]:,} tokens in {curve.seconds[-1]:,.0f} s, loss {curve.losses[-1]:.4f}" \
        if curve is not None and curve.losses else ""
    scores = ", ".join(f"{name} {value:.4g}" for name, value in result.scores.items() if value is not None)
    return f"done{loss}{f'; {scores}' if scores else ''}"
