"""Public bug reports of our field, each with its right answer: `id` is the case's number in ../shared/cases/client.jsonl.

Cases that other tests hold in full are only named here, so that a reader finds them: 1, 2, 11 (test_sending.py),
13 (test_client.py, the fallback that is tried), 25 (test_client.py, byte-identical prefix).
"""

import asyncio
import json
import subprocess
import sys
import time

import anthropic  # noqa: F401 - imported here, so that no timing below includes it
import openai  # noqa: F401
import pytest
from faulty import anthropic_events, openai_events

import zlclient
from zlclient import Client
from zlclient.models.prices import cost
from zlclient.reply import Usage


def test_4_the_raised_error_is_the_providers(faulty, clock):
    for status in (500, 429, 401):
        faulty.script(default={"status": status, "body": {"error": {"message": f"real {status}"}}})
        with Client(clock=clock) as client, pytest.raises(zlclient.StatusError, match=f"real {status}"):
            client.chat("hi")


@pytest.mark.slow
def test_5_a_hang_with_the_defaults_ends_by_13_3_s(faulty):
    faulty.script(default={"delay": 60})
    with Client() as client:
        client.prepare("warm")
        began = time.monotonic()
        with pytest.raises(zlclient.Timeout):
            client.chat("hi")
    assert 12.9 < time.monotonic() - began < 13.3
    assert len(faulty.requests) == 2


def test_5_with_a_deadline_it_is_one_request(faulty):
    faulty.script(default={"delay": 60})
    began = time.monotonic()
    with Client(timeout=0.5) as client, pytest.raises(zlclient.Timeout):
        client.chat("hi", deadline=0.5)
    assert time.monotonic() - began < 0.8
    assert len(faulty.requests) == 1


@pytest.mark.parametrize("verb", ["chat", "stream"])
def test_7_and_8_the_bound_is_the_same_streamed_or_not(faulty, verb):
    faulty.script(default={"delay": 5})
    began = time.monotonic()
    with Client(timeout=5) as client, pytest.raises(zlclient.Timeout):
        getattr(client, verb)("hi", timeout=0.4, retry=0)
    assert 0.4 <= time.monotonic() - began < 0.7


def test_10_overloaded_in_a_stream_has_its_own_class(faulty, clock):
    event = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    faulty.script(default={"events": [event]})
    with Client(clock=clock) as client, pytest.raises(zlclient.Overloaded):
        client.chat("hi")
    assert len(faulty.requests) == 2


def test_14_the_error_names_what_failed(faulty, clock):
    faulty.script({"status": 500}, {"status": 500}, {"status": 401})
    with Client(clock=clock) as client, pytest.raises(zlclient.Unauthorized) as caught:
        client.chat("hi", fallback=["openai:gpt-6.1-sol"])
    assert str(caught.value).startswith("openai:gpt-6.1-sol: 401")
    assert [a.status for a in caught.value.attempts] == [500, 500, 401]


def test_16_and_17_cache_writes_and_reads_are_priced():
    # 3 / 3.75 / 15 and 0.8 / 0.08 / 4 dollars a million tokens
    assert cost("anthropic", "claude-sonnet-4-6", Usage(3, 550, 0, 12304)) == pytest.approx(0.054399)
    assert cost("anthropic", "claude-3-5-haiku-latest", Usage(4, 23, 2455)) == pytest.approx(0.0002916)


@pytest.mark.parametrize("model", ["anthropic:claude-sonnet-5-5", "openai:gpt-6.1-sol"])
def test_19_a_stream_always_ends_with_usage_and_cost(faulty, model):
    with Client() as client, client.stream("hi", model=model) as answer:
        reply = answer.reply
    assert (reply.usage.input, reply.usage.output) == (12, 6)
    assert reply.cost > 0


def test_20_streamed_counts_are_neither_doubled_nor_lost(faulty):
    events = list(anthropic_events())
    events[-2]["usage"] = {"output_tokens": 6}  # a message_delta without input_tokens
    faulty.script({"events": events})
    with Client() as client:
        usage = client.chat("hi").usage
    assert (usage.input, usage.output) == (12, 6)


def test_22_empty_blocks_of_an_answer_do_not_come_back(faulty):
    empty = {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}
    events = list(anthropic_events())
    events[-2:-2] = [empty, {"type": "content_block_stop", "index": 1}]
    faulty.script({"events": events})
    with Client() as client:
        reply = client.chat("hi")
        client.chat([*reply.messages, {"role": "user", "content": "go on"}])
    assert faulty.requests[-1].body["messages"][1] == {"role": "assistant", "content": "Hello from loopback."}


def test_23_three_event_loops(faulty):
    client = Client()
    assert [asyncio.run(client.achat("hi")).text for _ in range(3)] == ["Hello from loopback."] * 3


def test_openai_usage_comes_without_being_asked_for(faulty):
    faulty.script({"events": list(openai_events())})
    with Client() as client:
        client.chat("hi", model="openai:gpt-6.1-sol")
    assert faulty.requests[0].body["stream_options"] == {"include_usage": True}


@pytest.mark.shared
def test_against_a_server_that_was_not_written_for_this(shared, monkeypatch):
    """The whole corridor over both SDKs against the scriptable server beside the checkout."""
    script = shared / "tools" / "fault_server.py"
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, str(script), str(port)], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline().startswith("READY")
        base = f"http://127.0.0.1:{port}"
        monkeypatch.setenv("ANTHROPIC_BASE_URL", base)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{base}/v1")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        import httpx2

        def control(path, body=None):
            return httpx2.post(base + path, json=body or {}).json()

        with Client(timeout=0.5, retry_wait=0.05) as client:
            for model in ("anthropic:claude-opus-5-5", "openai:gpt-6.1-sol"):
                control("/_reset")
                assert client.chat("2024年Q1？", model=model, domain="finance").text == "Hello from loopback."
                assert "【财经数据】" in json.dumps(control("/_log")[0]["body"], ensure_ascii=False)
                for step, kind, requests in (
                    ({"status": 500}, zlclient.ServerError, 2),
                    ({"status": 400}, zlclient.BadRequest, 1),
                    ({"delay": 9}, zlclient.Timeout, 2),
                    ({"drop": "before"}, zlclient.ConnectFailed, 2),
                    ({"drop": "mid"}, zlclient.StreamBroken, 1),
                    ({"stall_after": 4}, zlclient.StreamBroken, 1),
                    ({"status": 429, "headers": {"retry-after": "3600"}}, zlclient.RateLimited, 1),
                ):
                    control("/_reset")
                    control("/_script", {"default": step})
                    with pytest.raises(kind):
                        client.chat("hi", model=model)
                    assert len(control("/_log")) == requests, step
                control("/_script", {"default": {}})
    finally:
        server.kill()
        server.wait()
