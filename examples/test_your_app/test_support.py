"""Tests of the support desk: no network, no key, no cost, and the same every time."""

import httpx2
import pytest
import support


def never(order: str) -> str:
    raise AssertionError(f"order {order} was looked up")


@pytest.mark.zlclient(scenario="support.yaml")
def test_an_order_is_looked_up_and_answered(zl_requests):
    looked_up = []
    answer = support.handle("Where is my order A-17?", lambda order: looked_up.append(order) or "in transit")
    assert answer == "Your order A-17 is on its way."
    assert looked_up == ["A-17"]
    zl_requests.assert_order(
        {"wire": "chat", "model": support.SORTER},
        {"model": support.ANSWERER, "turn": 0, "tools": ["order_status"]},
        {"role": "tool", "tool_result": "in transit"},
    )
    zl_requests.assert_count(3)


@pytest.mark.zlclient(scenario="support.yaml")
def test_other_tickets_never_reach_claude(zl_requests):
    assert support.handle("I like your shop.", never).startswith("Thank you")
    zl_requests.assert_not_called(wire="anthropic")


def test_what_is_sent(zl_scenario, zl_requests):
    zl_scenario.reply("All is well.")
    support.answer_order("Hello?", never)
    sent = zl_requests.assert_called_once(headers={"anthropic-version": "2026-10-21"})
    assert sent.system == "You are a support desk."
    assert sent.body["max_tokens"] == 500
    assert "temperature" not in sent.body


def test_a_busy_moment_is_retried(zl_scenario, zl_requests):
    busy_once = {"status": 529, "times": 1, "retry_after": 0.01}
    zl_scenario.when(wire="anthropic").reply(text="Here I am.", fault=busy_once)
    assert support.answer_order("Hello?", never) == "Here I am."
    assert [received.status for received in zl_requests] == [529, 200]


def test_an_outage_is_told_kindly(zl_scenario):
    zl_scenario.reply(fault={"status": 503, "retry_after": 0.01})
    assert support.handle("Where is my order?", never) == support.SORRY


def test_a_wrong_key_is_not_hidden(zl_scenario):
    zl_scenario.reply(fault=401)
    with pytest.raises(support.openai.AuthenticationError):
        support.handle("Where is my order?", never)


def test_an_agent_that_never_ends_is_stopped(zl_scenario, zl_requests):
    again = {"tool_calls": {"name": "order_status", "input": {"order": "A-17"}}}
    zl_scenario.turns(*[again] * 10)
    with pytest.raises(support.TooManySteps):
        support.answer_order("Where is my order A-17?", lambda _: "unknown")
    zl_requests.assert_count(support.MOST_STEPS)


async def test_a_summary_arrives_piece_by_piece(zl_scenario):
    zl_scenario.when(text="- late\n- broken").reply("Two tickets: one late, one broken.")
    pieces = [piece async for piece in support.summarise(["late", "broken"])]
    assert "".join(pieces) == "Two tickets: one late, one broken."
    assert len(pieces) > 3


async def test_a_summary_that_breaks_off_is_an_error(zl_scenario):
    zl_scenario.reply(text="Two tickets: one late", fault={"kind": "drop", "after": 2})
    pieces = support.summarise(["late"])
    assert [await anext(pieces), await anext(pieces)] == ["Two", " tickets"]
    with pytest.raises(httpx2.RemoteProtocolError):
        await anext(pieces)


@pytest.mark.zlclient(replay="order.jsonl")
def test_a_recorded_conversation_comes_out_the_same(zl_requests):
    answer = support.answer_order("Where is my order A-17?", lambda _: "in transit")
    assert answer == "Your order A-17 is on its way."
    assert [received.responder for received in zl_requests] == ["replay", "replay"]
