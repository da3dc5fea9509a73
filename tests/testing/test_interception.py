"""The SDKs' clients, made anywhere with whatever settings, are answered in process; nothing else gets out."""

import asyncio
import json
import socket
import urllib.request
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from pydantic import BaseModel

import zlclient
from zlclient.serving.responders.base import Ask
from zlclient.testing import NetworkBlocked
from zlclient.testing.interception import KEY

SONNET = "claude-sonnet-4-6"
HELLO: Any = [{"role": "user", "content": "hello"}]


def claude(client: anthropic.Anthropic, **fields: Any) -> Any:
    return client.messages.create(model=SONNET, max_tokens=50, messages=HELLO, **fields)


def test_all_four_clients_are_answered_whole_and_streamed(offline: Any):
    server = offline({"when": {"text": "hello"}, "reply": "Hi there!"})
    assert claude(anthropic.Anthropic()).content[0].text == "Hi there!"
    with anthropic.Anthropic().messages.stream(model=SONNET, max_tokens=50, messages=HELLO) as stream:
        assert stream.get_final_text() == "Hi there!"
    client = openai.OpenAI()
    assert client.chat.completions.create(model="gpt-4o", messages=HELLO).choices[0].message.content == "Hi there!"
    chunks = client.chat.completions.create(model="gpt-4o", messages=HELLO, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Hi there!"
    assert client.responses.create(model="gpt-4o", input="hello").output_text == "Hi there!"

    async def asynchronous() -> list[Any]:
        claude_reply = await anthropic.AsyncAnthropic().messages.create(model=SONNET, max_tokens=50, messages=HELLO)
        async with anthropic.AsyncAnthropic().messages.stream(model=SONNET, max_tokens=50, messages=HELLO) as stream:
            streamed = await stream.get_final_text()
        completion = await openai.AsyncOpenAI().chat.completions.create(model="gpt-4o", messages=HELLO)
        return [claude_reply.content[0].text, streamed, completion.choices[0].message.content]  # type: ignore[union-attr]

    assert asyncio.run(asynchronous()) == ["Hi there!"] * 3
    assert [received.ask.wire for received in server.requests] == [
        "anthropic", "anthropic", "chat", "chat", "responses", "anthropic", "anthropic", "chat",
    ]  # fmt: skip
    assert all(KEY in (r.headers.get("authorization", "") + r.headers.get("x-api-key", "")) for r in server.requests)


def test_clients_made_before_and_with_other_addresses_are_answered_too(offline: Any, monkeypatch: pytest.MonkeyPatch):
    early = anthropic.Anthropic(api_key="made-at-import")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    proxied = anthropic.Anthropic(api_key="k")
    server = offline({"reply": "ok"})
    assert claude(early).content[0].text == "ok"
    assert claude(proxied).content[0].text == "ok"
    vllm = openai.OpenAI(base_url="http://localhost:8000/v1", api_key="k")
    router = openai.OpenAI(base_url="https://openrouter.example/api/v1", api_key="k")
    eu = openai.OpenAI(data_residency="eu")
    for client in (vllm, router, eu):
        reply = client.chat.completions.create(model="some/model", messages=HELLO)
        assert reply.choices[0].message.content == "ok"
    azure = openai.AzureOpenAI(azure_endpoint="https://x.openai.azure.com", api_key="k", api_version="2026-10-01")
    assert azure.chat.completions.create(model="gpt-4o", messages=HELLO).choices[0].message.content == "ok"
    assert [received.headers["host"] for received in server.requests[2:]] == [
        "localhost:8000", "openrouter.example", "eu.api.openai.com", "x.openai.azure.com",
    ]  # fmt: skip


def test_our_own_client_is_answered_too(offline: Any):
    server = offline({"when": {"text": "hello"}, "reply": "Hi there!"})
    with zlclient.Client() as client:
        assert client.chat("hello", model=f"anthropic:{SONNET}").text == "Hi there!"

    async def asynchronous() -> str:
        async with zlclient.AsyncClient() as client:
            return (await client.chat("hello", model="openai:gpt-5.4")).text

    assert asyncio.run(asynchronous()) == "Hi there!"
    assert server.requests.last.model == "gpt-5.4"


def test_tools_json_and_thinking_arrive_as_the_sdks_parse_them(offline: Any):
    class Person(BaseModel):
        name: str
        age: int

    offline(
        {"when": {"text": "hello", "tools": []}, "reply": {"json": {"name": "Zoë", "age": 7}}},
        {
            "reply": {
                "thinking": "hm",
                "tool_calls": {"name": "look", "input": {"at": 1}, "id": "toolu_x"},
                "usage": {"input_tokens": 11, "output_tokens": 5},
            }
        },
    )
    parsed = anthropic.Anthropic().messages.parse(model=SONNET, max_tokens=50, messages=HELLO, output_format=Person)
    assert parsed.parsed_output == Person(name="Zoë", age=7)
    completion = openai.OpenAI().chat.completions.parse(model="gpt-4o", messages=HELLO, response_format=Person)
    assert completion.choices[0].message.parsed == Person(name="Zoë", age=7)
    reply = claude(anthropic.Anthropic(), tools=[{"name": "look", "input_schema": {"type": "object"}}])
    assert [block.type for block in reply.content] == ["thinking", "tool_use"]
    assert (reply.content[1].id, reply.content[1].input) == ("toolu_x", {"at": 1})
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (11, 5)


def test_faults_are_what_the_sdks_make_of_the_real_ones(offline: Any):
    once = {"text": "fine", "fault": {"status": 529, "times": 1, "retry_after": 0.001}}
    server = offline(
        {"when": {"turn": 0, "model": SONNET}, "reply": once},
        {"when": {"wire": "chat"}, "reply": {"fault": {"status": 429, "retry_after": 7}}},
        {"reply": {"text": "one two three", "fault": {"kind": "drop", "after": 1}}},
    )
    assert claude(anthropic.Anthropic()).content[0].text == "fine"
    assert [received.status for received in server.requests] == [529, 200]
    with pytest.raises(openai.RateLimitError) as caught:
        openai.OpenAI(max_retries=0).chat.completions.create(model="gpt-4o", messages=HELLO)
    assert caught.value.response.headers["retry-after"] == "7"
    got: list[str] = []
    haiku = anthropic.Anthropic().messages.create(model="claude-haiku-4-5", max_tokens=50, messages=HELLO, stream=True)
    with pytest.raises(httpx2.RemoteProtocolError):
        got.extend(event.delta.text for event in haiku if event.type == "content_block_delta")  # type: ignore[union-attr]
    assert got == ["one"]


def test_without_delays_a_stall_is_a_timeout_at_once(offline: Any):
    offline(
        {"when": {"wire": "chat"}, "reply": {"fault": "stall"}}, {"reply": {"text": "a b", "ttft": 99}}, delays=False
    )
    with pytest.raises(openai.APITimeoutError):
        openai.OpenAI(max_retries=0, timeout=100).chat.completions.create(model="gpt-4o", messages=HELLO)
    assert claude(anthropic.Anthropic()).content[0].text == "a b"


def test_an_unmatched_request_is_an_error_with_the_difference_and_is_noted(offline: Any):
    server = offline({"name": "greeting", "when": {"text": "good morning"}, "reply": "Hi"})
    with pytest.raises(anthropic.NotFoundError, match="The only scenario is 'greeting'; it differs in"):
        claude(anthropic.Anthropic())
    assert len(server.unmatched) == 1
    assert "'greeting'" in server.unmatched[0]
    assert len(server.requests) == 1


def test_without_strict_the_offline_responder_answers(offline: Any):
    server = offline(strict=False)
    assert claude(anthropic.Anthropic()).content[0].text
    assert server.unmatched == []


def test_a_real_port_is_there_on_request_and_counts_the_same_requests(offline: Any):
    server = offline({"reply": "over a socket"})
    request = urllib.request.Request(
        f"{server.url}/v1/messages",
        json.dumps({"model": SONNET, "max_tokens": 9, "messages": HELLO}).encode(),
        {"anthropic-version": "2023-06-01", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        assert json.load(response)["content"][0]["text"] == "over a socket"
    assert claude(anthropic.Anthropic(base_url=server.url)).content[0].text == "over a socket"
    client = openai.OpenAI(base_url=server.openai_url)
    assert client.chat.completions.create(model="gpt-4o", messages=HELLO).choices[0].message.content == "over a socket"
    assert len(server.requests) == 3


def _urllib() -> None:
    urllib.request.urlopen("http://example.com/", timeout=1)


def _httpx2() -> None:
    httpx2.get("https://example.com/")


def _async_httpx2() -> None:
    async def get() -> None:
        async with httpx2.AsyncClient() as client:
            await client.get("https://example.com/")

    asyncio.run(get())


def _address() -> None:
    socket.create_connection(("192.0.2.1", 80), timeout=1)


def _udp() -> None:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53))


def _name() -> None:
    socket.gethostbyname("example.com")


def _asyncio() -> None:
    asyncio.run(asyncio.open_connection("192.0.2.1", 80))  # type: ignore[arg-type]


@pytest.mark.parametrize("reach", [_urllib, _httpx2, _async_httpx2, _address, _udp, _name, _asyncio])
def test_nothing_leaves_the_machine(offline: Any, reach: Any):
    offline()
    with pytest.raises(NetworkBlocked, match=r"example\.com|192\.0\.2\.1"):
        reach()


def test_what_is_allowed_is_left_alone(offline: Any, monkeypatch: pytest.MonkeyPatch):
    reached: list[str] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *_: [(2, 1, 6, "", ("192.0.2.1", 80))])
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: reached.append(address[0]), raising=False)
    offline({"reply": "a"}, allow=("db.internal", ".corp.example"))
    socket.create_connection(("db.internal", 80))
    socket.create_connection(("a.corp.example", 80))
    assert reached == ["192.0.2.1"] * 2
    with pytest.raises(NetworkBlocked):
        socket.create_connection(("other.internal", 80))


def test_an_allowed_provider_is_really_asked_and_its_key_is_kept(offline: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-real-one")
    asked: list[httpx2.Request] = []

    def send(_: Any, request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return httpx2.Response(401, json={"error": {"message": "no"}}, request=request)

    monkeypatch.setattr(httpx2.HTTPTransport, "handle_request", send)
    offline({"reply": "a"}, allow=("api.openai.com",))
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI().chat.completions.create(model="gpt-4o", messages=HELLO)
    assert asked[0].headers["authorization"] == "Bearer a-real-one"


def test_the_machine_itself_may_be_reached(offline: Any):
    offline()
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
        socket.create_connection(("localhost", server.getsockname()[1])).close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_retired_model_is_refused_on_the_day(offline: Any):
    offline({"reply": "a"}, today="2027-06-01")
    with pytest.raises(anthropic.NotFoundError):
        anthropic.Anthropic().messages.create(model="claude-sonnet-4-5", max_tokens=9, messages=HELLO)


def test_a_reply_may_be_made_from_the_request(offline: Any):
    def shout(ask: Ask) -> str:
        return ask.question.upper()

    offline({"reply": shout})
    assert claude(anthropic.Anthropic()).content[0].text == "HELLO"


def test_requests_from_many_threads_and_loops_are_all_counted(offline: Any):
    server = offline({"reply": "a"})

    async def many() -> None:
        client = anthropic.AsyncAnthropic()
        calls = [client.messages.create(model=SONNET, max_tokens=9, messages=HELLO) for _ in range(20)]
        threads = [asyncio.to_thread(claude, anthropic.Anthropic()) for _ in range(4)]
        await asyncio.gather(*calls, *threads)

    asyncio.run(many())
    assert sorted(received.number for received in server.requests) == list(range(1, 25))
