"""Decisions a second beside the GrowthBook SDK, and what recording an exposure costs with each store.

    python tests/benchmarks/assignment.py [STORE_URL ...]

Sides take turns within one run and the best turn of each counts, so the ratio holds on a busy machine. Stores:
memory and sqlite, and whatever addresses are given, such as redis://127.0.0.1:6379/0.
"""

import logging
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version

from zlclient.routing.experiments import Assigner, Experiment
from zlclient.routing.rollouts import parse_rollouts
from zlclient.routing.router import Router
from zlclient.routing.stores import open_store

UNITS = [f"user-{number}" for number in range(2_000)]
TURNS = 15


def best(sides: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Microseconds a unit of each side's best turn."""
    found = dict.fromkeys(sides, float("inf"))
    for _ in range(TURNS):
        for name, side in sides.items():
            begin = time.perf_counter()
            side()
            found[name] = min(found[name], (time.perf_counter() - begin) / len(UNITS) * 1e6)
    return found


def decisions() -> None:
    experiment = Experiment("support-bot", ("legacy", "auto"))
    assigner = Assigner(experiment, experiment.cells())
    router = Router(
        parse_rollouts({"support-bot": {"arms": ["legacy", "auto"], "unit": "user_id"}}), open_store("memory")
    )
    router.assign("support-bot", unit="warm")
    sides: dict[str, Callable[[], object]] = {
        "Assigner.decide": lambda: [assigner.decide(unit) for unit in UNITS],
        "Router.assign": lambda: [router.assign("support-bot", unit=unit) for unit in UNITS],
    }
    try:
        import growthbook
    except ImportError:
        print("growthbook is not installed: no comparison")
    else:
        logging.getLogger("growthbook").setLevel(logging.ERROR)
        rule = growthbook.Experiment(key="support-bot", variations=["legacy", "auto"], hashVersion=2)
        arms = [growthbook.GrowthBook(attributes={"id": unit}).run(rule).value for unit in UNITS]
        assert arms == [assigner.decide(unit).arm for unit in UNITS], "both must give the same arms"
        shared = growthbook.GrowthBook()

        def peer() -> None:
            for unit in UNITS:
                shared.set_attributes({"id": unit})
                shared.run(rule)

        sides[f"growthbook {version('growthbook')}"] = peer
    found = best(sides)
    for name, micros in found.items():
        print(f"{name:24} {micros:8.2f} µs a decision {1e6 / micros:12,.0f} a second")
    peers = [micros for name, micros in found.items() if name.startswith("growthbook")]
    if peers:
        print(f"Assigner.decide is {peers[0] / found['Assigner.decide']:.1f} times as fast as growthbook")
    router.close()


def exposures(url: str) -> None:
    rollouts = parse_rollouts({"bench": {"arms": ["legacy", "auto"], "unit": "user_id"}})
    router = Router(rollouts, open_store(url), bound=100_000)
    decision = router.assign("bench", unit="u")
    stamp, count = time.time_ns(), 10_000
    begin = time.perf_counter()
    for number in range(count):
        router.record(
            decision, f"{stamp}-{number}", ttft_s=0.18, latency_s=2.0, cost_usd=0.001, checks={"format": True}
        )
    call = time.perf_counter() - begin
    router.flush()
    whole = time.perf_counter() - begin
    name = url.partition(":")[0]
    print(
        f"{name:12} {call / count * 1e6:6.1f} µs a record() {whole / count * 1e6:6.1f} µs with its share of the writing"
    )
    router.close()


if __name__ == "__main__":
    decisions()
    with tempfile.TemporaryDirectory() as folder:
        for address in ("memory", f"sqlite:///{folder}/bench.db", *sys.argv[1:]):
            exposures(address)
