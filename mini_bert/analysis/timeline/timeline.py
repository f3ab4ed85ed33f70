"""The timeline of a run: the entries at each of its snapshots.

Each entry at each snapshot is a cached result, by the content of the snapshot and of the data, so an interrupted
measurement continues, and a repeated one is instant. Anything that cannot be measured is left out, and a note says why.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...core.model import MiniBERT
from ...core.storage.model_files import CONFIG
from ...core.storage.weight_files import WEIGHTS
from ...errors import CheckpointError, DataError, MiniBertError
from ...evaluation.statistics import Interval
from ...evaluation.suite.result_cache import cached_result
from ...evaluation.tasks.folder import TaskFolder, find_tasks
from ...text.opening import load_tokenizer, tokenizer_file_names
from ...text.tokenizer import Tokenizer
from ...training.runs.checkpoints import list_checkpoints, read_state, verify_checkpoint
from ...training.runs.snapshots import FOLDER
from ..doctor.run_record import RunRecord
from .data import FULL, TimelineData, TimelineSizes
from .entry import Figures, TimelineEntry, chosen_entries
from .record import Line, Panel, Timeline

Report = Callable[[str, int, int], None]          # what is measured, how many measurements are done, of how many
_Stored = dict[str, list[float | None]]           # a line's figure: mean, low, high


class Moment(NamedTuple):
    """A model that a run has kept, and where the run stood."""

    place: Path
    step: int
    tokens: int

    def files(self) -> list[Path]:
        """What a figure depends on: not the state, which has the time."""
        return [path for name in (CONFIG, WEIGHTS, *sorted(tokenizer_file_names()))
                if (path := self.place / name).is_file()]


def moments(run: Path, notes: list[str]) -> list[Moment]:
    """The snapshots of a run by their steps, or without any its checkpoints; and `final`, if it is of a later step."""
    numbered = list_checkpoints(run / FOLDER) or list_checkpoints(run / "checkpoints")
    found = [moment for place in reversed(numbered) if (moment := _moment(place, notes)) is not None]
    last = _moment(run / "final", notes) if (run / "final" / CONFIG).is_file() else None
    if last is not None and last.step > max((moment.step for moment in found), default=-1):
        found.append(last)
    if not found:
        raise CheckpointError(f"{run} has no snapshots and no checkpoints to measure; train with "
                              "training.snapshots=20.")
    return found


def _moment(place: Path, notes: list[str]) -> Moment | None:
    try:
        verify_checkpoint(place)
        state = read_state(place)
    except CheckpointError as error:
        notes.append(f"{place.name} is left out: {error}")
        return None
    step, tokens = state.get("step"), state.get("tokens")
    if type(step) is not int or type(tokens) is not int or min(step, tokens) < 0:
        notes.append(f"{place.name} is left out: its state does not say at which step it is.")
        return None
    return Moment(place, step, tokens)


def measure_timeline(run: str | PathLike[str], *, tasks: str | PathLike[str] | None = None,
                     data: str | PathLike[str] | None = None, sizes: TimelineSizes = FULL,
                     only: Sequence[str] | None = None, seed: int = 0, threads: int = 0, fresh: bool = False,
                     report: Report = lambda what, done, total: None) -> Timeline:
    """The figures of every snapshot of a run; `tasks` is a folder of task data, `data` its corpus, if it was moved."""
    record, entries = RunRecord.read(run, data), chosen_entries(only)
    if data is not None:
        record.require_corpus()
    folder = TaskFolder() if tasks is None else find_tasks(tasks)
    found, notes = TimelineData(record, folder, sizes, seed=seed, threads=threads), list[str]()
    at = moments(record.directory, notes)
    can: dict[str, TimelineEntry] = {}
    for name, entry in entries.items():
        reasons = [reason for need in entry.needs if (reason := found.missing(need)) is not None]
        if reasons:
            notes.append(f"{entry.title} is not measured: {reasons[0]}.")
        else:
            can[name] = entry
    measured = _Measuring(found, can, fresh, report).all(at, notes)
    panels = []
    for name, entry in entries.items():
        panel = _panel(name, entry, at, *measured.get(name, ([{}] * len(at), {})))
        panels.append(_from_log(panel, entry, record, at, notes))
    panels = [panel for panel in panels if panel.lines]
    if not panels:
        raise DataError(f"Nothing of {record.directory} can be measured. {' '.join(notes)}")
    size = MiniBERT.load(at[-1].place).get_parameter_count()
    return Timeline(record.directory.resolve().name, size, [moment.step for moment in at],
                    [moment.tokens for moment in at], panels, asdict(sizes), seed, notes)


class _Measuring:
    """Entries at moments, each from the cache or by a model that is opened when it is needed."""

    def __init__(self, data: TimelineData, entries: Mapping[str, TimelineEntry], fresh: bool, report: Report):
        self.data, self.entries, self.fresh, self.report = data, entries, fresh, report
        self._opened: dict[Path, tuple[MiniBERT, Tokenizer]] = {}

    def opened(self, moment: Moment) -> tuple[MiniBERT, Tokenizer]:
        """The model and the tokenizer of a moment; one is kept in memory."""
        if moment.place not in self._opened:
            self._opened.clear()
            self._opened[moment.place] = MiniBERT.load(moment.place), load_tokenizer(moment.place)
        return self._opened[moment.place]

    def cached(self, name: str, kind: str, moment: Moment, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        needs = self.entries[name].needs
        files = [file for need in needs for file in self.data.files_of(need)]
        # what an entry reads of the corpus besides its needs, and the settings by which the loss is measured
        about = {"corpus": None if self.data.missing("corpus") else self.data.corpus.fingerprint(),
                 "training": self.data.record.training.to_dict() if "corpus" in needs else None}
        options = {"sizes": asdict(self.data.sizes), "seed": self.data.seed, **about}
        return cached_result(f"timeline-{kind}{name}", options, [*moment.files(), *files], compute, fresh=self.fresh)

    def all(self, at: Sequence[Moment], notes: list[str]) -> dict[str, tuple[list[_Stored], dict[str, Any]]]:
        """For each entry its figures at every moment, and its levels."""
        figures: dict[str, list[_Stored]] = {name: [] for name in self.entries}
        total, done, said = len(at) * len(self.entries), 0, set[str]()
        for moment in at:
            for name, entry in self.entries.items():
                self.report(f"step {moment.step:,}: {entry.title}", done, total)

                def compute(entry: TimelineEntry = entry, moment: Moment = moment) -> dict[str, Any]:
                    return dict(_stored(entry.measure(*self.opened(moment), self.data)))

                try:
                    figures[name].append(self.cached(name, "", moment, compute))
                except MiniBertError as error:
                    figures[name].append({})
                    if (sentence := f"{entry.title} is not measured: {str(error).rstrip('.')}.") not in said:
                        said.add(sentence)
                        notes.append(sentence if len(at) < 2 else f"At step {moment.step:,}: {sentence}")
                done += 1
        self.report("levels", total, total)
        return {name: (values, self._levels(name, at[-1]) if any(values) else {}) for name, values in figures.items()}

    def _levels(self, name: str, moment: Moment) -> dict[str, Any]:
        levels = self.entries[name].levels
        if levels is None:
            return {}
        return self.cached(name, "levels-", moment, lambda: dict(levels(*self.opened(moment), self.data)))


def _stored(figures: Figures) -> _Stored:
    """Each figure as mean, low and high."""
    return {line: [figure.mean, figure.low, figure.high] if isinstance(figure, Interval) else [figure, None, None]
            for line, figure in figures.items()}


def _panel(name: str, entry: TimelineEntry, at: Sequence[Moment], figures: Sequence[_Stored],
           levels: Mapping[str, dict[str, float]]) -> Panel:
    """The lines of an entry, in the order in which the last snapshot has them."""
    lines = []
    for line in dict.fromkeys(line for stored in reversed(figures) for line in stored):
        columns = [[stored.get(line, [None] * 3)[k] for stored in figures] for k in range(3)]
        lines.append(Line(line, columns[0], columns[1], columns[2], levels.get(line, {})))
    return Panel(name, entry.title, entry.unit, entry.apart, dict(entry.columns), lines)


def _from_log(panel: Panel, entry: TimelineEntry, record: RunRecord, at: Sequence[Moment], notes: list[str]) -> Panel:
    """The panel; a line that could not be measured at all is taken from the run's log, if the log has it."""
    for name, column in entry.logged.items():
        steps, values = record.column("step"), record.column(column)
        there = np.isfinite(steps) & np.isfinite(values) & (steps > 0)
        if there.any() and all(line.name != name for line in panel.lines):
            x, first = np.log(steps[there]), np.unique(steps[there], return_index=True)[1]
            asked = np.log([max(moment.step, 1) for moment in at])
            read = np.interp(asked, x[first], values[there][first], left=np.nan, right=np.nan)
            found = [float(value) if np.isfinite(value) else None for value in read]
            notes.append(f"{panel.title} is from the run's log, on straight lines between its evaluations.")
            panel.lines.append(Line(name, found, [None] * len(at), [None] * len(at), {}))
    return panel
