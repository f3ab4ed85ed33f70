"""Intervals against known values."""

import pytest

from mini_bert import InputError
from mini_bert.evaluation.statistics import over_seeds, wilson_interval


def test_the_interval_of_three_runs_uses_students_t():
    found = over_seeds([1.0, 2.0, 3.0])
    assert found.mean == 2.0
    assert found.margin == pytest.approx(4.303 / 3**0.5, rel=1e-6)
    assert over_seeds([0.5]) == (0.5, None, None, 1)          # one run has no interval
    assert over_seeds([0.5]).margin is None
    assert over_seeds([0.5]).shown() == "50.0"
    assert over_seeds([0.80, 0.82]).shown().startswith("81.0 ± 12.7")


def test_wilsons_interval():
    found = wilson_interval(8, 10)                              # textbook: 0.490 to 0.943
    assert (found.low, found.high) == (pytest.approx(0.490, abs=1e-3), pytest.approx(0.943, abs=1e-3))
    assert wilson_interval(0, 5).low == pytest.approx(0, abs=1e-12)
    assert wilson_interval(5, 5).high == pytest.approx(1)
    assert wilson_interval(2.5, 5).mean == 0.5


def test_an_asymmetric_interval_is_written_out():
    assert wilson_interval(98, 100).shown() == "98.0 (93.0 to 99.4)"
    assert wilson_interval(60, 60).shown() == "100.0 (94.0 to 100.0)"
    assert wilson_interval(500, 1000).shown() == "50.0 ± 3.1"


@pytest.mark.parametrize(("successes", "count"), [(1, 0), (-1, 3), (4, 3)])
def test_invalid_shares_are_refused(successes, count):
    with pytest.raises(InputError, match="not a share"):
        wilson_interval(successes, count)
    with pytest.raises(InputError, match="no values"):
        over_seeds([])
