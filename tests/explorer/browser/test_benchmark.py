"""benchmarks/explorer.py fails where a click takes too long, or where the page is too heavy."""

import sys
from contextlib import nullcontext
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from unittest.mock import Mock

import browsing  # noqa: F401  (skips where there is no browser)
import pytest


@pytest.fixture
def benchmark(monkeypatch):
    """The script, with a browser that does nothing: what it measures is given by the test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = spec_from_file_location("explorer_benchmark", Path(__file__).parents[3] / "benchmarks" / "explorer.py")
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    monkeypatch.setattr(sys, "argv", ["explorer.py"])
    for name, stand_in in (("start_chromium", Mock()), ("open_session", Mock()), ("serving", nullcontext)):
        monkeypatch.setattr(made, name, stand_in)
    return made


def test_it_ends_well_within_the_limits(benchmark, monkeypatch, capsys):
    monkeypatch.setattr(benchmark, "measure", lambda *click: [20.0, 150.0, 900.0])       # their median counts
    benchmark.main()
    assert "undo: 150 ms" in capsys.readouterr().out


def test_a_slow_click_fails(benchmark, monkeypatch):
    monkeypatch.setattr(benchmark, "measure", lambda *click: [151.0 if "#undo" in click else 20.0])
    with pytest.raises(SystemExit, match=r"^undo takes 151 ms; at most 150 ms are allowed\.$"):
        benchmark.main()


def test_a_heavy_page_fails(benchmark, monkeypatch):
    monkeypatch.setattr(benchmark, "measure", lambda *click: [20.0])
    monkeypatch.setattr(benchmark, "MOST_BYTES", 1000)
    with pytest.raises(SystemExit, match=r"^The page has [\d,]+ bytes; at most 1,000 are allowed\.$"):
        benchmark.main()
