"""Listeners follow fine-tuning as they follow pre-training: its beginning, each step, and each evaluation."""

from collections.abc import Callable
from dataclasses import dataclass

from ..evaluation.tasks.run import Announce
from ..training.finetune import Progress
from ..training.loop import Listener, State


@dataclass
class Training:
    """What `Listener.began` is given: the name of what begins, such as "seed 0", and its steps."""

    name: str
    state: State


def announcer(listener: Listener) -> Announce:
    """Tells the listener of the fine-tuning of each name."""
    def announce(name: str) -> Callable[[Progress], bool | None]:
        state = State()

        def hear(progress: Progress) -> bool | None:
            if not state.step:
                state.total_steps = progress.total
                listener.began(Training(name, state))
            state.step, state.smoothed_loss, state.smoothing = progress.step, progress.loss, 1.0
            if progress.evaluated:
                listener.logged({"name": name, "step": progress.step, "total_steps": progress.total,
                                 "epoch": progress.epoch, "loss": progress.loss, "score": progress.score,
                                 "best": progress.best})
            return listener.stepped(state, progress.loss)

        return hear

    return announce


def counter(listener: Listener, name: str) -> Callable[[int, int], None]:
    """Tells the listener how much of something is done that has no loss."""
    state = State()

    def hear(done: int, total: int) -> None:
        state.total_steps = total
        if not state.step:
            listener.began(Training(name, state))
        state.step = done
        listener.stepped(state, float("nan"))

    return hear
