"""Progress of a training run on standard error: a live line at a terminal, plain lines elsewhere."""

import sys
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ..training.loop import Listener, State
from ..training.runs.run import BASELINES
from ..training.trainer import Trainer


class TrainingDisplay(Listener):
    """Shows loss, baseline losses, speed, time left and memory. Use it as a context manager around the training."""

    def __init__(self, quiet: bool = False):
        self.quiet = quiet
        self.console = Console(stderr=True, highlight=False, emoji=False)
        self.live = self.console.is_interactive and not quiet
        self._progress = Progress(
            TextColumn("{task.completed:,.0f}/{task.total:,.0f}"), BarColumn(bar_width=8),
            TextColumn("{task.fields[shown]}"), TimeRemainingColumn(compact=True), TextColumn("left"),
            console=self.console, disable=not self.live)
        self._task: TaskID | None = None
        self._shown: dict[str, str] = {}

    def __enter__(self) -> "TrainingDisplay":
        if self.live:
            self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.live:
            self._progress.stop()

    def began(self, trainer: Trainer) -> None:
        state = trainer.state
        self._task = self._progress.add_task("training", total=state.total_steps, completed=state.step, shown="")
        if len(trainer.baselines) == len(BASELINES):
            self.said(f"Baseline losses: {trainer.baselines['uniform_loss']:.3f} for uniform guessing (ln V), "
                      f"{trainer.baselines['unigram_loss']:.3f} for guessing by token frequency.")

    def stepped(self, state: State, loss: float) -> None:
        if self.live and self._task is not None:
            self._shown["loss"] = f"loss [bold]{state.smoothed_loss / max(state.smoothing, 1e-9):.3f}[/bold]"
            self._progress.update(self._task, completed=state.step, total=state.total_steps,
                                  shown=" ".join(self._shown.values()))

    def logged(self, record: dict[str, Any]) -> None:
        if record.get("eval_loss") is not None:
            self._shown["heldout"] = f"held-out [bold]{record['eval_loss']:.3f}[/bold]"
        if record["tokens_per_second"]:
            self._shown["speed"] = f"{record['tokens_per_second'] / 1e3:.1f}k tokens/s"
        self._shown["memory"] = f"{record['rss_mb']:,.0f} MB"
        if not self.live or record.get("eval_loss") is not None:
            self.said(_line(record))

    def said(self, message: str) -> None:
        if self.quiet:
            return
        if self.live:
            self.console.print(message, soft_wrap=True, markup=False)
        else:
            print(message, file=sys.stderr, flush=True)


def _line(record: dict[str, Any]) -> str:
    parts = [f"step {record['step']:>6,}/{record['total_steps']:,}"]
    parts.append("loss not finite" if record["loss"] is None else f"loss {record['loss']:.4f}")
    parts += [f"{name} {value:.4f}" for name, value in record.get("losses", {}).items() if value is not None]
    if record.get("eval_loss") is not None:
        parts.append(f"held-out {record['eval_loss']:.4f}")
        parts += [f"{name.removeprefix('masked_').replace('_', ' ')} {value:.1%}" for name, value in record.items()
                  if name.endswith("accuracy") and value is not None]
    parts.append(f"rate {record['learning_rate']:.2e}")
    if record["grad_norm"] is not None:
        parts.append(f"norm {record['grad_norm']:.2f}")
    if record["tokens_per_second"]:
        parts.append(f"{record['tokens_per_second'] / 1e3:.1f}k tokens/s")
    parts.append(f"{record['peak_rss_mb']:,.0f} MB")
    if record["skipped"]:
        parts.append(f"{record['skipped']} skipped")
    return "  ".join(parts)
