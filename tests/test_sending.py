"""The send stage against a faulty server: how many requests, how long, which error."""

import asyncio
import gc
import time

import anthropic  # noqa: F401 - imported here, so that no timing below includes it
import openai  # noqa: F401
import pytest
from faulty import anthropic_events

import zlclient
from zlclient import Client


@pytest.fixture
def client(faulty, clock):
    with Client(clock=clock) as made:
        yield made


def quick(**options):
    """Real time with small bounds, for what only a real socket shows."""
    return Client(timeout=0.3, retry_wait=0.05, **options)


def test_a_plain_call(client, faulty):
    reply = client.chat("hi")
    assert str(reply) == reply.text == "Hello from loopback."
    assert (reply.usage.input, reply.usage.output) == (12, 6)
    assert reply.timings.total >= 0
    assert reply.request_id == "req_1"
    assert [attempt.status for attempt in reply.attempts] == [200]
    assert faulty.requests[0].headers["authorization"] == "Bearer test-key"


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
def test_a_passing_fault_is_retried_once_after_3_s(client, faulty, clock, status):
    faulty.script({"status": status})
    assert client.chat("hi").text == "Hello from loopback."
    assert clock.slept == [3.0]
    assert len(faulty.requests) == 2


def test_always_500_is_exactly_two_requests(client, faulty):
    faulty.script(default={"status": 500})
    with pytest.raises(zlclient.ServerError) as caught:
        client.chat("hi")
    assert len(faulty.requests) == 2
    assert [a.status for a in caught.value.attempts] == [500, 500]
    assert caught.value.request_id == "req_1"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, zlclient.BadRequest),
        (401, zlclient.Unauthorized),
        (403, zlclient.Forbidden),
        (404, zlclient.NotFound),
        (413, zlclient.BadRequest),
        (422, zlclient.BadRequest),
    ],
)
def test_a_wrong_request_is_sent_once_and_keeps_its_status(client, faulty, clock, status, kind):
    faulty.script(default={"status": status})
    with pytest.raises(kind) as caught:
        client.chat("hi")
    assert len(faulty.requests) == 1
    assert caught.value.status == status
    assert clock.slept == []


async def test_async_retries_the_same_way(client, faulty, clock):
    faulty.script(default={"status": 500})
    with pytest.raises(zlclient.ServerError):
        await client.achat("hi")
    assert len(faulty.requests) == 2
    assert clock.slept == [3.0]


def test_retry_can_be_set_and_switched_off(client, faulty, clock):
    faulty.script(default={"status": 500})
    with pytest.raises(zlclient.ServerError):
        client.chat("hi", retry="off")
    assert len(faulty.requests) == 1
    with pytest.raises(zlclient.ServerError):
        client.chat("hi", retry=3, retry_wait=1)
    assert len(faulty.requests) == 5
    assert clock.slept == [1, 1, 1]


class TestRetryAfter:
    def test_replaces_the_wait(self, client, faulty, clock):
        faulty.script({"status": 429, "headers": {"retry-after": "7"}})
        assert client.chat("hi").text
        assert clock.slept == [7.0]

    def test_too_long_fails_at_once_and_is_exposed(self, client, faulty, clock):
        faulty.script({"status": 429, "headers": {"retry-after": "3600"}})
        with pytest.raises(zlclient.RateLimited) as caught:
            client.chat("hi")
        assert caught.value.retry_after == 3600
        assert (len(faulty.requests), clock.slept) == (1, [])

    @pytest.mark.parametrize(("deadline", "sent"), [(8, 2), (5, 1)])
    def test_must_fit_the_deadline(self, client, faulty, deadline, sent):
        faulty.script({"status": 503, "headers": {"retry-after": "6"}})
        if sent == 2:
            client.chat("hi", deadline=deadline)
        else:
            with pytest.raises(zlclient.ServerError) as caught:
                client.chat("hi", deadline=deadline)
            assert caught.value.retry_after == 6
        assert len(faulty.requests) == sent

    @pytest.mark.parametrize("value", ["nan", "-5", "inf", "soon", "", "Wed, 21 Oct 2015 07:28:00 GMT"])
    def test_nonsense_means_the_own_wait(self, client, faulty, clock, value):
        faulty.script({"status": 429, "headers": {"retry-after": value}})
        assert client.chat("hi").text
        assert clock.slept == [3.0]


class TestTime:
    """Against the real clock, with small bounds."""

    def test_a_hang_ends_by_its_bounds(self, faulty):
        faulty.script(default={"delay": 30})
        began = time.monotonic()
        with quick() as client, pytest.raises(zlclient.Timeout) as caught:
            client.chat("hi")
        assert 0.6 <= time.monotonic() - began < 1.2  # 0.3 + 0.05 + 0.3
        assert len(caught.value.attempts) == len(faulty.requests) == 2

    async def test_a_hang_ends_by_its_bounds_async(self, faulty):
        faulty.script(default={"delay": 30})
        began = time.monotonic()
        client = quick()
        with pytest.raises(zlclient.Timeout):
            await client.achat("hi")
        await client.aclose()
        assert 0.6 <= time.monotonic() - began < 1.2
        assert len(faulty.requests) == 2

    def test_the_deadline_bounds_the_whole_call(self, faulty):
        faulty.script(default={"delay": 30})
        began = time.monotonic()
        with quick() as client, pytest.raises(zlclient.DeadlineExceeded):
            client.chat("hi", deadline=0.3)
        assert time.monotonic() - began < 0.8
        assert len(faulty.requests) == 1

    @pytest.mark.parametrize("step", [{"drip": 0.02}, {"chunk_delay": 0.2}, {"stall_after": 5}, {"delay": 30}])
    @pytest.mark.parametrize("model", ["anthropic:claude-sonnet-5-5", "openai:gpt-6.1-sol"])
    def test_a_dripped_or_stalled_body_obeys_the_deadline(self, faulty, step, model):
        faulty.script(default=step)
        began = time.monotonic()
        with Client(timeout=5) as client, pytest.raises(zlclient.SendError):
            client.chat("hi", model=model, deadline=0.5)
        assert time.monotonic() - began < 1.0

    @pytest.mark.parametrize("step", [{"drip": 0.02}, {"chunk_delay": 0.2}, {"stall_after": 5}, {"delay": 30}])
    async def test_the_same_async(self, faulty, step):
        faulty.script(default=step)
        began = time.monotonic()
        client = Client(timeout=5)
        with pytest.raises(zlclient.SendError):
            await client.achat("hi", deadline=0.5)
        await client.aclose()
        assert time.monotonic() - began < 1.0

    def test_silence_is_bounded_but_not_the_length_of_an_answer(self, faulty):
        faulty.script(default={"chunk_delay": 0.1, "events": list(anthropic_events(["x"] * 10))})
        with quick() as client:
            assert client.chat("hi").timings.total > 1.0

    def test_a_head_that_drips_is_bounded(self, faulty):
        faulty.script(default={"status": 500, "drip": 0.05})
        began = time.monotonic()
        with quick(retry=0) as client, pytest.raises(zlclient.SendError):
            client.chat("hi")
        assert time.monotonic() - began < 0.8

    def test_one_real_wait(self, faulty):
        faulty.script({"status": 500})
        began = time.monotonic()
        with Client(retry_wait=0.5) as client:
            client.chat("hi")
        assert 0.5 <= time.monotonic() - began < 1.5


class TestBrokenStreams:
    def test_a_drop_after_content_is_not_retried(self, client, faulty):
        faulty.script({"drop": "mid", "events": list(anthropic_events(["a"] * 9))})
        with pytest.raises(zlclient.StreamBroken) as caught:
            client.chat("hi")
        assert caught.value.partial_text.startswith("aa")
        assert caught.value.usage.input == 12
        assert caught.value.request_id == "req_1"
        assert len(faulty.requests) == 1

    def test_a_drop_before_content_is_retried(self, client, faulty):
        faulty.script({"drop": "before"}, {"end_after": 1})
        with pytest.raises(zlclient.ConnectFailed):
            client.chat("hi")
        assert len(faulty.requests) == 2

    def test_a_clean_end_in_mid_message(self, client, faulty):
        faulty.script({"end_after": 4})
        with pytest.raises(zlclient.StreamBroken) as caught:
            client.chat("hi")
        assert caught.value.partial_text == "Hello from "

    def test_overloaded_event_is_retried_only_before_content(self, client, faulty):
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        faulty.script({"events": [error]})
        assert client.chat("hi").text == "Hello from loopback."
        faulty.script({"events": [*list(anthropic_events())[:3], error]})
        with pytest.raises(zlclient.Overloaded) as caught:
            client.chat("hi", fallback=["openai:gpt-6.1-sol"])
        assert caught.value.partial_text == "Hello "
        assert len(faulty.requests) == 1
        faulty.script(default={"events": [error]})
        with pytest.raises(zlclient.Overloaded):
            client.chat("hi")

    @pytest.mark.parametrize(
        ("step", "kind"),
        [
            ({"body": b"<html>busy</html>", "content_type": "text/html"}, zlclient.BadAnswer),
            ({"body": b"", "content_type": "text/plain"}, zlclient.BadAnswer),
            ({"body": b"{not json"}, zlclient.BadAnswer),
            ({"body": {"hello": 1}}, zlclient.BadAnswer),
            ({"events": [b"data: {broken\n\n"]}, zlclient.BadAnswer),
            ({"events": [{"type": "content_block_delta"}]}, zlclient.BadAnswer),
            ({"events": [b"data: [1]\n\n"]}, zlclient.BadAnswer),
            ({"body": {"type": "message", "content": [{"x": 1}]}}, zlclient.BadAnswer),
            ({"events": list(anthropic_events([]))}, zlclient.EmptyAnswer),
        ],
    )
    def test_a_success_that_is_no_answer(self, client, faulty, step, kind):
        faulty.script(default=step)
        with pytest.raises(kind):
            client.chat("hi")
        assert len(faulty.requests) == 1

    def test_an_answer_in_one_piece_is_taken(self, client, faulty):
        message = {"type": "message", "id": "m", "model": "x", "content": [{"type": "text", "text": "whole"}]}
        faulty.script(
            {"body": {**message, "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 2}}}
        )
        reply = client.chat("hi")
        assert (reply.text, reply.usage.output, reply.stop_reason) == ("whole", 2, "end_turn")


class TestStreams:
    def test_text_arrives_in_pieces_and_ends_with_a_reply(self, client):
        with client.stream("hi") as answer:
            assert list(answer) == ["Hello ", "from ", "loopback."]
            assert answer.reply.usage.output == 6
            assert answer.reply.cost is not None

    async def test_async(self, client):
        async with await client.astream("hi") as answer:
            assert [text async for text in answer] == ["Hello ", "from ", "loopback."]
            assert (await answer.reply()).usage.output == 6

    def test_a_break_after_content_carries_the_partial_text(self, client, faulty):
        faulty.script({"drop": "mid", "events": list(anthropic_events(["a"] * 9))})
        got = []
        with client.stream("hi") as answer, pytest.raises(zlclient.StreamBroken) as caught:
            got.extend(answer)
        assert "".join(got) == caught.value.partial_text

    def test_abandoned_streams_free_their_connections(self, faulty, monkeypatch):
        config = {"anthropic": {"max_connections": 2}}
        with Client(providers=config, timeout=2) as client:
            for _ in range(50):
                for _text in client.stream("hi"):
                    break
            gc.collect()
            assert client.chat("hi").text == "Hello from loopback."

    async def test_abandoned_async_streams_free_their_connections(self, faulty):
        client = Client(providers={"anthropic": {"max_connections": 2}}, timeout=2)
        for _ in range(50):
            async for _text in await client.astream("hi"):
                break
        assert (await client.achat("hi")).text == "Hello from loopback."
        await client.aclose()


class TestConnections:
    def test_500_calls_use_one_connection(self, faulty):
        before = faulty.connections
        with Client() as client:
            for _ in range(500):
                client.chat("hi")
        assert faulty.connections - before == 1

    def test_one_async_client_serves_three_event_loops(self, faulty):
        client = zlclient.AsyncClient()
        assert [asyncio.run(client.chat("hi")).text for _ in range(3)] == ["Hello from loopback."] * 3

    def test_a_closed_client_says_so(self, faulty):
        client = Client()
        client.chat("hi")
        client.close()
        with pytest.raises(zlclient.ClientClosed):
            client.chat("hi")

    def test_no_server_is_a_connect_error(self, monkeypatch, clock):
        monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        with Client(clock=clock) as client, pytest.raises(zlclient.ConnectFailed) as caught:
            client.chat("hi")
        assert len(caught.value.attempts) == 2

    def test_missing_credentials_name_the_variable_and_the_offline_way(self, clock):
        with Client(clock=clock) as client, pytest.raises(zlclient.CredentialsError, match=r"ANTHROPIC_API_KEY.*local"):
            client.chat("hi")
