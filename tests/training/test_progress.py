"""The progress bar: in a notebook, at a terminal, and nowhere else."""

import re
import sys
from types import ModuleType, SimpleNamespace

import pytest

from mini_bert.training import progress
from mini_bert.training.loop import Listener, Listeners, State
from mini_bert.training.progress import ProgressBar, heard


class Shown:
    """What a cell of a notebook shows."""

    def __init__(self):
        self.contents: list[str] = []

    def display(self, content, raw, display_id):
        self.contents.append(content["text/html"])
        return SimpleNamespace(update=self.update)

    def update(self, content, raw):
        self.contents[-1] = content["text/html"]


@pytest.fixture
def notebook(monkeypatch) -> Shown:
    """A stand-in for IPython in a kernel."""
    shown, ipython, display = Shown(), ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(config={"IPKernelApp": {}})
    display.display = shown.display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return shown


def trained(bar: ProgressBar, steps: int = 4) -> None:
    state = State(total_steps=steps)
    bar.began(SimpleNamespace(state=state))
    for _ in range(steps):
        state.step += 1
        state.smooth(2.5)
        bar.stepped(state, 2.5)
        bar.logged({"eval_loss": 3.25})


def test_a_notebook_shows_a_bar_by_default_and_keeps_it_up_to_date(notebook, monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS", 0.0)
    (bar,) = heard(None).listeners
    trained(bar)
    (shown,) = notebook.contents                              # one display, updated
    assert 'value="1.0000"' in shown
    assert "4/4, loss 2.500, held-out 3.250" in shown


def test_a_sentence_comes_between_two_bars(notebook, capsys):
    bar = ProgressBar()
    trained(bar)
    bar.said("Evaluating.")
    trained(bar)
    assert len(notebook.contents) == 2
    assert capsys.readouterr().out == "Evaluating.\n"


def test_a_terminal_shows_a_line_with_the_time_left(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "_SECONDS", 0.0)
    (bar,) = heard(None).listeners
    trained(bar)
    bar.said("Done.")
    printed = capsys.readouterr().err
    lines = re.split(r"[\r\n]+", printed.replace("\x1b[K", "").strip())
    assert lines[0].split(" ", 1)[0] == "━" * 6
    assert lines[0].endswith("1/4, loss 2.500, 0:00 left")
    assert lines[-2:] == ["━" * 24 + " 4/4, loss 2.500, held-out 3.250", "Done."]


def test_nothing_is_shown_where_nobody_looks_and_own_listeners_are_taken_as_they_are():
    assert heard(None).listeners == []
    own = Listener()
    assert heard(own).listeners == [own]
    assert heard([own, own]).listeners == [own, own]
    assert heard(()).listeners == []
    several = Listeners([own])
    assert heard(several) is several
