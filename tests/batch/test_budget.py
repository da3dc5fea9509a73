"""Budgets stop before they are passed, and let something through while anything is left."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlclient.batch.budget import Budget, Expected, Spend
from zlclient.errors import ConfigError
from zlclient.reply import Usage

LOCAL = Expected("local", "auto", 10, 100)
SONNET = Expected("anthropic", "claude-sonnet-4-5", 1000, 1000)


def test_requests_are_exact():
    budget = Budget(requests=3)
    held = [budget.reserve(None) for _ in range(5)]
    assert [one is not None for one in held] == [True, True, True, False, False]
    assert held[0] is not None
    budget.settle(held[0], 1, Usage(40, 10), 0.5)
    assert budget.reserve(None) is None
    assert budget.spent == Spend(1, 50, 0.5)


def test_the_first_request_reserves_all_it_may_use_and_later_ones_what_was_seen():
    budget = Budget(tokens=150)
    first = budget.reserve(LOCAL)
    assert first is not None
    assert first.spend == Spend(1, 110)
    assert budget.reserve(LOCAL) is None
    budget.settle(first, 1, Usage(10, 5), 0.0)
    held = []
    while (one := budget.reserve(LOCAL)) is not None:
        held.append(one)
    assert [one.spend.tokens for one in held] == [15] * 9


def test_an_estimate_that_was_too_low_corrects_those_after_it():
    budget = Budget(tokens=200)
    first = budget.reserve(LOCAL)
    assert first is not None
    budget.settle(first, 1, Usage(30, 5), 0.0)
    second = budget.reserve(LOCAL)
    assert second is not None
    assert second.spend.tokens == 30 + 5


def test_a_small_budget_is_not_refused_whole():
    budget = Budget(tokens=20)
    first = budget.reserve(LOCAL)
    assert first is not None
    assert budget.reserve(LOCAL) is None
    budget.settle(first, 1, Usage(10, 2), 0.0)
    assert budget.reserve(LOCAL) is None
    assert Budget(tokens=24).reserve(LOCAL) is not None


def test_money_at_list_price_and_at_a_discount():
    whole = Budget(cost=1.0).reserve(SONNET)
    half = Budget(cost=1.0).reserve(Expected("anthropic", "claude-sonnet-4-5", 1000, 1000, discount=0.5))
    assert whole is not None
    assert half is not None
    assert whole.spend.cost == pytest.approx(0.003 + 0.015)
    assert half.spend.cost == pytest.approx(whole.spend.cost / 2)


def test_an_unknown_price_cannot_be_bounded():
    with pytest.raises(ConfigError, match="price of mystery"):
        Budget(cost=1.0).reserve(Expected("vllm", "mystery", 1, 1))
    assert Budget(tokens=10).reserve(Expected("vllm", "mystery", 1, 1)) is not None


@given(st.integers(1, 2000), st.lists(st.integers(1, 100), max_size=60), st.integers(1, 8))
def test_a_budget_is_passed_by_less_than_what_is_in_flight_uses(limit, answers, at_once):
    budget = Budget(tokens=limit)
    in_flight = []
    for output in answers:
        held = budget.reserve(LOCAL) if len(in_flight) < at_once else None
        if held is None:
            if not in_flight:
                break
            held, used = in_flight.pop(0)
            budget.settle(held, 1, Usage(10, used), 0.0)
        else:
            in_flight.append((held, output))
    assert budget.spent.tokens < limit + at_once * 110
