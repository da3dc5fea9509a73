"""The router: with injected time and `step` where it can be, with real threads, servers and forks where it must be."""

import gc
import multiprocessing
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from zlclient.errors import InputError
from zlclient.routing.judge import change_state
from zlclient.routing.records import Shadow
from zlclient.routing.rollouts import Rollout, parse_rollouts
from zlclient.routing.router import Router
from zlclient.routing.state import State
from zlclient.routing.stores import Store, StoreUnavailable, open_store
from zlclient.routing.stores.memory import MemoryStore
from zlclient.routing.tally import Tally

FORK = multiprocessing.get_context("fork")


def plans(**changes: Any) -> dict[str, Rollout]:
    table = {"control": "legacy", "treatment": "auto", "unit": "user_id", "stages": [50, 100]}
    gates = {"error_rate": "< 1%"}
    return parse_rollouts({"bot": table | {"gates": gates} | changes})


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Dying(MemoryStore):
    """A store that can be away."""

    away = False

    def _check(self) -> None:
        if self.away:
            raise StoreUnavailable("away")

    def load(self, names: Any) -> Any:
        self._check()
        return super().load(names)

    def write(self, records: Any) -> None:
        self._check()
        super().write(records)

    def note(self, event: Any) -> None:
        self._check()
        super().note(event)


def stepped(store: Any = None, clock: Any = None, bound: Any = 20_000, **changes: Any) -> Router:
    router = Router(plans(**changes), store or MemoryStore(), clock=clock or Clock(), bound=bound, background=False)
    router.step()
    return router


def unit_of(router: Router, arm: str) -> str:
    return next(f"u{i}" for i in range(100) if router.assign("bot", unit=f"u{i}").arm == arm)


def keys(store: Store) -> list[str]:
    return [record.key for record in store.read("bot")[0]]


def until(condition: Callable[[], bool], seconds: float) -> float:
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < seconds, "it took too long"
        time.sleep(0.01)
    return time.monotonic() - begin


def test_from_assignment_to_evidence():
    store = MemoryStore()
    router = stepped(store)
    decision = router.assign("bot", unit=unit_of(router, "auto"))
    assert (decision.stage, decision.epoch, decision.in_experiment) == (0, 1, True)
    router.record(decision, "r1", ttft_s=0.0, cost_usd=0.0, checks={"format": False})
    router.record(decision, "r1", error_type="Timeout")
    router.outcome("r1", "resolved", True)
    router.step()
    assert keys(store) == ["r1", "r1 resolved"]
    tally = Tally(router.rollouts["bot"], 1)
    tally.read(store)
    assert (tally.arms["auto"].requests, dict(tally.arms["auto"].errors)) == (1, {})
    # A zero is a measurement, not nothing.
    assert list(tally.arms["auto"].values["ttft"]) == [0.0]
    assert list(tally.arms["auto"].values["cost"]) == [0.0]
    assert decision.unit not in store.read("bot")[0][0].body


def test_only_compared_requests_are_recorded():
    store = MemoryStore()
    router = stepped(store)
    router.record(router.assign("bot", unit="u", force="auto"), "r1")
    router.step()
    assert keys(store) == []


def test_wrong_calls():
    router = stepped()
    with pytest.raises(InputError, match="did you mean 'bot'"):
        router.assign("bott", unit="u")
    with pytest.raises(InputError, match='unit="request"'):
        router.assign("bot")
    for value in ("yes", float("nan"), None):
        with pytest.raises(InputError):
            router.outcome("r", "resolved", value)  # type: ignore[arg-type]


def test_before_the_state_is_known_the_control_answers():
    store = Dying()
    store.away = True
    router = stepped(store)
    decision = router.assign("bot", unit="u", force="auto")
    assert (decision.arm, decision.reason, decision.in_experiment) == ("legacy", "no_state", False)
    store.away = False
    router.step()
    assert router.assign("bot", unit="u").reason == "assigned"


def test_a_dead_store_keeps_the_last_state_buffers_and_counts():
    store, clock = Dying(), Clock()
    router = stepped(store, clock, bound=100)
    decision = router.assign("bot", unit=unit_of(router, "auto"))
    store.away = True
    for i in range(150):
        router.record(decision, f"r{i}")
    router.step()
    assert (router.buffered, router.counts.dropped, router.counts.written) == (100, 50, 0)
    assert router.assign("bot", unit=decision.unit) == decision
    assert not router.flush()
    store.away = False
    router.step()
    assert (router.buffered, router.counts.written) == (0, 100)
    assert "50 exposures or outcomes were dropped" in store.history("bot")[-1].reason
    router.step()
    assert len([e for e in store.history("bot") if e.action == "note"]) == 1


def test_the_judge_rolls_back_within_the_interval_and_takes_turns():
    store, clock = MemoryStore(), Clock()
    routers = [stepped(store, clock) for _ in range(2)]
    decision = routers[0].assign("bot", unit=unit_of(routers[0], "auto"))
    for i in range(50):
        routers[0].record(decision, f"r{i}", error_type="ServerError")
    routers[0].step()
    assert routers[1].state("bot") == State("running", 0, 1, 1, 1_000.0)
    clock.now += 31
    for router in routers:
        router.step()
    for router in routers:
        router.step()
        assert router.assign("bot", unit=decision.unit).reason == "rolled_back"
    assert [e.action for e in store.history("bot")] == ["start", "rollback"]


def test_a_changed_configuration_takes_effect():
    """growthbook-python issue 33: a changed weight was never picked up."""
    tables: dict[str, dict[str, Any]] = {"bot": {"arms": ["legacy", "auto"], "unit": "user_id", "weights": [1.0, 0.0]}}
    router = Router(parse_rollouts(tables), MemoryStore(), background=False)
    router.step()
    assert router.assign("bot", unit="u").arm == "legacy"
    tables["bot"]["weights"] = [0.0, 1.0]
    router.update(parse_rollouts(tables))
    assert router.assign("bot", unit="u").arm == "auto"


def test_a_state_beyond_the_configured_stages_is_safe():
    store = MemoryStore()
    router = stepped(store)
    state = router.state("bot")
    assert state
    change_state(store, router.rollouts["bot"], state, "advance", 0.0, "tests", "")
    assert stepped(store, stages=[100]).assign("bot", unit="u").reason == "no_state"


def test_after_closing_what_comes_is_counted_as_dropped():
    router = stepped()
    decision = router.assign("bot", unit=unit_of(router, "auto"))
    router.close()
    router.close()
    router.record(decision, "late")
    assert (router.buffered, router.counts.dropped) == (0, 1)


class Confused(MemoryStore):
    """A store that holds what this version cannot read."""

    confused = False

    def load(self, names: Any) -> Any:
        if self.confused:
            raise TypeError("State.__init__() got an unexpected keyword argument")
        return super().load(names)


def test_the_background_thread_outlives_what_it_cannot_read():
    store = Confused()
    router = Router(plans(), store, poll=0.01)
    unit = unit_of(router, "auto")
    store.confused = True
    until(lambda: router.counts.store_errors > 1, 5.0)
    assert router.assign("bot", unit=unit).arm == "auto"
    store.confused = False
    state = router.state("bot")
    assert state
    change_state(store, router.rollouts["bot"], state, "kill", 0.0, "tests", "")
    until(lambda: router.assign("bot", unit=unit).reason == "killed", 5.0)
    router.close()


# Breakers.

TRIPPY = {"breaker": {"failure_rate": 0.5, "minimum": 5, "cooldown": "30 s", "probes": 2}}


def test_the_breaker_opens_falls_back_visibly_and_probes():
    """litellm issue 40405: attempts on a dead arm stay within a few of the threshold."""
    store, clock = MemoryStore(), Clock()
    router = stepped(store, clock, **TRIPPY)
    unit = unit_of(router, "auto")
    attempts = 0
    for i in range(40):
        decision = router.assign("bot", unit=unit)
        attempts += decision.arm == "auto"
        failed = decision.arm == "auto"
        router.record(decision, f"r{i}", error_type="ConnectFailed" if failed else None, answered_by="legacy")
    assert attempts == 5
    decision = router.assign("bot", unit=unit)
    assert (decision.arm, decision.assigned, decision.reason) == ("legacy", "auto", "breaker_open")
    router.step()
    tally = Tally(router.rollouts["bot"], 1)
    tally.read(store)
    auto = tally.arms["auto"]
    assert (auto.requests, auto.errors["ConnectFailed"], auto.skipped, auto.fallbacks) == (5, 5, 35, 40)
    clock.now += 31
    probes = [router.assign("bot", unit=unit) for _ in range(3)]
    assert [probe.arm for probe in probes] == ["auto", "auto", "legacy"]
    for i, probe in enumerate(probes):
        router.record(probe, f"p{i}")
    assert router.assign("bot", unit=unit).arm == "auto"
    breaker = router.breaker("bot", "auto")
    assert breaker
    assert (breaker.state, breaker.opened) == ("closed", 1)


def test_an_open_breaker_holds_in_every_process():
    """litellm pull request 34836: a deployment in cool-down was still served by another process."""
    store, clock = MemoryStore(), Clock()
    one, other = stepped(store, clock, **TRIPPY), stepped(store, clock, **TRIPPY)
    unit = unit_of(one, "auto")
    for i in range(5):
        one.record(one.assign("bot", unit=unit), f"r{i}", error_type="Timeout")
    one.step()
    other.step()
    assert [other.assign("bot", unit=unit).arm for _ in range(20)] == ["legacy"] * 20
    clock.now += 29
    other.step()
    assert other.assign("bot", unit=unit).arm == "legacy"
    clock.now += 2
    assert other.assign("bot", unit=unit).arm == "auto"


def test_refused_requests_do_not_open_the_breaker():
    router = stepped(**TRIPPY)
    unit = unit_of(router, "auto")
    for i in range(20):
        router.record(router.assign("bot", unit=unit), f"r{i}", error_type="BadRequest")
    assert router.assign("bot", unit=unit).arm == "auto"


# Shadow traffic.


def test_shadow_copies_stay_within_the_shared_budget():
    store, clock = MemoryStore(), Clock()
    shadow = {"shadow": {"share": 0.5, "budget": 1.0, "reserve": 0.05}}
    routers = [stepped(store, clock, **shadow) for _ in range(2)]
    control = routers[0].assign("bot", unit=unit_of(routers[0], "legacy"))
    sent = 0
    for i in range(400):
        router = routers[i % 2]
        arm = router.shadow_arm(control, f"req-{i}")
        if arm:
            assert arm == "auto"
            sent += 1
            copy = Shadow(reply_id=f"req-{i}", experiment="bot", arm=arm, epoch=1, at=1.0, cost_usd=0.05)
            router.record_shadow(copy)
            router.step()
            routers[1 - i % 2].step()
    assert sent == 20
    assert store.load(["bot"])["bot"].marks["shadow"] == pytest.approx(1.0)
    treated = routers[0].assign("bot", unit=unit_of(routers[0], "auto"))
    assert stepped(**shadow).shadow_arm(treated, "req-1") is None
    assert stepped().shadow_arm(control, "req-1") is None


def test_an_arm_behind_an_open_breaker_gets_no_copies():
    router = stepped(shadow={"share": 1.0, "budget": 1.0}, **TRIPPY)
    unit = unit_of(router, "auto")
    for i in range(5):
        router.record(router.assign("bot", unit=unit), f"r{i}", error_type="Timeout")
    decision = router.assign("bot", unit=unit)
    assert decision.arm == "legacy"
    assert router.shadow_arm(decision, "req") is None


def test_copies_under_way_hold_their_reserve_back():
    router = stepped(shadow={"share": 1.0, "budget": 0.1, "reserve": 0.05})
    control = router.assign("bot", unit=unit_of(router, "legacy"))
    assert [router.shadow_arm(control, str(i)) for i in range(4)] == ["auto", "auto", None, None]


# Real threads, servers and forks.


@pytest.mark.usefixtures("deadline")
def test_a_kill_reaches_a_process_within_a_second(shared_url):
    ready, go, done = FORK.Event(), FORK.Event(), FORK.Queue()

    def serve() -> None:
        router = Router(plans(), open_store(shared_url))
        assert router.assign("bot", unit="u").reason == "assigned"
        ready.set()
        go.wait(10)
        done.put(until(lambda: router.assign("bot", unit="u").reason == "killed", 5.0))
        router.close()

    process = FORK.Process(target=serve)
    process.start()
    assert ready.wait(10)
    store = open_store(shared_url)
    state = store.load(["bot"])["bot"].state
    assert state
    go.set()
    assert change_state(store, plans()["bot"], state, "kill", time.time(), "tests", "now")
    assert done.get(timeout=10) < 1.0
    process.join(10)


@pytest.mark.usefixtures("deadline")
def test_eight_processes_advance_once(shared_url):
    barrier, done = FORK.Barrier(8), FORK.Queue()

    def serve(number: int) -> None:
        writer = Router(plans(interval=0.0), open_store(shared_url), background=False)
        writer.step()
        for i in range(200):
            decision = writer.assign("bot", unit=f"u{number}-{i}")
            writer.record(decision, f"r{number}-{i}")
        writer.close()
        router = Router(plans(advance="auto", interval=0.0), open_store(shared_url), background=False)
        barrier.wait()

        def advanced() -> bool:
            router.step()
            state = router.state("bot")
            return state is not None and state.stage == 1

        until(advanced, 10.0)
        done.put(writer.counts.written)
        router.close()

    processes = [FORK.Process(target=serve, args=(number,)) for number in range(8)]
    for process in processes:
        process.start()
    found = [done.get(timeout=25) for _ in processes]
    for process in processes:
        process.join(10)
    assert found == [200] * 8
    assert [e.action for e in open_store(shared_url).history("bot")] == ["start", "advance"]


@pytest.mark.usefixtures("deadline")
@pytest.mark.parametrize("kind", ["redis", "postgresql"])
def test_a_killed_server_loses_nothing_that_fits_the_buffer(request, kind):
    server = request.getfixturevalue({"redis": "redis_server", "postgresql": "postgres_server"}[kind])
    name = f"killed-{kind}-{time.time_ns()}"
    rollouts = {name: plans()["bot"].with_experiment(name=name)}
    router = Router(rollouts, open_store(server.url), poll=0.1)
    decision = next(d for i in range(99) if (d := router.assign(name, unit=f"u{i}")).arm == "auto")
    try:
        server.kill()
        begin = time.perf_counter()
        for i in range(500):
            router.record(decision, f"r{i}")
            assert router.assign(name, unit=decision.unit) == decision
        assert time.perf_counter() - begin < 1.0
        until(lambda: router.counts.store_errors > 0, 10.0)
    finally:
        server.start()
    until(lambda: router.counts.written == 500, 10.0)
    router.close()
    assert len(open_store(server.url).read(name)[0]) == 500


@pytest.mark.usefixtures("deadline")
@pytest.mark.parametrize("kind", ["redis", "postgresql"])
def test_a_cut_network_never_blocks_a_request(request, proxy_to, kind):
    server = request.getfixturevalue({"redis": "redis_server", "postgresql": "postgres_server"}[kind])
    proxy = proxy_to(server.port)
    name = f"cut-{kind}-{time.time_ns()}"
    rollouts = {name: plans()["bot"].with_experiment(name=name)}
    router = Router(rollouts, open_store(server.url.replace(str(server.port), str(proxy.port))), poll=0.1, bound=50)
    decision = next(d for i in range(99) if (d := router.assign(name, unit=f"u{i}")).arm == "auto")
    proxy.cut()
    begin = time.perf_counter()
    for i in range(80):
        router.record(decision, f"r{i}")
        router.assign(name, unit=decision.unit)
    assert time.perf_counter() - begin < 0.5
    assert router.counts.dropped >= 30
    until(lambda: router.counts.store_errors > 0, 15.0)
    proxy.mend()
    until(lambda: router.counts.written == 80 - router.counts.dropped, 10.0)
    router.close()


@pytest.mark.usefixtures("deadline")
def test_after_a_fork_the_child_records_for_itself(shared_url):
    router = Router(plans(), open_store(shared_url))
    decision = router.assign("bot", unit=unit_of(router, "auto"))
    router.record(decision, "parent")
    done = FORK.Queue()

    def child() -> None:
        assert router.assign("bot", unit=decision.unit) == decision
        router.record(decision, "child")
        router.close()
        done.put(router.counts.written)

    processes = [FORK.Process(target=child) for _ in range(3)]
    for process in processes:
        process.start()
    assert [done.get(timeout=10) for _ in processes] == [1, 1, 1]
    for process in processes:
        process.join(10)
        assert process.exitcode == 0
    router.close()
    assert sorted(keys(open_store(shared_url))) == ["child", "parent"]


def test_a_forgotten_router_stops_its_thread_and_writes_what_it_held():
    store = MemoryStore()
    router = Router(plans(), store, poll=0.01)
    decision = router.assign("bot", unit=unit_of(router, "auto"))
    router.record(decision, "r1")
    del router
    gc.collect()
    until(lambda: keys(store) == ["r1"], 5.0)
    until(lambda: not any(t.name.startswith("zlclient-rollouts") for t in threading.enumerate()), 5.0)


def test_many_threads_share_a_router():
    store = MemoryStore()
    router = Router(plans(), store)

    def work(number: int) -> None:
        for i in range(300):
            router.record(router.assign("bot", unit=f"u{i}"), f"r{number}-{i}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    router.close()
    assert len(set(keys(store))) == len(keys(store)) == 2_400
    assert router.counts.dropped == 0
