"""Settings that change over a run: how they are written, and what they are when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_bert import ConfigError
from mini_bert.text.schedule import Schedule, Step, share_of


@pytest.mark.parametrize(("text", "kind", "expected"), [
    ("0.15", float, {0: 0.15, 0.5: 0.15, 1: 0.15}),
    ("0.4 -> 0.15", float, {0: 0.4, 0.5: 0.275, 1: 0.15}),
    ("16 -> 64 over 0.6", int, {0: 16, 0.3: 40, 0.6: 64, 0.8: 64, 1: 64}),
    ("16->64 over 0.6 until 0.9, 32", int, {0: 16, 0.89: 64, 0.9: 32, 1: 32}),
    ("64 until 0.9, 128", int, {0: 64, 0.8999: 64, 0.9: 128, 1: 128}),
    ("0.4 until 0.2 then 0.4 -> 0.2 until 0.6 then 0.1", float, {0.1: 0.4, 0.2: 0.4, 0.4: 0.3, 0.6: 0.1}),
    ("8 until 0.5, 8 -> 16 over 0.25", int, {0.5: 8, 0.625: 12, 0.75: 16, 1: 16}),
    ("sentences until 0.7, packed", str, {0: "sentences", 0.69: "sentences", 0.7: "packed", 1: "packed"}),
])
def test_a_schedule_gives_its_values(text, kind, expected):
    schedule = Schedule.parse(text, kind)
    for share, value in expected.items():
        found = schedule.at(share)
        assert found == (pytest.approx(value) if kind is float else value)
        assert type(found) is kind
    assert schedule.constant == (len(set(expected.values())) == 1)
    again = Schedule.parse(str(schedule), kind)
    assert [again.at(i / 100) for i in range(101)] == [schedule.at(i / 100) for i in range(101)]


@pytest.mark.parametrize(("text", "kind", "reason"), [
    ("", float, "a value is missing at its end"),
    ("0.4 ->", float, "a value is missing at its end"),
    ("-> 3", int, "a value is missing before '->'"),
    ("64 until", int, "a share of the run after `until` is missing"),
    ("64 until 0.9", int, "nothing follows when the last value ends"),
    ("64, 128", int, "needs `until` and a share"),
    ("64 until 0.9 128", int, "'128' is not expected there"),
    ("64 until 2, 128", int, "'2' is not a share of the run"),
    ("64 until soon, 128", int, "'soon' is not a share of the run"),
    ("64 until 0.5, 32 until 0.5, 8", int, "0.5 is not after 0.5"),
    ("1 -> 2 over 0.7 until 0.5, 3", int, "a line over 0.7 that begins at 0 goes beyond 0.5"),
    ("64 over 0.5", int, "'over' is not expected there"),
    ("sentences -> packed", str, "there is nothing between sentences and packed"),
    ("many", int, "must be a whole number, not 'many'"),
    ("1.5 -> 2", int, "must be a whole number, not '1.5'"),
    ("0.4 -> low", float, "must be a number, not 'low'"),
    ("1 until 0.5, " * 200 + "1", int, "at most 1,000 characters"),
])
def test_what_is_no_schedule_is_refused_in_a_sentence(text, kind, reason):
    with pytest.raises(ConfigError) as caught:
        Schedule.parse(text, kind, "batch_size")
    assert reason in str(caught.value)
    assert str(caught.value).startswith("batch_size")


@given(st.text(alphabet="0123456789.,->untilover then", max_size=40))
def test_any_text_is_a_schedule_or_is_refused(text):
    try:
        schedule = Schedule.parse(text, float, "masking_rate")
    except ConfigError:
        return
    assert all(isinstance(schedule.at(share), float) for share in (0.0, 0.5, 1.0))


def test_a_step_knows_how_much_of_its_run_is_done():
    schedule = Schedule.parse("0.4 -> 0.2", float)
    assert [share_of(Step(n, 8)) for n in (0, 2, 8, 9)] == [0, 0.25, 1, 1]
    assert schedule(Step(4, 8)) == pytest.approx(0.3)
    assert schedule(4) == schedule(Step(4)) == 0.4            # a plain number stands at the beginning
    assert Step(4, 8) == 4
    assert divmod(Step(9, 10), 4) == (2, 1)
