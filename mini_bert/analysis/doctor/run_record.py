"""Read-only access to a run's directory, finished or not: config, log, checkpoints, corpus.

What cannot be read is recorded in `notes`, and raises Unavailable with the reason when it is needed.
"""

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
from ...readers import read_lines
from ...text.batches import MLMBatch, MLMBatches
from ...text.corpora.corpus import Corpus
from ...training.config import TrainingConfig
from ...training.runs.checkpoints import newest_checkpoint, read_state, verify_checkpoint
from ...training.runs.log import LOG, parse_record
from ...training.runs.run import CONFIG, read_run, run_directory

LEAST_HELDOUT = 3             # held-out losses that make a curve
_LARGEST = 1e30               # numbers in a log beyond this count as missing


class Unavailable(Exception):  # noqa: N818  (not an error: the doctor reports it)
    """A check needs something that the run does not have; the message says what."""


@dataclass(frozen=True)
class LossCurve:
    """A loss over the tokens seen; `heldout` says whether it was measured on held-out text."""

    steps: Floats
    tokens: Floats
    losses: Floats
    heldout: bool

    def __len__(self) -> int:
        return len(self.losses)


@dataclass
class RunRecord:
    """The contents of a run's directory. `notes` are sentences about what could not be read."""

    directory: Path
    description: dict[str, Any]
    records: list[dict[str, Any]]
    corpus_at: str | PathLike[str] | None = None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, run: str | PathLike[str], corpus: str | PathLike[str] | None = None) -> "RunRecord":
        """Read the run in a directory, or in the directory of a fit; `corpus` is for a corpus that has been moved."""
        directory = run_directory(run)
        if not directory.is_dir():
            raise CheckpointError(f"{directory} is not a directory; name the directory of a run.")
        made = cls(directory, read_run(directory), [], corpus)
        made._read_log()
        return made

    def _read_log(self) -> None:
        """Read the complete lines of the log. It is read only once, since an unfinished run may write to it."""
        log = self.directory / LOG
        try:
            absent = f"There is no {LOG} in {self.directory}, so its loss curve is unknown."
            lines = [line for line in read_lines(log, CheckpointError, absent) if line.strip()]
        except CheckpointError as error:
            self.notes.append(str(error))
            return
        found = [parse_record(line) for line in lines]
        self.records = [record for record in found if record is not None]
        damaged = len(lines) - len(self.records)
        if found and found[-1] is None and not lines[-1].endswith(b"\n"):
            damaged -= 1                          # the line that is being written
        if damaged:
            self.notes.append(f"{damaged} lines of {log} cannot be read and are ignored.")
        if not self.records:
            self.notes.append(f"{log} has no complete line yet.")

    # ---------------------------------------------------------------- settings

    @cached_property
    def training(self) -> TrainingConfig:
        """The training config. Unknown settings, such as those of other versions, are noted and ignored."""
        values = dict(self.description["training"])
        known = TrainingConfig().to_dict().keys()
        unknown = sorted(str(key) for key in values.keys() - known)
        if unknown:
            self.notes.append(f"{self.directory / CONFIG} has unknown settings: {', '.join(unknown)}.")
        return TrainingConfig.from_dict({key: value for key, value in values.items() if key in known},
                                        f"{self.directory / CONFIG}, training")

    @property
    def vocab_size(self) -> int:
        size = self.description["model"].get("vocab_size")
        if not isinstance(size, int) or size < 2:
            raise CheckpointError(f"{self.directory / CONFIG}: model.vocab_size must be an integer, not {size!r}.")
        return size

    def require_settings(self) -> None:
        """Raise an error if the config is invalid, since every check depends on it."""
        assert self.vocab_size
        assert self.training is not None

    def stored_baseline(self, name: str) -> float | None:
        """A baseline loss that was stored in the config when the run began."""
        about = self.description.get("about")
        value = finite_number(about.get(name)) if isinstance(about, dict) else float("nan")
        return value if isfinite(value) else None

    @property
    def of_words(self) -> bool:
        """Is the main loss that of predicting words, so that it can be compared with guesses by frequency?"""
        about = self.description.get("about")
        return not isinstance(about, dict) or about.get("of_words") is not False

    # ---------------------------------------------------------------- the log

    def column(self, name: str, records: Sequence[dict[str, Any]] | None = None) -> Floats:
        """One number from every line of the log, NaN where a line has none."""
        rows = self.records if records is None else records
        return np.array([finite_number(record.get(name)) for record in rows], np.float64)

    def by_name(self, key: str) -> dict[str, Floats]:
        """What each line has by name, as `layer_grad_norm` of each parameter group; NaN where a line has none."""
        found = [record.get(key) for record in self.records]
        names = dict.fromkeys(name for row in found if isinstance(row, dict) for name in row)
        return {name: np.array([finite_number(row.get(name)) if isinstance(row, dict) else np.nan for row in found])
                for name in names}

    @cached_property
    def training_curve(self) -> LossCurve:
        return self._curve("loss", heldout=False)

    @cached_property
    def heldout_curve(self) -> LossCurve:
        return self._curve("eval_loss", heldout=True)

    @property
    def curve(self) -> LossCurve:
        """The held-out losses if there are enough, otherwise the training losses."""
        return self.heldout_curve if len(self.heldout_curve) >= LEAST_HELDOUT else self.training_curve

    def _curve(self, name: str, heldout: bool) -> LossCurve:
        steps, tokens, losses = (self.column(key) for key in ("step", "tokens", name))
        there = np.isfinite(losses) & (tokens > 0) & (steps > 0)
        points = np.stack([steps, tokens, losses], axis=1)[there]
        count = len(points)
        for column in (0, 1):                     # steps, then tokens: both increase
            points = points[_longest_increasing_subsequence(points[:, column].tolist())]
        if len(points) < count:
            self.notes.append(f"{count - len(points)} of {count} points of the {'held-out' if heldout else 'training'} "
                              f"loss are out of order in {self.directory / LOG} and are ignored.")
        return LossCurve(points[:, 0], points[:, 1], points[:, 2], heldout)

    @property
    def step(self) -> int:
        """The last step in the log."""
        steps = self.column("step")
        known = steps[np.isfinite(steps)]
        return int(known[-1]) if len(known) else 0

    @property
    def finished(self) -> bool:
        last = self.records[-1] if self.records else {}
        return finite_number(last.get("step")) == finite_number(last.get("total_steps"))      # False if missing: NaN

    # ---------------------------------------------------------------- checkpoints and text

    @cached_property
    def checkpoint(self) -> tuple[Path, MiniBERT, dict[str, Any]]:
        """The newest undamaged checkpoint: its directory, its model and its training state."""
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
        raise Unavailable("it has no checkpoint that can be read" + (f": {reasons[0]}" if reasons else "."))

    def model(self) -> MiniBERT:
        return self.checkpoint[1]

    @cached_property
    def corpus(self) -> Corpus:
        """The run's corpus, at the path of the config or of the caller."""
        data = self.description["data"]
        place = data["corpus"] if self.corpus_at is None else self.corpus_at
        try:
            corpus = Corpus(place)
            _require_order(corpus)
            if data.get("vocab_digest") not in (None, corpus.manifest.vocab_digest):
                raise CorpusError(f"{place} has a different vocabulary from the run's.")
            unchanged = corpus.matches(data["fingerprint"])
        except (MiniBertError, OSError, TypeError) as error:
            if self.corpus_at is not None and isinstance(error, MiniBertError):
                raise                             # the caller named this corpus
            raise Unavailable(f"its corpus cannot be opened: {error}") from None
        if not unchanged:
            self.notes.append(f"{corpus.directory} has changed since the run began.")
        return corpus

    def require_corpus(self) -> None:
        """Raise an error if the corpus cannot be used."""
        assert self.corpus is not None

    @cached_property
    def heldout(self) -> list[MLMBatch]:
        """The batches that the run is evaluated on; without held-out text, some training batches."""
        if self.corpus.manifest.heldout_documents:
            return heldout_batches(self.corpus, self.training)
        end = self.training.at(1.0)
        T = end.max_seq_length or self.description["model"].get("max_seq_length", 64)
        batches = MLMBatches(self.corpus, "train", max_seq_length=T, batch_size=8, mode=end.sequences, seed=EVAL_SEED)
        return [part for step in range(min(len(batches), 32)) for part in micro_batches(batches[step], 8)]


def finite_number(value: Any) -> float:
    """A number from the log; NaN if it is missing, of another type, or absurdly large."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST
    return float(value) if known else float("nan")


def _longest_increasing_subsequence(values: Sequence[float]) -> list[int]:
    """The indices of the longest increasing subsequence, so that one wrong number in a log costs one point."""
    lowest: list[float] = []                      # for each length, the lowest last value of a subsequence
    ends: list[int] = []                          # and its index
    before: list[int] = []                        # for each value, the index of its predecessor
    for index, value in enumerate(values):
        length = bisect_left(lowest, value)
        lowest[length : length + 1], ends[length : length + 1] = [value], [index]
        before.append(ends[length - 1] if length else -1)
    found, index = [], ends[-1] if ends else -1
    while index >= 0:
        found.append(index)
        index = before[index]
    return found[::-1]


def _require_order(corpus: Corpus) -> None:
    if (np.diff(corpus.sentences.astype(np.int64)) < 0).any():
        raise CorpusError(f"{corpus.directory} is damaged: its sentences are out of order. Prepare it again.")
