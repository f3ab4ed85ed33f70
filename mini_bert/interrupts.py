"""Deferring interrupts to a safe moment.

Ctrl-C (SIGINT) and SIGTERM may arrive between any two instructions. Inside `held_interrupts` they are only recorded,
and raised when the block ends. Code inside the block can check `noted` and handle them earlier.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """The signal that arrived, in `noted`, or None."""

    def __init__(self) -> None:
        self.noted: signal.Signals | None = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.noted = signal.Signals(number)

    def answered(self) -> None:
        """Mark the interrupt as handled, so that the end of the block does not raise it."""
        self.noted = None


@contextmanager
def held_interrupts() -> Iterator[Interrupts]:
    """Defer SIGINT and SIGTERM; only the main thread receives them, so elsewhere this does nothing."""
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
def broken_pipes_raise() -> Iterator[None]:
    """Inside, writing to a process or a client that has gone is an error that can be handled.

    The command line lets SIGPIPE end it, as a command does whose output nobody reads; but a server must outlive its
    clients, and a grader the answer. Only the main thread may set this, so elsewhere it does nothing.
    """
    if not hasattr(signal, "SIGPIPE") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL if before is None else before)


@contextmanager
def children_without_interrupts() -> Iterator[None]:
    """Processes started inside do not receive SIGINT, which a terminal also sends to children.

    They inherit the signal mask of the thread that starts them.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
