"""Verdicts on made evidence: what promotes, what holds and why, what is rolled back."""

import random
from dataclasses import replace
from typing import Any

import pytest

from zlclient.errors import InputError
from zlclient.routing.evidence import quantile
from zlclient.routing.judge import Judge, change_state, start
from zlclient.routing.records import Exposure, Outcome, Record, Shadow
from zlclient.routing.rollouts import Rollout, parse_rollouts
from zlclient.routing.state import State, first_state, move, possible_actions
from zlclient.routing.stores.memory import MemoryStore
from zlclient.routing.tally import Tally
from zlclient.routing.verdict import Verdict, judge

HALF = State("running", 1, 5, 5, 0.0)


def plan(gates: dict[str, str], **more: Any) -> Rollout:
    table = {"control": "legacy", "treatment": "auto", "unit": "user_id", "stages": [10, 50, 100], "gates": gates}
    return parse_rollouts({"bot": table | more})["bot"]


def exposures(
    arm: str, count: int, *, epoch: int = 5, start: int = 0, step: float = 1.0, **fields: Any
) -> list[Record]:
    """`fields` may be functions of the request's number."""
    found: list[Record] = []
    for i in range(start, start + count):
        values: dict[str, Any] = {key: value(i) if callable(value) else value for key, value in fields.items()}
        found.append(
            Exposure(
                reply_id=f"{arm}-{i}",
                experiment="bot",
                arm=arm,
                stage=1,
                epoch=epoch,
                unit=f"{arm}-{i}",
                at=i * step,
                **values,
            ).record()
        )
    return found


def verdict(rollout: Rollout, *records: list[Record], now: float = 10_000.0, state: State = HALF) -> Verdict:
    tally = Tally(rollout, state.since)
    for page in records:
        tally.add(page)
    return judge(rollout, state, tally, now)


def failing(share: float, seed: int = 0) -> Any:
    rng = random.Random(seed)
    return lambda _: "ServerError" if rng.random() < share else None


def test_no_data_is_hold_for_every_kind_of_gate():
    gates = {"error_rate": "< 1%", "ttft_p50": "<= 1 s", "ttft_p95": "<= control", "cost_mean": "<= 1 USD"}
    for name, text in (gates | {"fcr": ">= control", "format": ">= 99%"}).items():
        found = verdict(plan({name: text}))
        assert found.decision == "HOLD"
        assert found.gates[0].standing == "no data"
    # Requests without the metric are no data either: nobody reported, no check ran.
    found = verdict(plan({"fcr": ">= control"}), exposures("auto", 500), exposures("legacy", 500))
    assert (found.decision, found.sentence) == ("HOLD", "HOLD: no data for fcr of auto")


def test_hold_says_how_many_more_and_when():
    found = verdict(plan({"error_rate": "< 0.1%"}), exposures("auto", 1_000), exposures("legacy", 1_000), now=1_000.0)
    assert found.decision == "HOLD"
    # 3,245 requests without an error show 0.1 %; one request a second came so far.
    assert found.missing == pytest.approx(2_245, abs=5)
    assert found.eta_s == pytest.approx(2_245, rel=0.05)
    assert found.sentence.startswith("HOLD: needs 2,24")
    assert found.sentence.endswith("more requests, about 37 min at today's rate")


def test_the_forecast_keeps_its_word():
    rollout = plan({"error_rate": "< 1%"})
    early = [*exposures("auto", 300, error_type=lambda i: "Timeout" if i == 100 else None), *exposures("legacy", 300)]
    found = verdict(rollout, early)
    assert found.missing
    # At the same rate of errors, 1 in 300; counted to where the next one is due.
    more = (found.missing // 300 + 1) * 300
    late = exposures("auto", more, start=300, error_type=lambda i: "Timeout" if i % 300 == 100 else None)
    assert verdict(rollout, early, late, exposures("legacy", more, start=300)).decision == "PROMOTE"


def test_errors_beyond_the_bound_are_rolled_back_at_once():
    found = verdict(
        plan({"error_rate": "< 0.01%"}), exposures("auto", 100, error_type=lambda i: "X" if i < 3 else None)
    )
    assert found.decision == "ROLLBACK"
    assert "error_rate of auto 3 %" in found.sentence
    assert found.gates[0].e_value
    assert found.gates[0].e_value >= 1_000
    two = exposures("auto", 100, error_type=lambda i: "X" if i < 2 else None)
    assert verdict(plan({"error_rate": "< 0.01%"}), two).decision == "HOLD"


def test_a_gate_just_missed_says_that_more_of_the_same_will_not_do():
    worse = exposures("auto", 500, error_type=lambda i: "X" if i % 90 == 0 else None)
    found = verdict(plan({"error_rate": "< 1%"}), worse, exposures("legacy", 500))
    assert found.decision == "HOLD"
    assert found.sentence.startswith("HOLD: at the present rate this gate will not be met: error_rate of auto")


def test_error_rate_by_type():
    gates = {"error_rate.RateLimited": "< 1%", "empty_rate": "< 50%"}
    records = exposures("auto", 1_000, error_type=lambda i: "ServerError" if i % 3 == 0 else None)
    assert verdict(plan(gates), records, exposures("legacy", 10)).decision == "HOLD"  # ratio mismatch
    assert verdict(plan(gates), records, exposures("legacy", 1_000)).decision == "PROMOTE"
    limited = exposures("auto", 1_000, start=1_000, error_type=lambda i: "RateLimited" if i % 20 == 0 else None)
    assert verdict(plan(gates), records, limited).decision == "ROLLBACK"


def test_latency_counts_successes_only_and_a_missing_first_token_is_not_zero():
    """guidellm issue 444 and vllm issue 6064."""
    slow_failures = exposures("auto", 400, error_type="Timeout", ttft_s=9.0)
    fast = exposures("auto", 400, start=400, ttft_s=0.1)
    empty = exposures("auto", 100, start=900, error_type="EmptyAnswer")
    found = verdict(plan({"ttft_p50": "<= 200 ms"}), slow_failures, fast, empty, exposures("legacy", 900))
    assert (found.decision, found.gates[0].n, found.gates[0].estimate) == ("PROMOTE", 400, 0.1)


def test_quantile_gates():
    rng = random.Random(1)
    for gates, shift, decision in [
        ({"ttft_p50": "<= 200 ms"}, 0.15, "PROMOTE"),
        ({"ttft_p50": "<= 200 ms"}, 0.25, "ROLLBACK"),
        ({"ttft_p95": "<= 200 ms"}, 0.15, "ROLLBACK"),
        ({"ttft_p50": "<= 1.1x control"}, 0.15, "PROMOTE"),
        ({"ttft_p50": "<= 1.1x control"}, 0.21, "ROLLBACK"),
        ({"ttft_p95": "<= control + 60 ms"}, 0.15, "PROMOTE"),
        ({"ttft_mean": "<= 1.1x control"}, 0.15, "PROMOTE"),
        ({"ttft_mean": "<= 200 ms"}, 0.25, "ROLLBACK"),
        ({"ttft_p50": ">= control"}, 0.11, "ROLLBACK"),
    ]:
        auto = exposures("auto", 3_000, ttft_s=lambda _, s=shift: s * rng.lognormvariate(0, 0.4))
        legacy = exposures("legacy", 3_000, ttft_s=lambda _: 0.15 * rng.lognormvariate(0, 0.4))
        assert verdict(plan(gates), auto, legacy).decision == decision, gates


def test_relative_error_rate():
    gates = {"error_rate": "<= control + 2 pp"}
    good = [exposures(arm, 6_000, error_type=failing(0.02, seed)) for seed, arm in enumerate(("auto", "legacy"))]
    assert verdict(plan(gates), *good).decision == "PROMOTE"
    bad = [exposures("auto", 3_000, error_type=failing(0.08)), exposures("legacy", 3_000, error_type=failing(0.02))]
    assert verdict(plan(gates), *bad).decision == "ROLLBACK"


def outcomes(arm: str, count: int, share: float, at: float = 50.0, seed: int = 0) -> list[Record]:
    rng = random.Random(seed)
    return [Outcome(f"{arm}-{i}", "resolved", float(rng.random() < share), at).record() for i in range(count)]


def test_outcomes_join_by_reply_and_wait_for_their_window():
    rollout = plan({"fcr": ">= 60%"}, maturation="1 h")
    requests = [exposures("auto", 400, step=0.001), exposures("legacy", 400, step=0.001)]
    labels = outcomes("auto", 400, 0.9)
    assert verdict(rollout, *requests, labels, now=3_000.0).decision == "HOLD"
    assert verdict(rollout, *requests, labels, now=3_700.0).decision == "PROMOTE"
    # Labels that come after the window do not count, whenever one looks.
    late = outcomes("auto", 400, 0.9, at=3_650.0)
    assert verdict(rollout, *requests, late, now=9_000.0).gates[0].standing == "no data"


def test_a_ratio_mismatch_holds_whatever_the_gates_say():
    found = verdict(plan({"error_rate": "< 5%"}), exposures("auto", 1_000), exposures("legacy", 1_200))
    assert found.ratio
    assert found.ratio.mismatch
    assert found.sentence.startswith("HOLD: sample-ratio mismatch")
    # One heavy user is one unit: many requests of it are no mismatch.
    heavy = [Record(r.kind, r.name, f"h{i}", r.body) for i, r in enumerate(exposures("auto", 1) * 5_000)]
    both = [exposures("auto", 1_000), exposures("legacy", 1_000)]
    assert verdict(plan({"error_rate": "< 5%"}), *both, heavy).decision == "PROMOTE"


def test_dwell_and_the_last_stage():
    gates = {"error_rate": "< 5%", "ttft_p95": "<= control"}
    rollout = plan(gates, dwell="1 h")
    records = [exposures(arm, 2_000, ttft_s=lambda i: 0.1 + i % 7 / 1000) for arm in ("auto", "legacy")]
    assert (
        verdict(rollout, *records, now=3_000.0).sentence == "HOLD: every gate is met; this stage lasts another 10 min"
    )
    assert verdict(rollout, *records, now=3_601.0).sentence == "PROMOTE: every gate is met; go from 50 % to 100 %"
    last = replace(HALF, stage=2)
    found = verdict(rollout, records[0], state=last, now=9_000.0)
    assert found.sentence == "PROMOTE: every gate is met; 100 % is the last stage, the rollout is complete"
    assert found.gates[1].standing == "no control"
    assert verdict(plan({"ttft_p95": "<= control"}), state=last).decision == "HOLD"


def test_stages_are_never_pooled():
    old = exposures("auto", 2_000, epoch=4, error_type="X")
    assert verdict(plan({"error_rate": "< 5%"}), old).gates[0].standing == "no data"


def test_skipped_requests_say_nothing_about_the_arm():
    rollout = plan({"error_rate": "< 5%"})
    records = exposures("auto", 200, skipped=True, answered_by="legacy")
    assert verdict(rollout, records).gates[0].standing == "no data"
    tally = Tally(rollout, 5)
    tally.add(records)
    assert (tally.arms["auto"].skipped, tally.arms["auto"].fallbacks) == (200, 200)


def test_without_gates_only_people_advance():
    assert "no gates" in verdict(plan({}), exposures("auto", 100)).sentence


def test_several_treatments_and_plain_experiments():
    table = {"arms": ["legacy", "auto", "mini"], "unit": "user_id", "gates": {"error_rate": "< 5%"}}
    rollout = parse_rollouts({"bot": table})["bot"]
    state = State("running", 0, 1, 1, 0.0)
    records = [exposures(arm, 500) for arm in ("legacy", "auto", "mini")]
    assert verdict(rollout, *records, state=state).sentence.endswith("auto and mini may replace legacy")
    bad = exposures("mini", 500, start=500, error_type="X")
    assert verdict(rollout, *records, bad, state=state).sentence.startswith("ROLLBACK: error_rate of mini")


def test_a_quantile_is_a_sample():
    """locust issue 777: no P99 above the maximum."""
    values = sorted(random.Random(0).random() for _ in range(101))
    for q in (0.001, 0.5, 0.95, 0.99, 0.999):
        assert quantile(values, q) in values
    assert quantile([3.0], 0.99) == 3.0
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.0


# The judge moves the state.


def running(rollout: Rollout, stage: int = 0, status: str = "running") -> MemoryStore:
    store = MemoryStore()
    assert start(store, rollout, 0.0, "tests")
    assert not start(store, rollout, 0.0, "tests")
    for _ in range(stage):
        state = store.load(["bot"])["bot"].state
        assert state
        assert change_state(store, rollout, state, "advance", 0.0, "tests", "by hand")
    if status == "held":
        state = store.load(["bot"])["bot"].state
        assert state
        change_state(store, rollout, state, "hold", 0.0, "tests", "wait")
    return store


def at(store: MemoryStore) -> State:
    state = store.load(["bot"])["bot"].state
    assert state
    return state


@pytest.mark.parametrize(("advance", "stage"), [("manual", 0), ("auto", 1)])
def test_only_an_automatic_rollout_advances_by_itself(advance, stage):
    rollout = plan({"error_rate": "< 5%"}, advance=advance)
    store = running(rollout)
    store.write(exposures("auto", 500, epoch=1) + exposures("legacy", 500, epoch=1))
    assert Judge(rollout, store).act(1_000.0, "judge").verdict.decision == "PROMOTE"
    assert at(store).stage == stage


@pytest.mark.parametrize("status", ["running", "held"])
@pytest.mark.parametrize("advance", ["manual", "auto"])
def test_a_rollback_needs_no_confirmation(advance, status):
    """Flagger issue 1801: it rolls back also while it waits for somebody."""
    rollout = plan({"error_rate": "< 0.01%"}, advance=advance)
    store = running(rollout, status=status)
    store.write(exposures("auto", 100, epoch=1, error_type="X"))
    Judge(rollout, store).act(1_000.0, "judge")
    assert at(store).status == "rolled_back"
    assert store.history("bot")[-1].reason.startswith("ROLLBACK: error_rate of auto 100 %")


def test_a_held_rollout_does_not_advance_and_keeps_its_evidence():
    rollout = plan({"error_rate": "< 5%"}, advance="auto")
    store = running(rollout, status="held")
    store.write(exposures("auto", 500, epoch=1) + exposures("legacy", 500, epoch=1))
    assert Judge(rollout, store).act(1_000.0, "judge").verdict.decision == "PROMOTE"
    assert at(store).status == "held"
    change_state(store, rollout, at(store), "resume", 0.0, "tests", "")
    Judge(rollout, store).act(1_000.0, "judge")
    assert (at(store).stage, at(store).since) == (1, at(store).epoch)


def test_an_automatic_rollout_completes():
    rollout = plan({"error_rate": "< 5%"}, advance="auto")
    store, judge_of = running(rollout), None
    judge_of = Judge(rollout, store)
    for turn in range(3):
        since = at(store).since
        store.write(exposures("auto", 500, epoch=since, start=turn * 500))
        if turn < 2:
            store.write(exposures("legacy", 500, epoch=since, start=turn * 500))
        judge_of.act(1_000.0, "judge")
    assert (at(store).status, at(store).stage) == ("completed", 2)
    # It is still watched.
    store.write(exposures("auto", 500, epoch=at(store).since, start=9_000, error_type="X"))
    judge_of.act(1_000.0, "judge")
    assert at(store).status == "rolled_back"


def test_moves():
    rollout = plan({})
    first = first_state(0.0)
    for state in (first, move(rollout, first, "hold", 1.0), move(rollout, first, "kill", 1.0)):
        for action in ("advance", "hold", "resume", "rollback", "kill", "restart"):
            if action in possible_actions(state):
                after = move(rollout, state, action, 2.0)
                assert after.epoch == state.epoch + 1
                assert (after.since == after.epoch) == (action in {"advance", "rollback", "kill", "restart"})
            else:
                with pytest.raises(InputError, match="possible:"):
                    move(rollout, state, action, 2.0)


def test_shadows_are_kept_apart():
    tally = Tally(plan({"error_rate": "< 5%"}), 5)
    shadow = Shadow(reply_id="r", experiment="bot", arm="auto", epoch=5, at=1.0, similarity=0.5)
    tally.add([shadow.record()])
    assert tally.shadows[0]["similarity"] == 0.5
    assert tally.arms["auto"].requests == 0
