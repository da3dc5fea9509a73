"""Record from a server, replay, and compare: through the SDK, in process."""

import json
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest

from zlclient.errors import ConfigError
from zlclient.serving import Drop, LocalServer, WireRequest
from zlclient.serving.app import Listener
from zlclient.serving.build import build_server
from zlclient.serving.proxy import RecordingProxy
from zlclient.serving.recording import CassetteWriter, load_cassette
from zlclient.serving.redaction import Redaction
from zlclient.serving.responders.replay import Replay
from zlclient.serving.responders.scenario import ScenarioResponder
from zlclient.serving.responders.scenario_file import read_scenarios
from zlclient.serving.transports import transport
from zlclient.serving.wire import Pause, WireResponse

MODEL = "claude-sonnet-4-6"
KEY = "sk-ant-api03-AbCdEf0123456789"
TOOL = {"name": "get_weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}


def upstream(*scenarios: Any) -> LocalServer:
    return LocalServer([ScenarioResponder(read_scenarios(list(scenarios)))])


def no_sleep(seconds: float) -> None:
    pass


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cassette.jsonl"


def proxy_of(server: LocalServer, path: Path) -> RecordingProxy:
    http = httpx2.Client(transport=transport(server, sleep=no_sleep))
    return RecordingProxy("https://api.anthropic.com", CassetteWriter(path), client=http)


def sdk(handler: Any) -> anthropic.Anthropic:
    http = httpx2.Client(transport=transport(handler, sleep=no_sleep))
    return anthropic.Anthropic(api_key=KEY, http_client=http, max_retries=0)


def agent(client: anthropic.Anthropic) -> list[Any]:
    """A loop over one tool; its steps as plain data. Bounded, so that a fixture that loops is seen."""
    messages: list[Any] = [{"role": "user", "content": "weather in Paris?"}]
    steps: list[Any] = []
    for _ in range(5):
        reply = client.messages.create(model=MODEL, max_tokens=99, tools=[TOOL], messages=messages)  # type: ignore[arg-type]
        steps.append([block.model_dump(mode="json") for block in reply.content])
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return steps
        messages.append({"role": "assistant", "content": steps[-1]})
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": "21 °C"} for call in calls]
        messages.append({"role": "user", "content": results})
    raise AssertionError("the agent went round and round")


WEATHER = {"turns": [{"tool_calls": {"name": "get_weather", "input": {"city": "Paris"}}}, "It is 21 °C."]}


def test_an_agent_loop_replays_turn_by_turn_and_never_for_ever(path: Path):
    recorded = agent(sdk(proxy_of(upstream(WEATHER), path)))
    assert len(recorded) == 2
    assert KEY not in path.read_text()
    replay = Replay(load_cassette(path), strict=True)
    client = sdk(LocalServer([], interceptors=[replay]))
    assert agent(client) == recorded
    assert replay.remaining() == 0
    with pytest.raises(anthropic.NotFoundError, match="recorded 1 times, and all of those answers were given"):
        agent(client)


def test_a_stream_replays_with_its_events_and_its_timing(path: Path):
    ticks = iter(float(tick) for tick in range(1000))
    http = httpx2.Client(transport=transport(upstream({"reply": "one two three"}), sleep=no_sleep))
    proxy = RecordingProxy("https://h", CassetteWriter(path), client=http, clock=lambda: next(ticks))
    request = {"model": MODEL, "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "x"}]}
    wired = WireRequest("POST", "/v1/messages", {"anthropic-version": "2023-06-01"}, json.dumps(request).encode())
    sent = b"".join(piece for piece in proxy.handle(wired).pieces() if isinstance(piece, bytes))
    (exchange,) = load_cassette(path)
    assert len(exchange.response["events"]) >= 3
    pieces = list(_replayed(path, wired).pieces())
    assert b"".join(piece for piece in pieces if isinstance(piece, bytes)) == sent
    assert [piece for piece in pieces if isinstance(piece, Pause)] == [Pause(1.0)] * (
        len(exchange.response["events"]) + 1
    )
    at_once = list(_replayed(path, wired, timing=False).pieces())
    assert not [piece for piece in at_once if isinstance(piece, Pause)]


def _replayed(path: Path, request: WireRequest, *, timing: bool = True) -> WireResponse:
    return LocalServer([], interceptors=[Replay(load_cassette(path), timing=timing)]).handle(request)


def test_a_retry_replays_as_a_retry(path: Path):
    fault = {"text": "fine", "fault": {"status": 529, "times": 1}}

    def ask(client: anthropic.Anthropic) -> str:
        reply = client.messages.create(model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "x"}])
        return reply.content[0].text  # type: ignore[union-attr]

    recorder = sdk(proxy_of(upstream({"reply": fault}), path))
    with pytest.raises(anthropic.APIStatusError):
        ask(recorder)
    assert ask(recorder) == "fine"
    client = sdk(build_server(replay=path, strict=True))
    with pytest.raises(anthropic.APIStatusError) as caught:
        ask(client)
    assert caught.value.status_code == 529
    assert ask(client) == "fine"


def test_broken_connections_are_recorded_and_replayed_as_broken(path: Path):
    fault = {"kind": "drop", "after": 2}
    proxy = proxy_of(upstream({"when": {"text": "mid"}, "reply": {"text": "one two three", "fault": fault}}), path)
    body = {"model": MODEL, "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "mid"}]}
    mid = WireRequest("POST", "/v1/messages", {"anthropic-version": "2023-06-01"}, json.dumps(body).encode())
    before = WireRequest("POST", "/v1/messages", {"x-zl-fault": "drop", **mid.headers}, mid.body)
    assert list(proxy.handle(mid).pieces())[-1] == Drop()
    assert list(proxy.handle(before).pieces()) == [Drop()]
    assert len(load_cassette(path)) == 2
    replay = Replay(load_cassette(path), timing=False)
    pieces = list(LocalServer([], interceptors=[replay]).handle(mid).pieces())
    sent = b"".join(piece for piece in pieces if isinstance(piece, bytes))
    assert b'"one"' in sent
    assert b'" two"' in sent
    assert b"three" not in sent
    assert pieces[-1] == Drop()
    assert list(LocalServer([], interceptors=[replay]).handle(mid).pieces()) == [Drop()]


def test_what_a_client_gave_up_is_recorded_as_far_as_it_came(path: Path):
    proxy = proxy_of(upstream({"reply": "one two three"}), path)
    body = {"model": MODEL, "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "x"}]}
    headers = {"anthropic-version": "2023-06-01"}
    response = proxy.handle(WireRequest("POST", "/v1/messages", headers, json.dumps(body).encode()))
    next(response.pieces())
    response.close()
    (exchange,) = load_cassette(path)
    assert exchange.response["broken"] is True


def test_an_upstream_that_is_not_there_is_502_and_nothing_is_recorded(path: Path):
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused")

    http = httpx2.Client(transport=httpx2.MockTransport(refuse))
    proxy = RecordingProxy("http://127.0.0.1:9", CassetteWriter(path), client=http)
    response = proxy.handle(WireRequest("POST", "/v1/messages", {}, b"{}"))
    assert response.status == 502
    assert not path.exists()


def test_a_request_goes_to_the_upstream_as_it_came(path: Path):
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json={}, headers={"set-cookie": "a=b", "x-ratelimit-limit": "5"})

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    proxy = RecordingProxy("https://gateway.example/llm/", CassetteWriter(path), client=http)
    headers = {"authorization": f"Bearer {KEY}", "host": "127.0.0.1:8766", "accept-encoding": "gzip"}
    request = WireRequest("POST", "/v1/files/a b", headers, b"body", {"key": ["s3cret"], "n": ["1", "2"]})
    response = proxy.handle(request)
    assert list(response.pieces()) == [b"{}"]
    assert response.headers["x-ratelimit-limit"] == "5"
    assert str(seen[0].url) == "https://gateway.example/llm/v1/files/a%20b?key=s3cret&n=1&n=2"
    assert seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert seen[0].headers["host"] == "gateway.example"
    assert seen[0].content == b"body"
    written = path.read_text()
    assert "s3cret" not in written
    assert KEY not in written
    assert "ratelimit" not in written


@pytest.mark.parametrize("url", ["api.anthropic.com", "ftp://h", "https://", "https://h/?key=1"])
def test_an_upstream_is_an_address(path: Path, url: str):
    with pytest.raises(ConfigError, match="upstream"):
        RecordingProxy(url, CassetteWriter(path))


def test_a_miss_shows_the_nearest_recording(path: Path):
    proxy = proxy_of(upstream({"reply": "hi"}), path)
    for text in ("What is the weather in Paris?", "Tell me a joke."):
        sdk(proxy).messages.create(model=MODEL, max_tokens=9, messages=[{"role": "user", "content": text}])
    client = sdk(build_server(replay=path, strict=True))
    with pytest.raises(anthropic.NotFoundError) as caught:
        client.messages.create(
            model=MODEL,
            max_tokens=9,
            messages=[{"role": "user", "content": "What is the weather in Rome?"}],
            system="s",
        )
    message = str(caught.value)
    assert "The nearest of 2 recorded exchanges is number 1" in message
    assert "request.messages[0].content" in message
    assert "Rome" in message
    assert "request.system" in message


def test_without_strict_the_responders_answer_what_was_not_recorded(path: Path):
    sdk(proxy_of(upstream({"reply": "recorded"}), path)).messages.create(
        model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "x"}]
    )
    scenario = ScenarioResponder(read_scenarios([{"reply": "scripted"}]))
    client = sdk(build_server(responders=[scenario], replay=path, strict=True))
    texts = [
        client.messages.create(model=MODEL, max_tokens=9, messages=[{"role": "user", "content": text}]).content[0].text  # type: ignore[union-attr]
        for text in ("x", "y", "x")
    ]
    assert texts == ["recorded", "scripted", "scripted"]


def test_over_sockets_a_recording_is_replayed(path: Path):
    with (
        Listener(upstream({"reply": "over a socket"})) as real,
        Listener(RecordingProxy(real.url, CassetteWriter(path))) as recorder,
    ):
        client = anthropic.Anthropic(api_key=KEY, base_url=recorder.url, max_retries=0)
        question: Any = {"role": "user", "content": "x"}
        whole = client.messages.create(model=MODEL, max_tokens=9, messages=[question])
        with client.messages.stream(model=MODEL, max_tokens=9, messages=[question]) as stream:
            text = stream.get_final_text()
    assert text == whole.content[0].text == "over a socket"  # type: ignore[union-attr]
    whole_one, streamed = load_cassette(path)
    assert "body" in whole_one.response
    assert len(streamed.response["events"]) > 1
    replayed = sdk(build_server(replay=path, strict=True)).messages.create(
        model=MODEL, max_tokens=9, messages=[question]
    )
    assert replayed.id == whole.id


def test_what_was_removed_on_wish_does_not_hinder_a_replay(path: Path):
    http = httpx2.Client(transport=transport(upstream({"reply": "hi"})))
    redaction = Redaction(patterns=[r"customer \d+"])
    proxy = RecordingProxy("https://h", CassetteWriter(path), redaction=redaction, client=http)
    question: Any = {"role": "user", "content": "Write to customer 4711."}
    sdk(proxy).messages.create(model=MODEL, max_tokens=9, messages=[question])
    assert "4711" not in path.read_text()
    client = sdk(build_server(replay=path, strict=True))
    assert client.messages.create(model=MODEL, max_tokens=9, messages=[question]).content[0].text == "hi"  # type: ignore[union-attr]
    with pytest.raises(anthropic.NotFoundError):
        client.messages.create(model=MODEL, max_tokens=9, messages=[question])


def test_two_recordings_of_the_same_request_are_both_kept(path: Path):
    for answer in ("first", "second"):
        sdk(proxy_of(upstream({"reply": answer}), path)).messages.create(
            model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "x"}]
        )
    first, second = load_cassette(path)
    assert first.recording != second.recording
    assert "first" in str(first.response)
    assert "second" in str(second.response)
