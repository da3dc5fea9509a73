"""What an adversarial review broke once, each held from now on."""

import asyncio
import gc
import traceback

import httpx2
import pytest
from faulty import anthropic_events
from pydantic import BaseModel

import zlclient
from zlclient import AsyncClient, Client

SECRET = "sk-secret-0123456789"


@pytest.fixture
def client(faulty, clock):
    with Client(clock=clock) as made:
        yield made


class TestEndings:
    async def test_a_body_that_ends_late_is_no_failure_of_a_whole_answer(self, faulty):
        faulty.script(default={"linger": 1.5})
        client = AsyncClient()
        assert (await client.chat("hi")).text == "Hello from loopback."
        async with await client.stream("hi") as answer:
            assert (await answer.reply()).text == "Hello from loopback."
        await client.aclose()

    def test_the_same_in_a_thread_and_within_the_deadline(self, faulty):
        faulty.script(default={"linger": 9})
        with Client() as client:
            assert client.chat("hi", deadline=0.5).timings.total < 0.9

    @pytest.mark.parametrize("step", [{"drop": "mid", "events": list(anthropic_events(["a"] * 9))}, {"stall_after": 4}])
    def test_a_broken_stream_is_no_reply_however_often_it_is_asked_for(self, faulty, step):
        faulty.script(default=step)
        with Client(timeout=0.3) as client, client.stream("hi") as answer:
            for _ in range(2):
                with pytest.raises(zlclient.StreamBroken):
                    assert answer.reply

    def test_a_closed_stream_is_no_reply(self, client, faulty):
        faulty.script({"stall_after": 4})
        answer = client.stream("hi")
        answer.close()
        with pytest.raises(zlclient.SendError):
            assert answer.reply

    def test_a_stream_abandoned_after_a_retry_frees_its_connection(self, faulty, clock):
        with Client(providers={"anthropic": {"max_connections": 2}}, timeout=2, clock=clock) as client:
            for _ in range(10):
                faulty.script({"status": 500})
                client.stream("hi")
            gc.collect()
            assert client.chat("hi").text == "Hello from loopback."

    @pytest.mark.parametrize(
        "step",
        [
            {"headers": {"content-encoding": "gzip"}},
            {"body": b"x", "headers": {"content-encoding": "gzip"}, "status": 400},
            {"body": b"", "status": 302, "headers": {"location": "/v1/messages"}},
        ],
    )
    def test_whatever_the_transport_says_is_one_of_our_errors(self, client, faulty, step):
        faulty.script(default=step)
        with pytest.raises(zlclient.SendError):
            client.chat("hi")

    async def test_event_loops_that_are_gone_hold_nothing(self, faulty):
        client = AsyncClient()
        await client.chat("hi")
        await asyncio.to_thread(lambda: [asyncio.run(client.chat("hi")) for _ in range(5)])
        await asyncio.to_thread(lambda: asyncio.run(client.chat("hi")))
        assert len(client._providers["anthropic"]._lines) <= 2
        await client.aclose()


class TestKeys:
    def test_a_third_party_never_gets_another_providers_key(self, faulty):
        mirror = {"kind": "anthropic", "base_url": faulty.url, "key_env": "MIRROR_KEY"}
        with (
            Client(providers={"mirror": mirror}) as client,
            pytest.raises(zlclient.CredentialsError, match="MIRROR_KEY"),
        ):
            client.chat("hi", model="mirror:claude-sonnet-5-5")
        assert faulty.requests == []

    def test_a_key_with_a_line_end_works_and_one_with_controls_is_refused(self, faulty, monkeypatch):
        monkeypatch.setenv("ANTHROPIC_API_KEY", f"{SECRET}\n")
        with Client() as client:
            client.chat("hi")
        assert faulty.requests[0].headers["authorization"] == f"Bearer {SECRET}"
        monkeypatch.setenv("ANTHROPIC_API_KEY", f"{SECRET}\x01x")
        with Client() as client, pytest.raises(zlclient.CredentialsError) as caught:
            client.chat("hi")
        assert SECRET not in "".join(traceback.format_exception(caught.value))

    def test_no_header_value_in_a_traceback(self, client, faulty):
        with pytest.raises(zlclient.InputError) as caught:
            client.chat("hi", extra_headers={"x-token": f"{SECRET}\n"})
        assert SECRET not in "".join(traceback.format_exception(caught.value))
        assert faulty.requests == []

    def test_offline_stays_offline(self, client, faulty):
        with pytest.raises(zlclient.InputError, match="provider"):
            client.chat("private", provider="local", model="anthropic:claude-sonnet-5-5")
        assert faulty.requests == []


class TestFallbacks:
    def test_one_without_a_key_does_not_hide_what_the_provider_said(self, faulty, clock, monkeypatch):
        monkeypatch.delenv("OPENAI_API_KEY")
        faulty.script(default={"status": 500})
        with Client(clock=clock) as client, pytest.raises(zlclient.ServerError) as caught:
            client.chat("hi", fallback=["openai:gpt-6.1-sol"])
        assert len(caught.value.attempts) == 2

    def test_a_wrong_name_shows_before_anything_is_sent(self, client, faulty):
        with pytest.raises(zlclient.InputError, match="nope"):
            client.chat("hi", fallback=["nope"])
        assert faulty.requests == []

    def test_one_that_refuses_the_request_is_passed_over(self, client, faulty):
        faulty.script(default={"status": 500})
        turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "{"}]
        with pytest.raises(zlclient.ServerError):
            client.chat(turns, model="anthropic:claude-haiku-4-5", fallback=["anthropic:claude-sonnet-5-5"])


class Answer(BaseModel):
    a: int


class TestSecondAskings:
    PROMPT = "Summarise.\n\n" + "\n\n".join(f"Paragraph {n}. " + "word " * 40 for n in range(20))

    def test_a_good_first_answer_survives_a_failing_second(self, client, faulty):
        faulty.script({}, default={"status": 400})
        reply = client.chat("hi", output=Answer, format_policy="retry")
        assert reply.text == "Hello from loopback."
        assert [attempt.status for attempt in reply.attempts] == [200, 400]
        assert reply.adjustments[-1].rule == "asked-again"

    def test_a_failing_second_half_keeps_the_first(self, client, faulty):
        faulty.script({"status": 429}, {}, default={"status": 400})
        with pytest.raises(zlclient.BadRequest) as caught:
            client.chat(self.PROMPT, on_rate_limit="split")
        assert caught.value.partial_text == "Hello from loopback."
        assert [attempt.status for attempt in caught.value.attempts] == [429, 200, 400]

    def test_both_halves_share_one_deadline(self, faulty):
        faulty.script({"status": 429, "delay": 0.2}, default={"delay": 0.5})
        with Client() as client, pytest.raises(zlclient.DeadlineExceeded):
            client.chat(self.PROMPT, on_rate_limit="split", deadline=1.0)


class TestOwnClients:
    @pytest.mark.parametrize("step", [{"drip": 0.02}, {"status": 500, "drip": 0.05}, {"delay": 30}])
    def test_the_deadline_holds_for_a_client_that_was_handed_in(self, faulty, step):
        import anthropic

        faulty.script(default=step)
        for options in ({"clients": {"anthropic": anthropic.Anthropic()}}, {"http_client": httpx2.Client()}):
            with Client(**options) as client, pytest.raises(zlclient.SendError) as caught:
                client.chat("hi", deadline=0.4, retry=0)
            assert caught.value.attempts[-1].ended < 0.8

    def test_an_openai_client_keeps_its_connection(self, faulty):
        import openai

        before = faulty.connections
        with Client(clients={"openai": openai.OpenAI()}) as client:
            for _ in range(20):
                client.chat("hi", model="openai:gpt-6.1-sol")
        assert faulty.connections - before == 1

    async def test_nothing_handed_in_is_passed_over_in_silence(self, faulty):
        import anthropic

        with pytest.raises(zlclient.ConfigError, match="antropic"):
            Client(clients={"antropic": anthropic.Anthropic()})
        given = {"anthropic": anthropic.AsyncAnthropic()}
        with Client(clients=given) as client, pytest.raises(zlclient.ConfigError, match="sync or async"):
            client.chat("hi")
        with Client(http_client=httpx2.Client()) as client, pytest.raises(zlclient.ConfigError, match="http_client"):
            await client.achat("hi")
        with Client(http_client=object()) as client, pytest.raises(zlclient.ConfigError, match="http_client"):
            client.chat("hi")
        assert faulty.requests == []

    def test_a_users_http_client_stays_open(self, faulty):
        http = httpx2.Client()
        with Client(http_client=http) as client:
            client.chat("hi")
        assert not http.is_closed


def test_closing_an_unused_or_offline_client_closes_it(clock):
    for options in ({}, {"provider": "local"}):
        client = Client(clock=clock, **options)
        client.close()
        with pytest.raises(zlclient.ClientClosed):
            client.chat("hi")
