"""Decisions: the public `run` and `stickyBucket` vectors where they apply, then our own rules."""

import json
import logging
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zlclient.errors import InputError
from zlclient.routing.experiments import Assigner, Experiment
from zlclient.routing.rollouts import Rollout, parse_rollouts
from zlclient.routing.sticky import MemoryBuckets
from zlclient.routing.tables import Table
from zlclient.routing.targeting import Targeting

# What a GrowthBook client reads from a page's address, a feature payload or its own filters is not ours.
NOT_OURS = {"url", "enabled", "qaMode", "features", "savedGroups"}
NOT_OURS_EITHER = {"filters", "parentConditions"}


def growthbook_experiment(rule: dict[str, Any], **more: Any) -> Experiment:
    arms = tuple(str(i) for i, _ in enumerate(rule["variations"]))
    return Experiment(
        rule["key"],
        arms,
        weights=tuple(rule["weights"]) if "weights" in rule else None,
        coverage=rule.get("coverage", 1.0),
        ranges=tuple(rule["ranges"]) if "ranges" in rule else None,
        seed=rule.get("seed", rule["key"]),
        hash_version=rule.get("hashVersion", 1),
        unit=rule.get("hashAttribute", "id"),
        fallback_unit=rule.get("fallbackAttribute"),
        namespace=tuple(rule["namespace"]) if "namespace" in rule else None,
        targeting=Targeting.parse(Table(rule.get("condition", {}), "targeting")),
        active=rule.get("active", True),
        bucket_version=rule.get("bucketVersion", 0),
        min_bucket_version=rule.get("minBucketVersion", 0),
        **more,
    )


@pytest.fixture(scope="module")
def vectors(shared: Path) -> dict[str, list[Any]]:
    return json.loads((shared / "vectors" / "growthbook-cases.json").read_text())


def test_run_vectors(vectors):
    checked = 0
    for name, context, rule, value, in_experiment, hash_used in vectors["run"]:
        if NOT_OURS & set(context) or NOT_OURS_EITHER & set(rule) or len(rule["variations"]) < 2:
            continue
        forced = context.get("forcedVariations", {}).get(rule["key"])
        assigner = Assigner(growthbook_experiment(rule), growthbook_experiment(rule).cells())
        force = rule.get("force", forced)
        if force is not None and not 0 <= force < len(rule["variations"]):
            with pytest.raises(InputError):
                assigner.decide(attributes=context["attributes"], force=str(force))
            continue
        try:
            decision = assigner.decide(
                attributes=context.get("attributes"), force=None if forced is None else str(forced)
            )
        except InputError:
            assert (value, in_experiment) == (0, False), name
        else:
            expected = rule["variations"].index(value)
            # A forced arm is served but never compared; there a GrowthBook client says "in, not by hash".
            assert (decision.variation, decision.in_experiment) == (expected, in_experiment and hash_used), name
        checked += 1
    assert checked == 58


def test_sticky_vectors(vectors):
    checked = 0
    for name, context, documents, feature, expected, stored in vectors["stickyBucket"]:
        rule = context["features"][feature]["rules"][0]
        if "key" not in rule or rule.get("disableStickyBucketing"):
            # The first takes its key from a feature; switching stickiness off is our `sticky = false`.
            continue
        buckets = MemoryBuckets()
        for document in documents:
            for key, arm in document["assignments"].items():
                buckets.put(f"{document['attributeName']}||{document['attributeValue']}", key, arm)
        experiment = growthbook_experiment(rule, sticky=True)
        decision = Assigner(experiment, experiment.cells(), sticky=buckets).decide(attributes=context["attributes"])
        if expected is None:
            assert (decision.reason, decision.in_experiment) == ("sticky", False), name
        else:
            assert decision.variation == expected["variationId"], name
            assert decision.bucket == expected["bucket"], name
            assert (decision.reason == "sticky") == expected["stickyBucketUsed"], name
        for key, document in stored.items():
            assert buckets.get(key) == document["assignments"], name
        checked += 1
    assert checked == 11


def rollout(**changes: Any) -> Rollout:
    table = {"control": "legacy", "treatment": "auto", "unit": "user_id", "stages": [1, 10, 50, 100]}
    return parse_rollouts({"bot": table | changes})["bot"]


def at(plan: Rollout, stage: int) -> Assigner:
    return Assigner(plan.experiment, plan.cells(stage), stage=stage, epoch=stage + 1)


def test_no_unit_flips_back_and_shares_are_right():
    """100,000 units over the four stages."""
    plan = rollout()
    assigners = [at(plan, stage) for stage in range(4)]
    units, served, compared = 100_000, [0] * 4, [[0, 0] for _ in range(4)]
    for number in range(units):
        seen = [assigner.decide(f"user-{number}") for assigner in assigners]
        assert all(before.variation <= after.variation for before, after in pairwise(seen))
        for stage, decision in enumerate(seen):
            served[stage] += decision.variation
            compared[stage][decision.variation] += decision.in_experiment
    for stage, share in enumerate((0.01, 0.1, 0.5, 1.0)):
        bound = 4.5 * sqrt(units * share * (1 - share))
        assert abs(served[stage] - units * share) <= bound
        control_share = 0.0 if share == 1 else share
        assert abs(compared[stage][0] - units * control_share) <= bound
        assert abs(compared[stage][1] - units * share) <= bound
    assert served[3] == units


@given(
    st.lists(st.integers(1, 99), min_size=1, max_size=5, unique=True),
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.text(min_size=1),
)
def test_stages_nest_for_any_number_of_arms(percents, parts, unit):
    total = sum(parts)
    names = [f"arm{i}" for i in range(len(parts))]
    shares = [part / total for part in parts]
    plan = parse_rollouts(
        {
            "bot": {
                "control": "old",
                "treatments": names,
                "weights": shares,
                "unit": "id",
                "stages": [*sorted(percents), 100],
            }
        }
    )["bot"]
    seen = [at(plan, stage).decide(unit) for stage in range(len(plan.stages))]
    taken = [decision.arm for decision in seen if decision.variation]
    assert len(set(taken)) == 1, "a unit keeps its treatment"
    assert seen[-1].variation > 0, "the last stage serves everyone"
    assert all(before.variation <= after.variation for before, after in pairwise(seen))
    for stage, share in enumerate(plan.stages[:-1]):
        sizes = plan.expected_shares(stage)
        assert sizes["old"] == pytest.approx(0.5), "control and treatments are compared in equal numbers"
        for name, part in zip(names, shares, strict=True):
            assert sizes[name] == pytest.approx(part / 2)
        assert sum(c.high - c.low for c in plan.cells(stage) if c.variation) == pytest.approx(share)


def test_without_a_unit_the_error_tells_of_the_purposeful_way():
    with pytest.raises(InputError, match='unit="request"'):
        at(rollout(), 0).decide()
    decision = at(rollout(), 0).decide("request", request_id="req-1")
    assert decision.unit == "req-1"
    assert at(rollout(), 0).decide("request").unit != at(rollout(), 0).decide("request").unit
    assert at(rollout(unit="request"), 0).decide(request_id="req-1") == decision
    assert at(rollout(), 2).decide(attributes={"user_id": 12}) == at(rollout(), 2).decide("12")
    assert at(rollout(fallback_unit="session"), 2).decide(attributes={"session": "s"}).unit == "s"


def test_forced_arms_are_served_and_never_compared():
    plan = rollout(force={"tester": "auto"})
    for decision in (at(plan, 0).decide("tester"), at(plan, 0).decide("anyone", force="auto")):
        assert (decision.arm, decision.reason, decision.in_experiment) == ("auto", "forced", False)
    with pytest.raises(InputError, match="legacy, auto"):
        at(plan, 0).decide("anyone", force="atuo")


def test_a_halted_rollout_answers_from_the_control_whatever_is_forced():
    plan = rollout()
    for reason in ("killed", "rolled_back", "no_state"):
        decision = Assigner(plan.experiment, plan.cells(3), halted=reason).decide("u", force="auto")
        assert (decision.arm, decision.reason) == ("legacy", reason)


def test_holdouts_are_the_same_units_in_every_rollout():
    one, other = rollout(holdout=0.1), rollout(holdout=0.1, seed="another")
    held = [{n for n in range(5000) if at(plan, 3).decide(f"u{n}").reason == "holdout"} for plan in (one, other)]
    assert held[0] == held[1]
    assert abs(len(held[0]) - 500) < 100
    assert all(not at(one, 3).decide(f"u{n}").variation for n in held[0])


def test_disjoint_namespaces_never_share_a_unit():
    first = rollout(namespace=["support", 0, 0.5], stages=[100])
    second = rollout(namespace=["support", 0.5, 1.0], stages=[100])
    for number in range(2000):
        seen = [at(plan, 0).decide(f"u{number}").in_experiment for plan in (first, second)]
        assert sorted(seen) == [False, True]


@pytest.mark.parametrize(
    ("targeting", "attributes", "matches"),
    [
        ({"country": "CN"}, {"country": "CN"}, True),
        ({"country": "CN"}, {}, False),
        ({"plan": ["pro", "team"]}, {"plan": "team"}, True),
        ({"plan": {"not_in": ["trial"]}}, {}, True),
        ({"plan": {"not": "trial"}}, {"plan": "trial"}, False),
        ({"age": {"gte": 18, "lt": 65}}, {"age": 18}, True),
        ({"age": {"gte": 18, "lt": 65}}, {"age": 65}, False),
        ({"age": {"gt": 17}}, {"age": "40"}, False),
        ({"beta": True}, {"beta": 1}, False),
        ({"beta": {"exists": False}}, {"beta": None}, False),
        ({"beta": {"exists": True}}, {"beta": None}, True),
    ],
)
def test_targeting(targeting, attributes, matches):
    decision = at(rollout(targeting=targeting, stages=[100]), 0).decide("u", attributes)
    assert (decision.reason == "assigned") is matches


def test_a_second_experiment_keeps_the_first_ones_sticky_assignment():
    """growthbook-swift issue 125; and growthbook-python pull request 119: the key holds the attribute's name."""
    buckets = MemoryBuckets()
    plans = parse_rollouts(
        {name: {"arms": ["0", "1"], "unit": "id", "sticky": True, "weights": [1.0, 0.0]} for name in ("one", "two")}
    )
    for name, plan in plans.items():
        Assigner(plan.experiment, plan.experiment.cells(), sticky=buckets).decide("user123")
        assert f"{name}__0" in buckets.get("id||user123")
    # growthbook-php issue 46: a stored "0" is an arm, not nothing; and it outlives a change of the weights.
    changed = plans["one"].with_experiment(weights=(0.0, 1.0)).experiment
    decision = Assigner(changed, changed.cells(), sticky=buckets).decide("user123")
    assert (decision.arm, decision.variation, decision.reason) == ("0", 0, "sticky")


def test_sticky_buckets_are_bounded():
    buckets = MemoryBuckets(bound=10)
    for number in range(50):
        buckets.put(f"id||{number}", "e__0", "a")
    assert sum(bool(buckets.get(f"id||{number}")) for number in range(50)) == 10


def test_arms_are_those_of_the_growthbook_sdk():
    growthbook = pytest.importorskip("growthbook")
    logging.getLogger("growthbook").setLevel(logging.ERROR)

    @given(
        st.lists(st.integers(1, 20), min_size=2, max_size=5),
        st.floats(0, 1),
        st.text(min_size=1, max_size=8),
        st.sampled_from([1, 2]),
    )
    @settings(max_examples=60, deadline=None)
    def check(parts: list[int], coverage: float, seed: str, version: int) -> None:
        weights = [part / sum(parts) for part in parts]
        arms = tuple(map(str, range(len(parts))))
        ours = Experiment("e", arms, tuple(weights), coverage, seed=seed, hash_version=version, unit="id")
        assigner = Assigner(ours, ours.cells())
        theirs = growthbook.Experiment(
            key="e", variations=arms, weights=weights, coverage=coverage, seed=seed, hashVersion=version
        )
        for number in range(20):
            result = growthbook.GrowthBook(attributes={"id": f"u{number}"}).run(theirs)
            decision = assigner.decide(f"u{number}")
            assert (decision.arm, decision.in_experiment) == (result.value, result.inExperiment)

    check()
