"""Comparing two answers, and choosing whom to copy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlclient.routing.shadow import ShadowBudget, ShadowPolicy, compare_answers, similarity


@given(st.text(), st.text())
def test_similarity_is_symmetric_and_bounded(one, other):
    assert similarity(one, other) == similarity(other, one)
    assert 0 <= similarity(one, other) <= 1
    assert similarity(one, one) == 1


def test_similarity_of_texts():
    assert similarity("营业收入同比增长12.5%", "营业收入同比增长12.6%") > 0.8
    assert similarity("营业收入", "完全不同") == 0
    assert similarity("", "") == 1
    assert similarity("a", "b") == 0


def test_comparison():
    found = compare_answers("abcd", "ab", {"format": True, "schema": True}, {"format": False, "fidelity": True})
    assert found.checks == {"format": (True, False)}
    assert found.length_ratio == 0.5
    assert found.similarity == pytest.approx(0.5)
    assert compare_answers("", "x").length_ratio is None


def test_a_share_of_requests_is_chosen_by_their_id():
    budget = ShadowBudget(ShadowPolicy(share=0.2, budget=1e9))
    chosen = [budget.take(f"r{i}") for i in range(5_000)]
    assert sum(chosen) == pytest.approx(1_000, abs=120)
    again = ShadowBudget(ShadowPolicy(share=0.2, budget=1e9))
    assert [again.take(f"r{i}") for i in range(5_000)] == chosen


def test_what_was_spent_stays_spent_while_the_store_is_away():
    budget = ShadowBudget(ShadowPolicy(share=1.0, budget=1.0, reserve=0.1))
    assert budget.take("r")
    budget.settle(0.3)

    def away(cost: float) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        budget.share(away)
    assert budget.left == pytest.approx(0.7)
    shared: list[float] = []
    budget.share(shared.append)
    budget.spent_by_all(0.3)
    assert (shared, budget.left) == ([0.3], pytest.approx(0.7))
