"""The arguments of a fit: checked before anything is written, and stored so that a later call can be compared."""

import json
import shlex
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..core.config import ModelConfig
from ..core.model import MiniBERT
from ..core.modules.assembly import Modules
from ..errors import CheckpointError, ConfigError, CorpusError
from ..factory import load
from ..files import Lock, claimed, lock_directory, recover, remove_directory, write_files
from ..inference.inputs import require_vocabulary
from ..readers import read_json_if_there
from ..text.corpora.sources import FileReading, Source, find_sources
from ..text.opening import load_tokenizer
from ..training.config import TrainingConfig, load_run_config
from ..training.initial_model import require_suitable

RESULT = "fit.json"
LARGEST_VOCABULARY = 8192     # by default
NEW_WORDS = 1000              # by default
_EVALUATIONS, _EVAL_SEQUENCES = 20, 128       # during training; the end evaluates on all held-out text
# arguments, and the options of the command
_OPTIONS = {"start": "--from", "config": "--config", "changes": "--set", "vocab_size": "--vocab-size",
            "new_words": "--new-words", "cased": "--cased", "seed": "--seed", "include": "--include",
            "text_column": "--text-column", "encoding": "--encoding", "strict": "--strict"}
# settings that have their own argument
_ARGUMENTS = {"training.budget": "budget", "training.seed": "seed", "training.steps": "budget",
              "model.vocab_size": "vocab_size"}


@dataclass(frozen=True)
class FitRequest:
    """The arguments of a fit."""

    sources: tuple[str, ...]
    budget: str = "30m"
    start: str | None = None              # the initial model; None for a new one
    config: str = "mini"                  # a preset or file for a new model and its training
    changes: tuple[str, ...] = ()         # to the config, such as "training.learning_rate=5e-4"
    vocab_size: int | None = None         # None: by the size of the text
    new_words: int | None = None          # of the text to add to the vocabulary of `start`
    cased: bool = False
    seed: int = 0
    include: tuple[str, ...] = ()         # patterns of the files of a folder that are read
    text_column: str | None = None        # of tables
    encoding: str | None = None           # of text that is not UTF-8 and has no byte-order mark
    strict: bool = False                  # refuse files of a folder that cannot be read, and bytes that are not UTF-8

    def command(self, out: Path) -> str:
        """The command that makes this request, whoever made it."""
        usual = FitRequest(self.sources)
        parts = ["mini-bert", "fit", *self.sources, "--out", str(out), "--budget", self.budget]
        for name, option in _OPTIONS.items():
            value = getattr(self, name)
            if value == getattr(usual, name):
                continue
            if isinstance(value, bool):
                parts.append(option)
            else:
                for one in value if isinstance(value, tuple) else (value,):
                    parts += [option, str(one)]
        return shlex.join(parts)

    def text(self) -> list[Source]:
        """The sources of the text."""
        return find_sources(self.sources, FileReading(self.include, self.text_column, not self.strict, self.encoding))

    def settings(self, initial: MiniBERT | None, vocab_size: int) -> tuple[ModelConfig, TrainingConfig]:
        """The configs of the run."""
        model, training = load_run_config(self.config, [
            f"training.evaluations={0 if self._sets('training.eval_every') else _EVALUATIONS}",
            f"training.eval_sequences={_EVAL_SEQUENCES}", "training.snapshots=0", *self.changes,
            f"training.seed={self.seed}", f"training.budget={self.budget}", f"model.vocab_size={vocab_size}"])
        if initial is not None:
            return initial.config, replace(training, init="normal", frequency_bias=False)
        return model, training

    def _sets(self, key: str) -> bool:
        return any(change.partition("=")[0].strip() == key for change in self.changes)

    def check(self, out: Path) -> None:
        """Refuse invalid arguments, as far as possible before reading the text."""
        for key, argument in _ARGUMENTS.items():
            if self._sets(key):
                raise ConfigError(f"{key} cannot be set in a fit; give {argument} instead.")
        if self.vocab_size is not None and self.vocab_size < 10:
            raise ConfigError(f"vocab_size must be at least 10, not {self.vocab_size}.")
        if self.new_words is not None and self.new_words < 0:
            raise ConfigError(f"new_words must be at least 0, not {self.new_words}.")
        if self.start is None:
            if self.new_words is not None:
                raise ConfigError("new_words needs an initial model (--from); a new model learns its whole vocabulary.")
            initial = None
        else:
            initial = self._check_start(self.start)
        model, training = self.settings(initial, self.vocab_size or LARGEST_VOCABULARY)
        training.resolved(model)
        require_suitable(model, training)
        if not Modules(model).predicts_words:
            raise ConfigError("A fit needs a model with a head for masked language modelling; model.mlm_head is "
                              f"{model.mlm_head}.")
        for name in self.sources:
            if name == "-" or Path(name).is_fifo():
                raise CorpusError("A fit reads its text more than once; save piped text to a file first.")
            if Path(name).is_dir() and out.resolve().is_relative_to(Path(name).resolve()):
                raise CorpusError(f"{out} is inside the text folder {name}; choose a directory elsewhere.")
        self.text()

    def _check_start(self, start: str) -> MiniBERT:
        if self.vocab_size is not None:
            raise ConfigError("An initial model has its own vocabulary; give new_words, not vocab_size.")
        if self.cased:
            raise ConfigError("The vocabulary of an initial model determines the casing; leave out cased.")
        if any(change.startswith("model.") for change in self.changes):
            raise ConfigError("The config of an initial model cannot be changed; set only training options.")
        model, tokenizer = load(start), load_tokenizer(start)
        model.params.require_trainable()
        require_vocabulary(model, tokenizer)
        if not model.modules.predicts_words:
            raise ConfigError(f"{start} has no head for masked language modelling, so it cannot be the initial model.")
        return model

    def description(self) -> dict[str, Any]:
        """The arguments and the state of the text's files, as stored in fit.json."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        found["text"] = [_file_state(Path(source.name)) for source in self.text()]
        return found


def _file_state(path: Path) -> list[str | int]:
    """What changes with a file: path, size and time. Other sources, such as pydocs, only have a name."""
    if not path.is_file():
        return [str(path)]
    status = path.stat()
    return [str(path.resolve()), status.st_size, status.st_mtime_ns]


def claim(folder: Path, request: FitRequest) -> Lock:
    """Lock the directory for this request, which it begins or continues.

    A directory with other content or another request is refused, and one that another process is working in. The
    budget may be another one: training then goes on, or ends earlier.
    """
    busy = CheckpointError(f"Another process is fitting a model in {folder}.")
    if not (folder / RESULT).exists():
        with claimed(folder, busy) as place:
            _require_empty(folder)
            with place.filled(_require_empty) as made:
                lock = lock_directory(made, busy)
                write_result(made, {"request": request.description()})
        return lock
    lock = lock_directory(folder, busy)
    try:
        _require_same(folder, request)
        recover(folder)
    except BaseException:
        lock.release()
        raise
    return lock


def _require_empty(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CheckpointError(f"{folder} already exists and is not empty; choose another directory.")


def _require_same(folder: Path, request: FitRequest) -> None:
    known, described = read_result(folder).get("request"), request.description()
    if not isinstance(known, dict):
        raise CheckpointError(f"{folder / RESULT} is damaged; remove {folder}, or choose another directory.")
    usual = json.loads(json.dumps(asdict(FitRequest(()))))        # of arguments that older versions did not have
    other = next((key for key in described if key != "budget" and known.get(key, usual.get(key)) != described[key]),
                 None)
    if other == "text":
        raise CheckpointError(f"The text has changed since the fit in {folder} started; choose another directory.")
    if other is not None:
        raise CheckpointError(
            f"{folder} has another fit: its {other.replace('_', ' ')} was {known.get(other)!r}, not "
            f"{described[other]!r}. Choose another directory; to train that model further, start from it.")


def release(folder: Path) -> None:
    """Undo `claim` if nothing else was written, so that refused text leaves nothing behind."""
    if {path.name for path in folder.iterdir()} == {RESULT}:
        remove_directory(folder, CheckpointError(f"Another process is writing {folder}."))


def read_result(folder: Path) -> dict[str, Any]:
    """The content of fit.json; empty if it cannot be read."""
    try:
        return read_json_if_there(folder / RESULT, CheckpointError) or {}
    except CheckpointError:
        return {}


def write_result(folder: Path, content: dict[str, Any]) -> None:
    write_files(folder, {RESULT: (json.dumps(content, indent=2) + "\n").encode()})
