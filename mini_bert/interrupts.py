"""Interrupts that wait for a safe moment.

Ctrl-C (SIGINT) and SIGTERM may arrive between any two instructions. Inside `held_interrupts` they are noted,
and take effect when the block ends; or earlier, by the code inside, that asks `noted` and answers itself.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """What has arrived: `noted` is the signal, or None."""

    def __init__(self) -> None:
        self.noted: signal.Signals | None = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.noted = signal.Signals(number)

    def answered(self) -> None:
        """The interrupt has been dealt with: the end of the block does not raise it again."""
        self.noted = None


@contextmanager
def held_interrupts() -> Iterator[Interrupts]:
    """Hold SIGINT and SIGTERM back; outside the main thread, which alone gets them, this does nothing."""
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = {number: signal.signal(number, interrupts._note) for number in _SIGNALS}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if interrupts.noted is not None:
            signal.raise_signal(interrupts.noted)


@contextmanager
def children_without_interrupts() -> Iterator[None]:
    """Processes that are started inside never see SIGINT: the terminal sends it to them too, but it is their
    parent that answers it. (They inherit the mask of the thread that starts them.)"""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
