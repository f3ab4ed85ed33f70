"""A run beside the model: its curve, and its checkpoints, which are looked for anew each time it is asked."""

from collections import OrderedDict
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..analysis.doctor.run_record import LossCurve, RunRecord
from ..core.model import MiniBERT
from ..errors import CheckpointError, InputError
from ..pretrained import model_directory, shipped_names
from ..training.runs.checkpoints import read_state
from ..training.runs.snapshots import kept_models

_MODELS = 3                   # checkpoints that are kept in memory
_POINTS = 600                 # of a curve that are sent


class Run:
    """The directory of a run, finished or going on."""

    def __init__(self, directory: str | PathLike[str]):
        self.directory = RunRecord.read(directory).directory
        self.name = self.directory.resolve().name         # "." has none
        self._models: OrderedDict[str, tuple[float, MiniBERT]] = OrderedDict()

    @property
    def checkpoints(self) -> dict[str, Path]:
        """Checkpoints and snapshots by name, the oldest first; at last the best and the final model."""
        found = {path.name: path for path in kept_models(self.directory)}
        return found | {name: self.directory / name for name in ("best", "final")
                        if (self.directory / name / "config.json").is_file()}

    def newest(self) -> Path:
        """A directory with a model and its tokenizer: the best, else the newest."""
        found = self.checkpoints
        if not found:
            raise CheckpointError(f"{self.directory} has no checkpoint yet.")
        return found.get("best") or found.get("final") or list(found.values())[-1]

    def model(self, name: str, load: Callable[[Path], MiniBERT]) -> MiniBERT:
        """The model of a checkpoint by its name."""
        places = self.checkpoints
        if name not in places:
            raise InputError(f"There is no checkpoint {name[:40]!r}; there are {', '.join(places)}.")
        try:
            written = (places[name] / "model.safetensors").stat().st_mtime
        except OSError:
            raise InputError(f"The checkpoint {name} has just been removed by the run.") from None
        known = self._models.get(name)
        if known is None or known[0] != written:          # `best` is written again and again
            self._models[name] = (written, load(places[name]))
        self._models.move_to_end(name)
        while len(self._models) > _MODELS:
            self._models.popitem(last=False)
        return self._models[name][1]

    def describe(self) -> dict[str, Any]:
        """The curve, the checkpoints and where the run stands."""
        record = RunRecord.read(self.directory)
        last = record.records[-1] if record.records else {}
        checkpoints: list[dict[str, Any]] = []
        for name, path in self.checkpoints.items():
            try:
                checkpoints.append({"name": name, "step": int(read_state(path)["step"])})
            except (CheckpointError, KeyError, TypeError, ValueError, OverflowError):
                record.notes.append(f"The checkpoint {name} has no readable state and is left out.")
        checkpoints.sort(key=lambda checkpoint: checkpoint["step"])
        return {"name": self.name, "checkpoints": checkpoints, "finished": record.finished,
                "step": last.get("step"), "total_steps": last.get("total_steps"), "notes": record.notes,
                "training": _points(record.training_curve), "heldout": _points(record.heldout_curve),
                "baselines": {name: value for name in ("uniform_loss", "unigram_loss")
                              if (value := record.stored_baseline(name)) is not None}}


def shipped_timelines(first: str) -> dict[str, Path]:
    """The directories of shipped models, in which a timeline may be, by name; the model of this name comes first."""
    return {name: model_directory(name) for name in sorted(shipped_names(), key=lambda name: name != first)}


def _points(curve: LossCurve) -> dict[str, list[float]]:
    """A curve thinned out to what a screen can show, its last point included."""
    every = max(1, len(curve) // _POINTS)
    chosen = np.arange(len(curve))[::-1][::every][::-1]
    return {"steps": curve.steps[chosen].tolist(), "losses": curve.losses[chosen].tolist()}
