"""The table of a step: what it computed, in rows that add up."""

import pytest

from mini_bert.bench.contest import BenchTask
from mini_bert.bench.profile import Profile, profile
from mini_bert.plots import plot_profile


@pytest.fixture(scope="module")
def found() -> Profile:
    return profile(BenchTask("debug", batch_size=4, length=16, threads=2), steps=1)


def test_operations_of_all_layers_are_counted(found: Profile):
    calls = {row.name: row.calls for row in found.rows}
    # two micro-batches of two layers: a projection of Q, K, V and of the context, two maps of the network; and the head
    assert calls["linear, forward"] == calls["linear, backward"] == 2 * (2 * 6 + 1)
    assert calls["attention, forward"] == calls["attention, backward"] == 2 * 2
    assert calls["optimiser"] >= 1


def test_the_rows_are_sorted_and_add_up_to_the_step(found: Profile):
    seconds = [row.seconds for row in found.rows]
    assert seconds == sorted(seconds, reverse=True)
    assert sum(seconds) == pytest.approx(found.watched)
    assert 0 < found.floor < found.watched


def test_memory_is_that_of_the_arrays(found: Profile):
    peaks = {row.name: row.peak_bytes for row in found.rows}
    assert peaks["linear, forward"] >= 2 * 16 * 32 * 4                           # at least a result of debug's width
    assert peaks["linear, forward"] < 10**7


def test_the_picture_shows_the_dear_ones_and_the_rest():
    picture = plot_profile({"linear": 0.9, "attention": 0.099, "tiny": 0.001}, 0.8)
    assert [tick.get_text() for tick in picture.axes[0].get_yticklabels()] == ["linear", "attention", "all others"]
