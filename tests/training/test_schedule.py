"""The learning rate over a run."""

import pytest

from mini_bert import ConfigError
from mini_bert.training.schedules import learning_rate


def curve(schedule: str, **options: float) -> list[float]:
    return [learning_rate(step, 100, peak=2.0, schedule=schedule, warmup=10, **options) for step in range(101)]


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant", "wsd"])
def test_all_begin_with_a_warm_up(schedule):
    rates = curve(schedule)
    assert rates[:10] == pytest.approx([0.2 * (step + 1) for step in range(10)])
    assert max(rates) == rates[10] == pytest.approx(2.0)
    assert rates[10:] == sorted(rates[10:], reverse=True)


def test_their_shapes():
    assert curve("linear")[55] == pytest.approx(1.0)
    assert curve("linear")[100] == 0
    assert curve("cosine")[55] == pytest.approx(1.0)
    assert curve("cosine")[32] > curve("linear")[32]
    assert curve("constant")[100] == 2.0
    assert curve("wsd", decay_share=0.5)[55] == pytest.approx(2.0)
    assert curve("wsd", decay_share=0.5)[100] == 0
    assert curve("linear", final_share=0.1)[100] == pytest.approx(0.2)


def test_an_unknown_one_is_refused():
    with pytest.raises(ConfigError, match="linear, cosine"):
        learning_rate(0, 10, peak=1.0, schedule="stairs")
