"""A progress bar for training that is started from Python: in a notebook, or on standard error at a terminal.

It is the default where somebody is likely to look; with `listener=()` there is none. The command line has its own.
"""

import sys
from collections.abc import Callable, Sequence
from html import escape
from importlib import import_module
from time import monotonic
from typing import Any

from .loop import Listener, Listeners, State

_SECONDS = 0.2                # between two updates
_WIDTH = 24                   # characters of a bar in text

Show = Callable[[str, float], None]       # what is known in words, and the share that is done


class ProgressBar(Listener):
    """One line that changes: steps, loss, held-out loss, and the time left."""

    def __init__(self) -> None:
        self._show: Show = _in_notebook() or _at_terminal
        self._begin, self._first, self._shown, self._heldout = monotonic(), 0, 0.0, ""

    def began(self, trainer: Any) -> None:
        self._begin, self._first, self._shown, self._heldout = monotonic(), trainer.state.step, 0.0, ""

    def stepped(self, state: State, loss: float) -> None:
        now, last = monotonic(), state.step >= state.total_steps
        if last or now - self._shown >= _SECONDS:
            self._shown = now
            pace = (now - self._begin) / max(1, state.step - self._first)
            left = "" if last else f", {_clock(pace * (state.total_steps - state.step))} left"
            self._show(f"{state.step:,}/{state.total_steps:,}, loss {state.mean_loss:.3f}{self._heldout}{left}",
                       state.step / max(1, state.total_steps))

    def logged(self, record: dict[str, Any]) -> None:
        if record.get("eval_loss") is not None:
            self._heldout = f", held-out {record['eval_loss']:.3f}"

    def said(self, message: str) -> None:
        if self._show is _at_terminal:
            print(f"\r\x1b[K{message}", file=sys.stderr, flush=True)
        else:
            print(message)
            self._show = _in_notebook() or _at_terminal       # a new bar, below the sentence


def heard(listener: Listener | Sequence[Listener] | None) -> Listeners:
    """The listeners as one; None stands for a progress bar where somebody looks, and for nothing elsewhere."""
    if listener is None:
        attended = _shell() is not None or (sys.stderr is not None and sys.stderr.isatty())
        return Listeners([ProgressBar()] if attended else [])
    return Listeners.of(listener)


def _shell() -> Any:
    """The notebook's, if this is one."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if shell is not None and "IPKernelApp" in shell.config else None


def _in_notebook() -> Show | None:
    """Shows a bar in the output of the present cell, which appears with the first call."""
    if _shell() is None:
        return None
    display, handles = import_module("IPython.display").display, list[Any]()

    def show(words: str, share: float) -> None:
        content = {"text/plain": words, "text/html": f'<progress value="{share:.4f}" max="1" style="width: 20em">'
                                                     f'</progress> {escape(words)}'}
        if handles:
            handles[0].update(content, raw=True)
        else:
            handles.append(display(content, raw=True, display_id=True))

    return show


def _at_terminal(words: str, share: float) -> None:
    done = round(_WIDTH * share)
    end = "\n" if share >= 1 else ""
    print(f"\r\x1b[K{'━' * done}{' ' * (_WIDTH - done)} {words}", end=end, file=sys.stderr, flush=True)


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
