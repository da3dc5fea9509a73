"""Additive increase, multiplicative decrease: as pure arithmetic."""

from hypothesis import given
from hypothesis import strategies as st

from zlclient.batch.pace import LONGEST_PAUSE, Pace


def test_it_starts_at_its_ceiling_and_halves_once_for_all_that_was_in_flight():
    pace = Pace(32)
    assert pace.has_room(31)
    assert not pace.has_room(32)
    for _ in range(10):
        pace.limited(sent=0.0, now=5.0, retry_after=None)
    assert pace.bound == 16
    pace.limited(sent=6.0, now=7.0, retry_after=None)
    assert pace.bound == 8


def test_a_bounds_worth_of_answers_adds_one():
    pace = Pace(100)
    pace.bound = 10.0
    for _ in range(10):
        pace.answered()
    assert 10.9 < pace.bound <= 11


def test_the_pause_is_what_was_asked_for_or_doubles():
    pace = Pace(8)
    pace.limited(0.0, 10.0, retry_after=7.0)
    assert pace.wait(10.0) == 7.0
    assert pace.wait(20.0) == 0.0
    pace = Pace(8)
    waits = []
    for i in range(10):
        pace.limited(100.0 * i, 100.0 * i + 1, None)
        waits.append(pace.wait(100.0 * i + 1))
    assert waits[:4] == [1, 2, 4, 8]
    assert waits[-1] == LONGEST_PAUSE
    pace.answered()
    pace.limited(5000.0, 5001.0, None)
    assert pace.wait(5001.0) == 1


@given(st.integers(1, 500), st.lists(st.booleans(), max_size=300))
def test_one_may_always_be_sent_and_never_more_than_the_ceiling(ceiling, story):
    pace = Pace(ceiling)
    for now, good in enumerate(story):
        if good:
            pace.answered()
        else:
            pace.limited(float(now), now + 0.5, None)
        assert pace.has_room(0)
        assert not pace.has_room(ceiling)
