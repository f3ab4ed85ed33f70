"""A run's directory as it was left, or as it is while the run goes on: settings, log, checkpoints, corpus.

Nothing is changed. What cannot be read is noted in a sentence, and whoever needs it is told why it is missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.model import MiniBERT
from ..errors import CheckpointError, CorpusError, MiniBertError
from ..text.batches import Batches, MLMBatch
from ..text.corpus import Corpus
from ..training.batch_gradients import micro_batches
from ..training.checkpoints import newest_checkpoint, read_state, verify_checkpoint
from ..training.config import TrainingConfig
from ..training.log import LOG, read_log
from ..training.run import CONFIG, EVAL_SEED, heldout_batches, read_run

Floats = npt.NDArray[np.float64]


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
        made = cls(directory, read_run(directory), list(read_log(directory)), corpus)
        made._count_damaged_lines()
        return made

    def _count_damaged_lines(self) -> None:
        try:
            text = (self.directory / LOG).read_text("utf-8", errors="replace")
        except OSError:
            self.notes.append(f"There is no {LOG} in {self.directory}, so nothing is known of its curve.")
            return
        whole = [line for line in text.splitlines() if line.strip()]
        damaged = len(whole) - len(self.records)
        if damaged and not text.endswith("\n"):
            damaged -= 1                          # the line that is being written
        if damaged:
            self.notes.append(f"{damaged} lines of {self.directory / LOG} cannot be read and are left out.")
        if not self.records:
            self.notes.append(f"{self.directory / LOG} has no whole line yet.")

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

    def about(self, name: str) -> float | None:
        """A number that was written down when the run began."""
        about = self.description.get("about")
        value = about.get(name) if isinstance(about, dict) else None
        return float(value) if isinstance(value, int | float) else None

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
        return self.heldout_curve if len(self.heldout_curve) >= 3 else self.training_curve

    def _curve(self, name: str, heldout: bool) -> Curve:
        steps, tokens, losses = (self.column(key) for key in ("step", "tokens", name))
        there = np.isfinite(losses) & np.isfinite(tokens) & np.isfinite(steps)
        return Curve(steps[there], tokens[there], losses[there], heldout)

    @property
    def finished(self) -> bool:
        return bool(self.records) and self.records[-1].get("step") == self.records[-1].get("total_steps")

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
        batches = Batches(self.corpus, "train", max_seq_length=T, batch_size=8, mode=self.training.sequences,
                          seed=EVAL_SEED)
        return [part for step in range(min(len(batches), 32)) for part in micro_batches(batches[step], 8)]


def number(value: Any) -> float:
    """A number of the log; NaN for what is none."""
    return float(value) if isinstance(value, int | float) and isfinite(value) else float("nan")
