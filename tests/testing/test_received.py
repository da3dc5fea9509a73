"""Assertions on what arrived, and what they say when they fail."""

import json
from typing import Any

import pytest

from zlclient.errors import ConfigError
from zlclient.serving import WireRequest
from zlclient.testing import OfflineServer

SONNET = "claude-sonnet-4-6"
TOOL = {"name": "get_weather", "input_schema": {"type": "object"}}


def post(server: OfflineServer, text: str = "hello", headers: dict[str, str] | None = None, **fields: Any) -> None:
    body = {"model": SONNET, "max_tokens": 9, "messages": [{"role": "user", "content": text}], **fields}
    found = {"anthropic-version": "2023-06-01", "host": "api.anthropic.com", **(headers or {})}
    server.handle(WireRequest("POST", "/v1/messages", found, json.dumps(body).encode()))


@pytest.fixture
def server() -> OfflineServer:
    return OfflineServer(scenario=[{"reply": "ok"}])


def test_a_request_shows_what_it_asked(server: OfflineServer):
    post(server, "What is the weather?", {"x-team": "blue"}, system="Be terse.", tools=[TOOL])
    received = server.requests.last
    assert (received.number, received.method, received.path, received.status) == (1, "POST", "/v1/messages", 200)
    assert (received.model, received.text, received.system) == (SONNET, "What is the weather?", "Be terse.")
    assert (received.tools, received.turn, received.responder) == (["get_weather"], 0, "scenario")
    assert received.headers["x-team"] == "blue"
    assert received.body["max_tokens"] == 9
    assert str(received).startswith(f"1. anthropic, {SONNET}, turn 0, role user, tools get_weather")


def test_assertions_return_what_they_found(server: OfflineServer):
    post(server, "first")
    post(server, "second", {"x-team": "blue"})
    post(server, "third")
    requests = server.requests
    assert requests.assert_called_once(headers={"X-Team": "blue"}).text == "second"
    assert len(requests.assert_called(model=SONNET)) == 3
    assert len(requests.assert_count(2, text={"regex": "ir"})) == 2
    assert [received.number for received in requests.assert_order({"text": "first"}, {"text": "third"})] == [1, 3]
    requests.assert_not_called(model="gpt-4o")
    assert [received.text for received in requests.matching(where=lambda ask: "s" in ask.question)] == [
        "first",
        "second",
    ]
    assert requests[0].text == "first"
    assert len(requests[1:]) == 2
    assert [received.number for received in requests] == [1, 2, 3]


def test_a_failure_lists_what_arrived_and_the_nearest(server: OfflineServer):
    post(server, "What is the wether?")
    post(server, "bye", model="claude-haiku-4-5")
    with pytest.raises(AssertionError) as caught:
        server.requests.assert_called_once(text="What is the weather", model=SONNET)
    message = str(caught.value)
    assert message.startswith(
        "expected 1 request with text='What is the weather', model='claude-sonnet-4-6', got 0 of 2."
    )
    assert "  2. anthropic, claude-haiku-4-5" in message
    assert "The nearest is request 1; it differs in:" in message
    assert "got     'What is the wether?'" in message


def test_a_wrong_order_says_at_which_step(server: OfflineServer):
    post(server, "first")
    post(server, "second")
    with pytest.raises(AssertionError, match="expected step 2 of 2 after request 2: a request with text='first'"):
        server.requests.assert_order({"text": "second"}, {"text": "first"})


def test_counts_say_how_many(server: OfflineServer):
    with pytest.raises(AssertionError, match="no request has arrived"):
        _ = server.requests.last
    with pytest.raises(AssertionError, match=r"expected at least 1 request, got 0 of 0\. What arrived:\n  nothing"):
        server.requests.assert_called()
    post(server)
    with pytest.raises(AssertionError, match="expected no requests, got 1 of 1"):
        server.requests.assert_not_called()
    for _ in range(30):
        post(server)
    with pytest.raises(AssertionError, match="and 11 more"):
        server.requests.assert_count(2)


def test_a_condition_that_there_is_not_is_named(server: OfflineServer):
    with pytest.raises(ConfigError, match="no such key; accepted: text, system"):
        server.requests.assert_called(prompt="hello")


def test_requests_that_no_responder_saw_can_be_asserted_on_too(server: OfflineServer):
    post(server, "refused", temperature=7)
    assert server.requests.last.status == 400
    assert server.requests.assert_called_once(model=SONNET).body["temperature"] == 7
    server.handle(WireRequest("GET", "/v1/models", {"anthropic-version": "2023-06-01"}))
    assert str(server.requests.last) == "2. GET /v1/models → 200"
    assert server.requests.last.body is None
