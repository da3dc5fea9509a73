"""Scenarios written in Python, and the transport for clients made by hand."""

import asyncio
import time
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from zlclient.errors import ConfigError
from zlclient.testing import OfflineServer, Transport, transport

SONNET = "claude-sonnet-4-6"
HELLO: Any = [{"role": "user", "content": "hello"}]


def ask(wire: Transport, text: str = "hello") -> str:
    client = anthropic.Anthropic(api_key="x", http_client=httpx2.Client(transport=wire), max_retries=0)
    reply = client.messages.create(model=SONNET, max_tokens=50, messages=[{"role": "user", "content": text}])
    return reply.content[0].text  # type: ignore[union-attr]


def test_what_is_said_in_python_is_answered_in_that_order():
    wire = transport(strict=True)
    wire.scenario.when(text="hello").reply("Hi!")
    wire.scenario.when(text="count").replies("one", "two")
    wire.scenario.when(text="json").reply(json={"a": 1}, usage={"output_tokens": 3})
    wire.scenario.add({"when": {"text": "added"}, "reply": "from data"})
    wire.scenario.reply("anything else")
    texts = ["hello", "count", "count", "count", "json", "added"]
    assert [ask(wire, text) for text in texts] == ["Hi!", "one", "two", "anything else", '{"a": 1}', "from data"]
    wire.requests.assert_count(6)


def test_a_scenario_that_was_never_used_up_is_named_with_its_line():
    server = OfflineServer()
    server.scenario.when(text="a").reply("b", name="lost")
    with pytest.raises(AssertionError, match=r"never used up: 'lost' \(test_scenarios\.py:\d+\)"):
        server.scenario.assert_all_used()


def test_mistakes_are_named_where_they_are_made():
    server = OfflineServer()
    with pytest.raises(ConfigError, match=r"when\.txt"):
        server.scenario.when(txt="a").reply("b")
    with pytest.raises(ConfigError, match=r"reply\.tokens"):
        server.scenario.when().reply(tokens=1)
    with pytest.raises(TypeError, match="both were given"):
        server.scenario.reply("a", text="b")
    with pytest.raises(ConfigError, match="an empty reply"):
        server.scenario.reply()


def test_files_are_looked_for_beside_the_test(tmp_path: Path):
    (tmp_path / "s.yaml").write_text("- reply: from a file\n")
    server = OfflineServer(scenario="s.yaml", folder=tmp_path)
    assert ask(Transport(server)) == "from a file"
    with pytest.raises(ConfigError, match=r"t\.yaml"):
        server.scenario.load("t.yaml")


def test_one_transport_serves_sync_and_async_clients_of_both_sdks(tmp_path: Path):
    path = tmp_path / "s.yaml"
    path.write_text("- when: {text: hello}\n  reply: Hi!\n")
    wire = transport(path)

    async def asynchronous() -> str | None:
        http = httpx2.AsyncClient(transport=wire)
        client = openai.AsyncOpenAI(api_key="x", http_client=http)
        return (await client.chat.completions.create(model="gpt-4o", messages=HELLO)).choices[0].message.content

    assert ask(wire) == asyncio.run(asynchronous()) == "Hi!"
    assert [received.ask.wire for received in wire.requests] == ["anthropic", "chat"]
    with pytest.raises(anthropic.NotFoundError, match="it differs in"):
        ask(wire, "bye")


def test_a_transport_with_nothing_said_answers_everything():
    assert ask(transport())


def test_servers_do_not_know_of_each_other():
    one, other = transport([{"replies": ["a", "b"]}]), transport([{"replies": ["a", "b"]}])
    assert [ask(one), ask(other), ask(one)] == ["a", "a", "b"]
    assert (len(one.requests), len(other.requests)) == (2, 1)


def test_delays_can_be_left_out():
    wire = transport([{"reply": {"text": "a b c d", "ttft": 30, "pace": 5}}], delays=False)
    started = time.monotonic()
    assert ask(wire) == "a b c d"
    assert time.monotonic() - started < 5
