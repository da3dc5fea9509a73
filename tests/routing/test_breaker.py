"""The breaker's states with an injected clock."""

import pytest

from zlclient.routing.breaker import Breaker, BreakerPolicy

POLICY = BreakerPolicy(failure_rate=0.5, minimum=4, window=10.0, cooldown=30.0, probes=2)


class Bench:
    def __init__(self) -> None:
        self.now = 100.0
        self.opened: list[float] = []
        self.breaker = Breaker(POLICY, lambda: self.now, self.opened.append)

    def calls(self, *results: bool) -> None:
        for ok in results:
            assert self.breaker.allow()
            self.breaker.record(ok)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_opens_at_the_failure_rate_and_not_below(bench):
    bench.calls(True, True, False, True, False)
    assert bench.breaker.state == "closed"
    bench.calls(False)
    assert (bench.breaker.state, bench.opened) == ("open", [130.0])
    assert not bench.breaker.allow()
    assert bench.breaker.rejected == 1


def test_needs_a_minimum_of_calls(bench):
    bench.calls(False, False, False)
    assert bench.breaker.state == "closed"


def test_forgets_calls_beyond_the_window(bench):
    bench.calls(False, False, False)
    bench.now += 11
    bench.calls(False, True, True, True)
    assert bench.breaker.state == "closed"


def test_a_failed_probe_opens_it_again(bench):
    bench.calls(*[False] * 4)
    bench.now += 30
    assert bench.breaker.state == "half-open"
    assert [bench.breaker.allow() for _ in range(3)] == [True, True, False]
    bench.breaker.record(False)
    assert bench.breaker.state == "open"
    assert bench.opened == [130.0, 160.0]


def test_successful_probes_close_it_with_a_clean_slate(bench):
    bench.calls(*[False] * 4)
    bench.now += 30
    bench.calls(True, True)
    assert bench.breaker.state == "closed"
    bench.calls(False, False, False)
    assert bench.breaker.state == "closed"


def test_a_released_probe_may_be_taken_again(bench):
    bench.calls(*[False] * 4)
    bench.now += 30
    assert bench.breaker.allow()
    bench.breaker.release()
    assert [bench.breaker.allow() for _ in range(3)] == [True, True, False]


def test_probes_that_never_come_back_do_not_shut_it_for_ever(bench):
    bench.calls(*[False] * 4)
    bench.now += 30
    assert [bench.breaker.allow() for _ in range(3)] == [True, True, False]
    bench.now += 29
    assert not bench.breaker.allow()
    bench.now += 1
    bench.calls(True, True)
    assert bench.breaker.state == "closed"


def test_calls_under_way_when_it_opened_are_no_probes(bench):
    bench.calls(*[False] * 4)
    bench.breaker.record(True)
    bench.breaker.record(False)
    bench.now += 30
    bench.breaker.record(False)
    assert (bench.breaker.state, len(bench.opened)) == ("half-open", 1)


def test_another_process_opens_it_once_and_never_shortens_it(bench):
    bench.breaker.open_until(90.0)
    assert bench.breaker.state == "closed"
    bench.breaker.open_until(150.0)
    bench.breaker.open_until(120.0)
    bench.now = 149.0
    assert bench.breaker.state == "open"
    bench.now = 150.0
    bench.calls(True, True)
    bench.breaker.open_until(150.0)
    assert (bench.breaker.state, bench.opened) == ("closed", [])
