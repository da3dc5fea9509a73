"""When an attempt is repeated: the pure rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlclient import errors
from zlclient.prepared import Bounds
from zlclient.sending.policy import LONGEST_RETRY_AFTER, is_transient, is_unavailable, retry_wait


def bounds(**changes):
    values = {"first_event": 5, "silence": 5, "deadline": None, "retry": 1, "retry_wait": 3.0} | changes
    return Bounds(**values)


def error(kind, **details):
    return kind("x", provider="p", model="m", **details)


@pytest.mark.parametrize("status", range(400, 600))
def test_statuses(status):
    kind = errors.status_error(status)
    assert is_transient(error(kind, status=status)) == (status in (408, 409, 429) or status >= 500)


def test_kinds():
    assert is_transient(error(errors.ConnectFailed))
    assert is_transient(error(errors.Timeout))
    assert is_transient(error(errors.DeadlineExceeded))
    for kind in (errors.StreamBroken, errors.BadAnswer, errors.EmptyAnswer, errors.ClientClosed):
        assert not is_transient(error(kind))
    assert is_unavailable(error(errors.BadAnswer))
    assert not is_unavailable(error(errors.StreamBroken))


@given(wait=st.floats(0, 1e6), attempts=st.integers(1, 5), retry=st.integers(0, 4), left=st.none() | st.floats(-5, 100))
def test_a_wait_always_fits(wait, attempts, retry, left):
    limited = error(errors.RateLimited, status=429, retry_after=wait)
    given_wait = retry_wait(limited, attempts, bounds(retry=retry), left)
    longest = LONGEST_RETRY_AFTER if left is None else left
    if given_wait is not None:
        assert given_wait == wait <= longest
        assert attempts <= retry
    else:
        assert attempts > retry or wait >= longest


def test_the_own_wait_must_leave_time_before_the_deadline():
    assert retry_wait(error(errors.Timeout), 1, bounds(), None) == 3.0
    assert retry_wait(error(errors.Timeout), 1, bounds(), 3.1) == 3.0
    assert retry_wait(error(errors.Timeout), 1, bounds(), 2.9) is None
