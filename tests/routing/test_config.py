"""Configuration tables and gates: what is read, and how what is wrong is refused."""

import tomllib

import pytest

from zlclient.errors import ConfigError
from zlclient.routing.gates import Gate
from zlclient.routing.rollouts import parse_rollouts

GOOD = {"control": "legacy", "treatment": "auto", "unit": "user_id", "stages": [1, 10, 50, 100]}


def gate(name: str, text: str, **more: object) -> Gate:
    return parse_rollouts({"bot": GOOD | {"gates": {name: text}} | more})["bot"].gates[0]


def test_the_issues_table():
    text = """
[tool.zlclient.rollouts.support-bot]
control = "legacy"
treatment = "auto"
unit = "user_id"
stages = [1, 10, 50, 100]
gates = { error_rate = "< 0.01%", ttft_p50 = "<= 200 ms", ttft_p95 = "<= 800 ms", fcr = ">= control" }
"""
    plan = parse_rollouts(tomllib.loads(text)["tool"]["zlclient"]["rollouts"])["support-bot"]
    assert plan.experiment.arms == ("legacy", "auto")
    assert plan.stages == (0.01, 0.1, 0.5, 1.0)
    error, median, tail, resolved = plan.gates
    assert (error.direction, error.offset, error.relative) == ("<", pytest.approx(0.0001), False)
    assert (median.metric.q, median.offset) == (0.5, pytest.approx(0.2))
    assert tail.metric.q == 0.95
    assert resolved.metric.outcome == "resolved"
    assert (resolved.text, resolved.offset) == (">= control - 2 pp", pytest.approx(-0.02))


@pytest.mark.parametrize(
    ("name", "text", "factor", "offset"),
    [
        ("ttft_p95", "<= 1.1x control", 1.1, 0.0),
        ("ttft_p95", "<= control", 1.1, 0.0),
        ("ttft_p95", "<= control + 50 ms", 1.0, 0.05),
        ("tpot_p99.9", "< 0.05 s", 0.0, 0.05),
        ("cost_mean", "<= $0.02", 0.0, 0.02),
        ("cost_mean", "<= 0.02 USD", 0.0, 0.02),
        ("fidelity", ">= control − 1 pp", 1.0, -0.01),
        ("fidelity", ">= 99 %", 0.0, 0.99),
        ("error_rate", "<= control", 1.0, 0.001),
        ("error_rate.RateLimited", "< 1e-4", 0.0, 0.0001),
        ("empty_rate", "<= 2 × control", 2.0, 0.0),
    ],
)
def test_gates(name, text, factor, offset):
    found = gate(name, text)
    assert (found.factor, found.offset) == (pytest.approx(factor), pytest.approx(offset))


def test_declared_outcomes_are_metrics():
    assert gate("csat_mean", ">= 4.2", outcomes=["csat"]).metric.outcome == "csat"
    assert gate("resolved", ">= control", outcomes=["resolved"]).metric.kind == "rate"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gates": {"eror_rate": "< 1%"}}, ["rollouts.bot.gates.eror_rate", "unknown metric", "ttft_pNN"]),
        ({"gates": {"csat": ">= control"}}, ["unknown metric", "outcomes"]),
        ({"gates": {"error_rate.Teapot": "< 1%"}}, ["unknown metric"]),
        ({"gates": {"ttft_p50": "<= 200"}}, ["ms or s", "bare number"]),
        ({"gates": {"ttft_p50": "<= 200 %"}}, ["ms or s"]),
        ({"gates": {"error_rate": "…"}}, ["must be a condition", "…"]),
        ({"gates": {"error_rate": "< 100%"}}, ["between 0 and 100 %"]),
        ({"gates": {"fidelity": ">= control - 120 pp"}}, ["less than 100 pp"]),
        ({"gates": {"error_rate": 0.01}}, ["must be a condition", "0.01"]),
        ({"gates": {"ttft_p0": "<= 1 s"}}, ["unknown metric"]),
        ({"stages": [10, 1]}, ["growing percentages", "[10, 1]"]),
        ({"stages": [1, 101]}, ["from 0 to 100"]),
        ({"stages": []}, ["rollouts.bot.stages"]),
        ({"treatment": "legacy"}, ["must differ from the control"]),
        ({"treatments": ["auto"]}, ["either treatment or treatments"]),
        ({"advance": "sometimes"}, ["manual, auto", "sometimes"]),
        ({"dwel": "1 h"}, ["unknown key", "did you mean dwell"]),
        ({"dwell": "soon"}, ["must be a duration", "soon"]),
        ({"holdout": 2}, ["from 0 to 0.99"]),
        ({"namespace": ["n", 0.5, 0.2]}, ["[name, low, high]"]),
        ({"force": {"u": "mini"}}, ["rollouts.bot.force.u", "legacy, auto"]),
        ({"targeting": {"age": {"above": 3}}}, ["unknown operator", "gte"]),
        ({"targeting": {"age": {"gte": "3"}}}, ["gte does not take this value"]),
        ({"hash_version": 3}, ["whole number from 1 to 2"]),
        ({"breaker": {"failure_rat": 0.5}}, ["rollouts.bot.breaker.failure_rat", "failure_rate"]),
        ({"shadow": {"share": 0.1}}, ["rollouts.bot.shadow.budget", "required"]),
        ({"unit": ""}, ["non-empty"]),
        ({"unit": True}, ["non-empty"]),
        ({"weights": [0.5]}, ["add up to 1"]),
        ({"alpha": float("nan")}, ["must be a number"]),
    ],
)
def test_refusals_name_key_value_and_what_is_accepted(changes, words):
    with pytest.raises(ConfigError) as caught:
        parse_rollouts({"bot": GOOD | changes}, where=lambda key: ("pyproject.toml", 12))
    message = str(caught.value)
    assert message.startswith("pyproject.toml:12: ")
    assert caught.value.key
    for word in words:
        assert word in message


@pytest.mark.parametrize("missing", ["control", "treatment", "unit", "stages"])
def test_what_is_required(missing):
    table = {key: value for key, value in GOOD.items() if key != missing}
    with pytest.raises(ConfigError, match=f"rollouts.bot.{missing}: is required"):
        parse_rollouts({"bot": table})


def test_experiments():
    table = {"arms": ["legacy", "auto", "mini"], "weights": [0.5, 0.25, 0.25], "coverage": 0.4, "unit": "user_id"}
    plan = parse_rollouts({"tone": table})["tone"]
    assert plan.stages == ()
    assert [round(cell.high - cell.low, 6) for cell in plan.cells(0)] == [0.2, 0.1, 0.1]
    with pytest.raises(ConfigError, match="at least two arms"):
        parse_rollouts({"tone": table | {"arms": ["legacy"]}})
    with pytest.raises(ConfigError, match="must be a table"):
        parse_rollouts({"tone": "legacy"})


def test_policies():
    plan = parse_rollouts(
        {
            "bot": GOOD
            | {"dwell": "90 min", "maturation": "3 d", "breaker": {"cooldown": "5 s"}, "shadow": {"budget": "5 USD"}}
        }
    )["bot"]
    assert (plan.dwell, plan.maturation) == (5400, 259_200)
    assert plan.breaker
    assert plan.breaker.cooldown == 5
    assert plan.shadow
    assert plan.shadow.budget == 5
    assert parse_rollouts({"bot": GOOD | {"breaker": False}})["bot"].breaker is None
