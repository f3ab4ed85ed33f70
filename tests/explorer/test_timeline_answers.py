"""The timeline that the page is given."""

import shutil
from dataclasses import replace

import pytest

from mini_bert.analysis.timeline.record import Line, Panel, Timeline
from mini_bert.explorer import run_answers
from mini_bert.explorer.answers import ANSWERS
from mini_bert.explorer.runs import Run, shipped_timelines
from mini_bert.pretrained import shipped_names

LOSS = Panel("loss", "Held-out loss", "number", False, {}, [
    Line("held-out", [5.0, 4.0], [None] * 2, [None] * 2, {"uniform": 6.0})])
MADE = Timeline("any", 9, [1, 12], [10, 900], [LOSS], {}, 0, [])


@pytest.fixture
def asked(session):
    return lambda: ANSWERS["timeline"](session, {})


def test_without_a_run_it_is_that_of_a_shipped_model_and_first_of_the_one_that_is_shown(asked, tmp_path, monkeypatch):
    monkeypatch.setattr(run_answers, "shipped_timelines", lambda first: {first: tmp_path / first, "mini": tmp_path})
    assert asked() == {"timeline": None, "of": None, "notes": []}
    MADE.save(tmp_path)
    assert (asked()["of"], asked()["timeline"]["tokens"]) == ("mini", [10, 900])
    (tmp_path / "small").mkdir()
    replace(MADE, tokens=[20, 800]).save(tmp_path / "small")
    assert (asked()["of"], asked()["timeline"]["tokens"]) == ("small", [20, 800])


def test_shipped_models_are_looked_through_beginning_with_the_one_that_is_shown():
    assert set(shipped_timelines("anything")) == set(shipped_names())
    assert next(iter(shipped_timelines("mini"))) == "mini"
    assert all((place / "config.json").is_file() for place in shipped_timelines("mini").values())


def test_with_a_run_it_is_the_runs_own_or_none(asked, session, finished_run, tmp_path, monkeypatch):
    monkeypatch.setattr(run_answers, "shipped_timelines", lambda first: {"mini": tmp_path})
    MADE.save(tmp_path)
    shutil.copytree(finished_run, tmp_path / "run")
    session.run = Run(tmp_path / "run")
    assert asked() == {"timeline": None, "of": None, "notes": []}
    MADE.save(tmp_path / "run")
    assert asked()["timeline"]["panels"][0]["lines"][0]["values"] == [5.0, 4.0]
    (tmp_path / "run" / "timeline.json").write_text("[1]")
    assert asked()["timeline"] is None
    assert "timeline.json must contain" in asked()["notes"][0]
