"""A run's directory as it was left, or as it is while the run goes on: settings, log, checkpoints, corpus.

Nothing is changed. What cannot be read is noted in a sentence, and whoever needs it is told why it is missing.
"""

import json
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ...core.model import MiniBERT
from ...errors import CheckpointError, CorpusError, MiniBertError
from ...evaluation.probabilities import Floats
from ...objectives.masked import EVAL_SEED, heldout_batches, micro_batches
from ...text.batches import MLMBatch, MLMBatches
from ...text.corpora.corpus import Corpus
from ...training.checkpoints import newest_checkpoint, read_state, verify_checkpoint
from ...training.config import TrainingConfig
from ...training.log import LOG
from ...training.run import CONFIG, read_run

LEAST_HELDOUT = 3             # held-out losses that make a curve
_LARGEST = 1e30               # of a number in a log: what is beyond cannot be worked with


class NotThere(Exception):  # noqa: N818  (it is no error: something is not there, and that is said)
    """Something that an examination needs and this run has not; the sentence says what."""


@dataclass(frozen=True)
class Curve:
    """A loss over the tokens seen; `heldout` says whether it is of text that was not trained on."""

    steps: Floats
    tokens: Floats
    losses: Floats
    heldout: bool

    def __len__(self) -> int:
        return len(self.losses)


@dataclass
class RunRecord:
    """What is known about a run. `notes` are sentences about what could not be read."""

    directory: Path
    description: dict[str, Any]
    records: list[dict[str, Any]]
    corpus_at: str | PathLike[str] | None = None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, run: str | PathLike[str], corpus: str | PathLike[str] | None = None) -> "RunRecord":
        """The run in a directory, or in the directory of a fit; `corpus` says where its text is now."""
        directory = Path(run)
        if not directory.is_dir():
            raise CheckpointError(f"{directory} is not a directory, so there is no run in it.")
        if not (directory / CONFIG).exists() and (directory / "run" / CONFIG).exists():
            directory = directory / "run"
        made = cls(directory, read_run(directory), [], corpus)
        made._read_log()
        return made

    def _read_log(self) -> None:
        """The lines of the log that are whole. It is read once: a run that goes on may write meanwhile."""
        log = self.directory / LOG
        try:
            text = log.read_text("utf-8", errors="replace")
        except FileNotFoundError:
            self.notes.append(f"There is no {LOG} in {self.directory}, so nothing is known of its curve.")
            return
        except OSError as error:
            self.notes.append(f"{log} cannot be read: {error.strerror or error}.")
            return
        lines = [line for line in text.splitlines() if line.strip()]
        found = [_record(line) for line in lines]
        self.records = [record for record in found if record is not None]
        damaged = len(lines) - len(self.records)
        if found and found[-1] is None and not text.endswith("\n"):
            damaged -= 1                          # the line that is being written
        if damaged:
            self.notes.append(f"{damaged} lines of {log} cannot be read and are left out.")
        if not self.records:
            self.notes.append(f"{log} has no whole line yet.")

    # ---------------------------------------------------------------- settings

    @cached_property
    def training(self) -> TrainingConfig:
        """The settings of the training, by today's names; those that are not known are noted and left out."""
        values = dict(self.description["training"])
        known = TrainingConfig().to_dict().keys()
        strange = sorted(str(key) for key in values.keys() - known)
        if strange:
            self.notes.append(f"{self.directory / CONFIG} has settings that are not known: {', '.join(strange)}.")
        return TrainingConfig.from_dict({key: value for key, value in values.items() if key in known},
                                        f"{self.directory / CONFIG}, training")

    @property
    def vocab_size(self) -> int:
        size = self.description["model"].get("vocab_size")
        if not isinstance(size, int) or size < 2:
            raise CheckpointError(f"{self.directory / CONFIG}: model.vocab_size must be a whole number, not {size!r}.")
        return size

    def require_settings(self) -> None:
        """Refuse a config whose settings are no settings: every check would go wrong by them."""
        assert self.vocab_size
        assert self.training is not None

    def about(self, name: str) -> float | None:
        """A number that was written down when the run began."""
        about = self.description.get("about")
        value = number(about.get(name)) if isinstance(about, dict) else float("nan")
        return value if isfinite(value) else None

    # ---------------------------------------------------------------- the log

    def column(self, name: str, records: Sequence[dict[str, Any]] | None = None) -> Floats:
        """A number of every line of the log, NaN where a line has none."""
        rows = self.records if records is None else records
        return np.array([number(record.get(name)) for record in rows], np.float64)

    def parts(self, name: str) -> dict[str, Floats]:
        """`layer_grad_norm` or `update_ratio` by part of the model; NaN where a line has none."""
        found = [record.get(name) for record in self.records]
        parts = dict.fromkeys(part for row in found if isinstance(row, dict) for part in row)
        return {part: np.array([number(row.get(part)) if isinstance(row, dict) else np.nan for row in found])
                for part in parts}

    @cached_property
    def training_curve(self) -> Curve:
        return self._curve("loss", heldout=False)

    @cached_property
    def heldout_curve(self) -> Curve:
        return self._curve("eval_loss", heldout=True)

    @property
    def curve(self) -> Curve:
        """The held-out losses if there are a few, else those of the training."""
        return self.heldout_curve if len(self.heldout_curve) >= LEAST_HELDOUT else self.training_curve

    def _curve(self, name: str, heldout: bool) -> Curve:
        steps, tokens, losses = (self.column(key) for key in ("step", "tokens", name))
        there = np.isfinite(losses) & (tokens > 0) & (steps > 0)
        points = np.stack([steps, tokens, losses], axis=1)[there]
        count = len(points)
        for counted in (0, 1):                    # steps, then tokens: both only grow
            points = points[_rising(points[:, counted].tolist())]
        if len(points) < count:
            self.notes.append(f"{count - len(points)} of {count} points of the {'held-out' if heldout else 'training'} "
                              f"loss are out of order in {self.directory / LOG} and are left out.")
        return Curve(points[:, 0], points[:, 1], points[:, 2], heldout)

    @property
    def step(self) -> int:
        """The last one that the log tells."""
        steps = self.column("step")
        known = steps[np.isfinite(steps)]
        return int(known[-1]) if len(known) else 0

    @property
    def finished(self) -> bool:
        last = self.records[-1] if self.records else {}
        return number(last.get("step")) == number(last.get("total_steps"))    # of two that are not there: NaN

    # ---------------------------------------------------------------- checkpoints and text

    @cached_property
    def checkpoint(self) -> tuple[Path, MiniBERT, dict[str, Any]]:
        """The newest whole checkpoint: where it is, its model, and where the run stood."""
        reasons: list[str] = []
        newest, damaged = newest_checkpoint(self.directory / "checkpoints")
        reasons += damaged
        for place in (newest, self.directory / "final", self.directory / "best"):
            if place is None or not place.is_dir():
                continue
            try:
                verify_checkpoint(place)
                return place, MiniBERT.load(place), read_state(place)
            except MiniBertError as error:
                reasons.append(str(error))
        raise NotThere("it has no checkpoint that can be read" + (f": {reasons[0]}" if reasons else "."))

    def model(self) -> MiniBERT:
        return self.checkpoint[1]

    @cached_property
    def corpus(self) -> Corpus:
        """The text of the run, from where its config says or where the caller does."""
        data = self.description["data"]
        place = data["corpus"] if self.corpus_at is None else self.corpus_at
        try:
            corpus = Corpus(place)
            _require_order(corpus)
            if data.get("vocab_digest") not in (None, corpus.manifest.vocab_digest):
                raise CorpusError(f"{place} has another vocabulary than the run.")
        except (MiniBertError, OSError, TypeError) as error:
            if self.corpus_at is not None and isinstance(error, MiniBertError):
                raise                             # the caller named it, and should know
            raise NotThere(f"its corpus cannot be opened: {error}") from None
        if corpus.fingerprint() != data["fingerprint"]:
            self.notes.append(f"{corpus.directory} has changed since the run began.")
        return corpus

    def require_corpus(self) -> None:
        """Refuse now what would be refused later."""
        assert self.corpus is not None

    @cached_property
    def heldout(self) -> list[MLMBatch]:
        """The batches that the run is evaluated on; without a held-out text, some of the training text."""
        if self.corpus.manifest.heldout_documents:
            return heldout_batches(self.corpus, self.training)
        T = self.training.max_seq_length or self.description["model"].get("max_seq_length", 64)
        batches = MLMBatches(self.corpus, "train", max_seq_length=T, batch_size=8, mode=self.training.sequences,
                          seed=EVAL_SEED)
        return [part for step in range(min(len(batches), 32)) for part in micro_batches(batches[step], 8)]


def number(value: Any) -> float:
    """A number of the log; NaN for what is none, or no size that a run has."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST
    return float(value) if known else float("nan")


def _record(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _rising(values: Sequence[float]) -> list[int]:
    """Where the longest rising part of the values is, so that one wrong number costs one point."""
    lowest: list[float] = []                      # of rising parts of 1, 2, ... values, the lowest end of each
    ends: list[int] = []                          # and where it stands
    before: list[int] = []                        # of each value, where the one before it in its part is
    for place, value in enumerate(values):
        length = bisect_left(lowest, value)
        lowest[length : length + 1], ends[length : length + 1] = [value], [place]
        before.append(ends[length - 1] if length else -1)
    found, place = [], ends[-1] if ends else -1
    while place >= 0:
        found.append(place)
        place = before[place]
    return found[::-1]


def _require_order(corpus: Corpus) -> None:
    if (np.diff(corpus.sentences.astype(np.int64)) < 0).any():
        raise CorpusError(f"{corpus.directory} is damaged: its sentences are out of order. Prepare it again.")
