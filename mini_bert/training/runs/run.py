"""A run in a directory: beginning it, and continuing it.

    config.yaml          model, training and data, with everything resolved, and a digest of them
    log.jsonl            one line of measurements every few steps
    checkpoints/step-N/  the newest ones
    snapshots/step-N/    the model at some steps of the whole run (snapshots.py)
    best/  final/        the model with the lowest held-out loss, and the last one
    NAME/best/  NAME/final/     a further model that the objective trains, such as generator

The directory appears with its config and its first checkpoint, so a run that exists can be resumed. One process at a
time holds its lock; resuming changes nothing before it has the lock and everything has been checked.

Of several processes that train together only the first needs the directory, and reads and writes it; each opens the
corpus, which must be the same everywhere.
"""

import platform
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from math import log
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ...core.config import ModelConfig
from ...core.model import MiniBERT
from ...core.registry import import_options
from ...core.storage.digests import DIGEST, json_digest
from ...core.storage.plugin_words import PLUGINS, plugins_of, require_plugins
from ...errors import CheckpointError, ConfigError, CorpusError
from ...files import claimed, lock_directory, recover, write_files
from ...objectives.objective import CorpusObjective
from ...parallel.processes import first_only, from_first, give_all, world
from ...readers import parse_yaml, read_yaml
from ...text.batches import MLMBatch
from ...text.corpora.corpus import Corpus
from ...version import __version__
from ...workers import workers
from ..budget import Budget
from ..config import TrainingConfig, changed, make_objective
from ..initial_model import new_model
from ..loop import Listener, Listeners
from ..trainer import Trainer
from .checkpoints import fill_checkpoint, newest_checkpoint, remove_newer, require_no_link, require_space
from .log import Log
from .snapshots import FOLDER as SNAPSHOTS

CONFIG = "config.yaml"
BASELINES = ("uniform_loss", "unigram_loss")


def start_run(model: ModelConfig, training: TrainingConfig, data: Corpus | str | Path, out: str | Path, *,
              initial: MiniBERT | None = None, listener: Listener | Sequence[Listener] | None = None) -> Trainer:
    """A trainer for a new run in `out`, refused before anything is written if something does not fit."""
    processes, run, corpus = world(), Path(out), _same_corpus(data)
    require_fitting(corpus, model)
    first_only(processes, lambda: require_free(run))
    training = training.resolved(model)
    network = new_model(model, training, corpus) if initial is None else initial
    if processes.size > 1:
        give_all(processes, network.params.flat)
    objective = _prepared(training, network, corpus, listener)
    heldout = objective.heldout(corpus, training)
    trainer = Trainer(network, objective.batches(corpus, training), training, heldout=heldout, run=run,
                      tokenizer=corpus.tokenizer, listener=listener, objective=objective)
    if objective.of_words:
        trainer.baselines = baselines(corpus, [part for part in objective.main_parts(heldout)
                                               if isinstance(part, MLMBatch)])
    description = {"model": model.to_dict(), "training": training.to_dict(),
                   "data": {"corpus": str(corpus.directory.resolve()), "fingerprint": corpus.fingerprint(),
                            "vocab_digest": corpus.manifest.vocab_digest},
                   **plugins_of(training.words()),
                   "about": {"mini_bert": __version__, "numpy": np.__version__, "python": platform.python_version(),
                             "machine": platform.machine(), "parameters": network.get_parameter_count(),
                             **(trainer.baselines if objective.of_words else {"of_words": False})}}
    parts = trainer.checkpoint_parts()
    needed = trainer.checkpoint_bytes() * (training.keep_checkpoints + 1) + trainer.snapshots.bytes_needed(network)

    def make() -> None:
        with claimed(run, CheckpointError(f"Another process is beginning a run in {run}.")) as claim:
            require_free(run)
            require_space(claim.target.parent, needed)
            with claim.filled(require_free) as folder:
                trainer.lock = lock_directory(folder, _busy(run))         # which it keeps under its new name
                fill_checkpoint(folder / "checkpoints" / f"step-{trainer.state.step}", network, corpus.tokenizer,
                                *parts)
                write_files(folder, {CONFIG: _yaml(description)})

    first_only(processes, make)
    trainer.saved = trainer.state.step
    return trainer


def _same_corpus(data: Corpus | str | Path) -> Corpus:
    """The corpus, refused if other processes have another one under this name."""
    corpus, processes = Corpus.open(data), world()
    found = processes.share((corpus.fingerprint(), corpus.manifest.vocab_digest) if processes.size > 1 else None)
    for rank, digest in enumerate(found):
        if digest != found[0]:
            raise CorpusError(f"{corpus.directory} differs: {processes.name(rank)} has another text or vocabulary "
                              f"there than {processes.name(0)}; copy the corpus of one to the other.")
    return corpus


def _prepared(training: TrainingConfig, network: MiniBERT, corpus: Corpus,
              listener: Listener | Sequence[Listener] | None) -> CorpusObjective[Any, Any]:
    """The objective, with what it must know before the first step."""
    objective = make_objective(training, network)
    with workers(training.threads) as team:
        objective.prepare(corpus, training, team, Listeners.of(listener).said)
    return objective


def run_directory(place: str | PathLike[str]) -> Path:
    """The directory of a run: the one that is named, or, of the directory of a fit, the run in it."""
    path = Path(place)
    return path / "run" if not (path / CONFIG).exists() and (path / "run" / CONFIG).exists() else path


def require_free(run: Path) -> None:
    """Refuse a directory for a new run that has anything in it."""
    if run.exists() and (not run.is_dir() or any(run.iterdir())):
        hint = f"continue it with: mini-bert resume {run}{import_options()}" if (run / CONFIG).exists() \
            and (run / "checkpoints").is_dir() else "choose another directory"
        raise CheckpointError(f"{run} exists already; {hint}.")


def _busy(run: Path) -> CheckpointError:
    return CheckpointError(f"Another process is training in {run}.")


def require_fitting(corpus: Corpus, model: ModelConfig) -> None:
    """Refuse a corpus with more words than the model knows."""
    if corpus.manifest.vocab_size > model.vocab_size:
        raise ConfigError(f"{corpus.directory} has a vocabulary of {corpus.manifest.vocab_size} pieces; the model "
                          f"takes {model.vocab_size}: set model.vocab_size={corpus.manifest.vocab_size}.")


def resume_run(out: str | Path, *, threads: int = 0, data: Corpus | str | Path | None = None,
               changes: Iterable[str] = (), listener: Listener | Sequence[Listener] | None = None) -> Trainer:
    """A trainer that continues the run in `out`, or in the fit there, from its newest whole checkpoint.

    `data` says where the corpus is now, if it was moved. Threads may be others than before: they do not
    change the result. Changes such as "training.learning_rate=1e-4" do, and are kept in config.yaml.
    """
    processes, run = world(), run_directory(out)
    first_only(processes, lambda: read_run(run))          # it is a run
    with ExitStack() as stack:
        lock = first_only(processes, lambda: stack.enter_context(lock_directory(run, _busy(run))))
        trainer = _resumed(run, threads, data, list(changes), listener)
        if lock is not None:
            trainer.lock = lock
        stack.pop_all()                                   # the trainer holds the lock from here on
    return trainer


def _resumed(run: Path, threads: int, data: Corpus | str | Path | None, changes: list[str],
             listener: Listener | Sequence[Listener] | None) -> Trainer:
    """The trainer of a run that this process, or the first one, has locked."""
    processes = world()
    description = from_first(processes, lambda: read_run(run, unchanged=True))
    corpus = _same_corpus(description["data"]["corpus"] if data is None else data)
    if not corpus.matches(description["data"]["fingerprint"]):
        raise CorpusError(f"{corpus.directory} has changed since the run began, so the run cannot be continued on it; "
                          "prepare it as it was, or begin a new run.")
    if corpus.manifest.vocab_digest != description["data"].get("vocab_digest"):
        raise CorpusError(f"{corpus.directory} has another vocabulary than when the run began.")
    if not changes:                                       # which may replace a word that is missing
        require_plugins(description.get(PLUGINS, {}), str(run), CONFIG)
    values = description["training"] | ({"threads": threads} if threads or processes.size > 1 else {})
    values = changed({"training": values}, changes, f"{run / CONFIG}")["training"]
    training = TrainingConfig.from_dict(values, f"{run / CONFIG}, training")
    if training.seed != TrainingConfig.from_dict(description["training"], f"{run / CONFIG}, training").seed:
        raise ConfigError("training.seed cannot be changed when a run is resumed, as all its random draws depend on "
                          "it; begin a new run.")
    checkpoint, said, network = from_first(processes, lambda: _newest_model(run))
    training = training.resolved(network.config)
    objective = _prepared(training, network, corpus, listener)
    trainer = Trainer(network, objective.batches(corpus, training), training,
                      heldout=objective.heldout(corpus, training), run=run, tokenizer=corpus.tokenizer,
                      listener=listener, objective=objective)
    about = description.get("about")
    trainer.baselines = {key: float(value) for key, value in about.items()
                         if key in BASELINES and isinstance(value, int | float)} if isinstance(about, dict) else {}
    trainer.restore(checkpoint)

    def clear() -> None:                                  # everything fits: now the run may be changed
        recover(run)
        for folder in ("checkpoints", SNAPSHOTS):
            remove_newer(run / folder, trainer.state.step)
        Log(run).truncate(trainer.state.step)
        if changes:
            kept = {key: value for key, value in description.items() if key != PLUGINS}
            write_files(run, {CONFIG: _yaml({**kept, "training": training.to_dict(), **plugins_of(training.words())})})

    first_only(processes, clear)
    if changes:
        before = trainer.learning_rate()
        _plan_again(trainer)
        if trainer.state.step and trainer.learning_rate() > before:
            said.append(f"The learning rate rises from {before:.2g} to {trainer.learning_rate():.2g}, as the "
                        "schedule is now longer.")
    for sentence in said:
        trainer.listener.said(sentence)
    return trainer


def _newest_model(run: Path) -> tuple[Path, list[str], MiniBERT]:
    """The checkpoint to go on from, why newer ones were passed over, and its model."""
    for name in ("best", "final"):
        require_no_link(run / name)
    checkpoint, damaged = newest_checkpoint(run / "checkpoints")
    if checkpoint is None:
        raise CheckpointError(f"{run} has no whole checkpoint to continue from." + "".join(f" {d}" for d in damaged))
    return checkpoint, damaged, MiniBERT.load(checkpoint)


def _plan_again(trainer: Trainer) -> None:
    """The number of steps of a run whose config has changed, and the evaluations that it has then done of its own."""
    state, config = trainer.state, trainer.config
    seconds = config.budget_seconds()
    if seconds is None:
        state.total_steps = config.steps
    elif state.step:                                      # at the speed so far; a longer budget goes on with it
        Budget(seconds, state).fit(state.seconds / state.step)
    state.evaluations = state.step * config.evaluations // max(state.total_steps, 1)


def read_run(run: Path, *, unchanged: bool = False) -> dict[str, Any]:
    """What config.yaml says; refused, if it must be `unchanged` and is not. Runs of older versions have no digest."""
    description = read_yaml(run / CONFIG, CheckpointError, absent=f"{run} is not a run: it has no {CONFIG}.")
    parts = ("model", "training", "data")
    if not isinstance(description, dict) or not all(isinstance(description.get(part), dict) for part in parts) \
            or not all(isinstance(description["data"].get(key), str) for key in ("corpus", "fingerprint")):
        raise CheckpointError(f"{run / CONFIG} is not the config of a run.")
    digest = description.pop(DIGEST, None)
    if unchanged and digest not in (None, json_digest(description)):
        raise CheckpointError(f"{run / CONFIG} has changed since it was written: its digest differs. Settings are "
                              f"changed with mini-bert resume {run} --set KEY=VALUE; remove its line {DIGEST} to "
                              "accept the file as it is.")
    return description


def baselines(corpus: Corpus, heldout: Sequence[MLMBatch]) -> dict[str, float]:
    """The loss of guessing evenly, and of guessing by frequency alone: what a model must beat.

    The latter counts the text for training, each piece once more than it is there, and guesses the masked tokens that
    the run is measured on; where nothing is held out, all tokens of the text that was counted.
    """
    counts = corpus.piece_counts()
    times = sum((np.bincount(batch.target_ids[batch.mask_positions], minlength=len(counts)) for batch in heldout),
                start=np.zeros_like(counts))
    if times.any():
        for ids in corpus.token_chunks("heldout"):
            counts -= np.bincount(ids, minlength=len(counts))
    else:
        times = counts
    losses = log(counts.sum() + len(counts)) - np.log(counts + 1)
    return {"uniform_loss": log(corpus.manifest.vocab_size), "unigram_loss": float(times @ losses / times.sum())}


def _yaml(description: dict[str, Any]) -> bytes:
    """The text of config.yaml, with a digest of what reading it gives."""
    import yaml

    text = yaml.safe_dump(description, sort_keys=False)
    return f"{text}{DIGEST}: {json_digest(parse_yaml(text, CheckpointError, CONFIG))}\n".encode()
