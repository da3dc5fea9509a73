import json
import threading
from collections.abc import Iterable

import pytest

from zlclient.serving import Drop, LocalServer, WireRequest, WireResponse
from zlclient.serving.responders.base import (
    Ask,
    Event,
    Fault,
    Finish,
    Pace,
    Pause,
    Responder,
    Text,
    Thinking,
    ToolCall,
    Usage,
)
from zlclient.serving.server import Exchange

SONNET = "claude-sonnet-4-6"


class Fixed(Responder):
    name = "fixed"

    def __init__(self, *events: Event) -> None:
        self.events = events
        self.asks: list[Ask] = []

    def respond(self, ask: Ask) -> Iterable[Event] | None:
        self.asks.append(ask)
        return self.events


class Silent(Responder):
    name = "silent"

    def respond(self, ask: Ask) -> Iterable[Event] | None:
        return None

    def explain(self, ask: Ask) -> str:
        return f"silent: wants nothing like {ask.question!r}"


def post(server: LocalServer, path: str = "/v1/messages", /, headers: dict[str, str] | None = None, **body: object):
    body = {"model": SONNET, "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}], **body}
    found = {"anthropic-version": "2023-06-01", **(headers or {})}
    return server.handle(WireRequest("POST", path, found, json.dumps(body).encode()))


def body_of(response: WireResponse) -> dict:
    assert isinstance(response.body, bytes)
    return json.loads(response.body)


def events_of(response: WireResponse) -> list[dict]:
    text = b"".join(piece for piece in response.pieces() if isinstance(piece, bytes)).decode()
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


def test_the_first_responder_that_answers_answers():
    fixed = Fixed(Text("hi"))
    response = post(LocalServer([Silent(), fixed, Fixed(Text("never"))]))
    message = body_of(response)
    assert message["content"] == [{"type": "text", "text": "hi"}]
    assert message["stop_reason"] == "end_turn"
    assert response.headers["x-zl-responder"] == "fixed"
    assert response.headers["request-id"].startswith("req_")
    ask = fixed.asks[0]
    assert (ask.wire, ask.model, ask.question, ask.turn, ask.max_tokens) == ("anthropic", SONNET, "hello", 0, 100)


def test_an_ask_that_nobody_answers_is_an_error_that_says_why():
    response = post(LocalServer([Silent()]))
    assert response.status == 404
    assert "silent: wants nothing like 'hello'" in body_of(response)["error"]["message"]
    assert response.headers["x-zl-responder"] == "none"
    assert response.headers["x-should-retry"] == "false"


def test_a_stream_is_lazy_and_in_order():
    made: list[str] = []

    class Counting(Responder):
        name = "counting"

        def respond(self, ask: Ask):
            for word in ("one ", "two ", "three"):
                made.append(word)
                yield Text(word)

    response = post(LocalServer([Counting()]), stream=True)
    pieces = response.pieces()
    next(pieces)
    assert made == ["one "]
    assert b"three" in b"".join(piece for piece in pieces if isinstance(piece, bytes))
    assert made == ["one ", "two ", "three"]


def test_thinking_text_and_a_tool_call_become_blocks_in_both_forms():
    server = LocalServer([Fixed(Thinking("let me see"), Text("so "), Text("far"), ToolCall("look", {"at": 1}))])
    whole = body_of(post(server))
    assert [block["type"] for block in whole["content"]] == ["thinking", "text", "tool_use"]
    assert whole["content"][1]["text"] == "so far"
    assert whole["content"][2]["input"] == {"at": 1}
    assert whole["stop_reason"] == "tool_use"
    assert whole["usage"]["output_tokens_details"] == {"thinking_tokens": 3}
    events = events_of(post(server, stream=True))
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["message_start", "ping"]
    assert kinds[-2:] == ["message_delta", "message_stop"]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(d["thinking"] for d in deltas if d["type"] == "thinking_delta") == "let me see"
    assert "".join(d["text"] for d in deltas if d["type"] == "text_delta") == "so far"
    assert json.loads("".join(d["partial_json"] for d in deltas if d["type"] == "input_json_delta")) == {"at": 1}
    assert [event["index"] for event in events if event["type"] == "content_block_start"] == [0, 1, 2]


@pytest.mark.parametrize(
    ("fields", "text", "reason", "stop"),
    [
        ({"max_tokens": 2}, "one t", "max_tokens", None),
        ({"stop_sequences": ["thr"]}, "one two ", "stop_sequence", "thr"),
        ({"stop_sequences": ["four", "two"]}, "one ", "stop_sequence", "two"),
        ({"stop_sequences": ["threes"]}, "one two three", "end_turn", None),
        ({}, "one two three", "end_turn", None),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_limits_and_stop_sequences(fields: dict, text: str, reason: str, stop: str | None, stream: bool):
    response = post(LocalServer([Fixed(Text("one t"), Text("wo th"), Text("ree"))]), stream=stream, **fields)
    if stream:
        events = events_of(response)
        found = "".join(event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta")
        ending = next(event["delta"] for event in events if event["type"] == "message_delta")
    else:
        ending = body_of(response)
        found = ending["content"][0]["text"]
    assert (found, ending["stop_reason"], ending["stop_sequence"]) == (text, reason, stop)


def test_leading_pauses_delay_the_head_and_a_pace_comes_before_each_piece():
    server = LocalServer([Fixed(Pause(1), Pause(0.5), Pace(0.02), Text("one two"), Finish(usage=Usage(7, 9)))])
    pieces = list(post(server, stream=True).pieces())
    assert pieces[0] == Pause(1.5)
    assert isinstance(pieces[1], bytes)
    assert pieces.count(Pause(0.02)) == 2
    whole = list(post(server).pieces())
    assert whole[:2] == [Pause(1.5), Pause(0.04)]
    usage = json.loads(whole[2])["usage"]  # type: ignore[arg-type]
    assert (usage["input_tokens"], usage["output_tokens"]) == (7, 9)


def test_a_fault_before_content_replaces_the_answer():
    response = post(LocalServer([Fixed(Pause(2), Fault("status", 529))]), stream=True)
    assert response.status == 529
    pieces = list(response.pieces())
    assert pieces[0] == Pause(2)
    assert b"overloaded_error" in pieces[1]  # type: ignore[operator]


def test_a_fault_in_mid_stream_comes_after_the_content():
    pieces = list(post(LocalServer([Fixed(Text("half"), Fault("drop"))]), stream=True).pieces())
    assert pieces[-1] == Drop()
    assert b"half" in b"".join(p for p in pieces if isinstance(p, bytes))


def test_what_arrived_is_observed():
    seen: list[Exchange] = []
    server = LocalServer([Fixed(Text("hi"))], observe=seen.append)
    post(server)
    server.handle(WireRequest("GET", "/nowhere"))
    assert [(e.status, e.responder, e.ask is not None) for e in seen] == [(200, "fixed", True), (404, "server", False)]
    assert seen[0].request.path == "/v1/messages"


def test_an_interceptor_answers_first():
    canned = WireResponse(200, {"content-type": "application/json"}, b"{}")
    server = LocalServer([], interceptors=[lambda request: canned if request.path == "/v1/messages" else None])
    assert post(server).body == b"{}"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (WireRequest("GET", "/v1/nowhere"), 404),
        (WireRequest("PUT", "/v1/messages"), 405),
        (WireRequest("POST", "/v1/messages", {"anthropic-version": "2023-06-01"}, b"{"), 400),
        (WireRequest("POST", "/v1/messages", {"anthropic-version": "2023-06-01"}, b"[]"), 400),
        (WireRequest("POST", "/v1/messages", {"anthropic-version": "2023-06-01"}, b"[" * 100_000), 400),
        (WireRequest("POST", "/v1/messages", {"anthropic-version": "2023-06-01"}, b" " * (33 * 2**20)), 413),
        (WireRequest("POST", "/v1/messages", {}, b"{}"), 400),
    ],
)
def test_bad_requests_are_answers(request_: WireRequest, status: int):
    response = LocalServer([]).handle(request_)
    assert response.status == status
    assert body_of(response)["error"]["message"]


def test_a_key_is_required_where_the_server_says_so():
    server = LocalServer([Fixed(Text("hi"))], require_key=True)
    assert post(server).status == 401
    assert post(server, headers={"x-api-key": "k"}).status == 200
    assert post(server, headers={"authorization": "Bearer k"}).status == 200


def test_threads_do_not_meet():
    server = LocalServer([Fixed(Text("hi"))], cache_minimum=1)
    found: list[str] = []
    batch = json.dumps({"requests": [{"custom_id": "a", "params": {"model": SONNET, "max_tokens": 9, "messages": []}}]})

    def work() -> None:
        for _ in range(50):
            found.append(body_of(post(server, cache_control={"type": "ephemeral"}))["id"])
            headers = {"anthropic-version": "2023-06-01"}
            made = body_of(server.handle(WireRequest("POST", "/v1/messages/batches", headers, batch.encode())))
            for _ in range(2):
                server.handle(WireRequest("GET", f"/v1/messages/batches/{made['id']}", headers))
            found.append(made["id"])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(set(found)) == 800
