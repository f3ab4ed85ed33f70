"""A sample of the mutations; `python -m tests.torture.mutations` makes as many as are wanted."""

from collections import Counter

from torture.mutations import run


def test_changed_files_are_read_or_refused_with_one_sentence():
    outcomes: Counter[str] = Counter()
    assert list(run(400, seed=7, outcomes=outcomes)) == []
    assert outcomes["refused"] > 100
    assert outcomes["accepted"] > 40
