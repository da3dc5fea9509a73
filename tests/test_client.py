"""What a caller sees: options, shaping on the wire, routes, fallbacks, what is learned, replies."""

import asyncio
import json
import logging
import pickle
import warnings
from datetime import date

import pytest
from faulty import anthropic_events
from pydantic import BaseModel

import zlclient
from zlclient import Client


@pytest.fixture
def client(faulty, clock):
    with Client(clock=clock) as made:
        yield made


def sent(faulty, index=-1):
    return faulty.requests[index].body


class TestWhatLeaves:
    def test_the_prompt_is_cleaned_tagged_and_every_change_is_noted(self, client, faulty):
        reply = client.chat("2024年Q1\u200b交付量？", domain="finance")
        assert sent(faulty)["messages"] == [{"role": "user", "content": "【财经数据】2024年Q1交付量？"}]
        assert {f"{note.stage}/{note.rule}" for note in reply.adjustments} >= {
            "sanitise/standard",
            "anchor/domain-tag",
            "route/alias",
            "tune/preset",
        }

    def test_prepare_shows_exactly_what_leaves(self, client, faulty):
        options = {"domain": "law", "anchors": ["fidelity", "format"], "system": "Be brief.", "stop": ["END"]}
        prepared = client.prepare("甲方是谁？", **options)
        assert faulty.requests == []
        client.chat("甲方是谁？", **options)
        assert faulty.requests[-1].raw == prepared.content
        assert prepared.wire["body"] == sent(faulty)
        assert prepared.wire["url"] == f"{faulty.url}/v1/messages"
        assert prepared.wire["headers"]["authorization"] == "Bearer ***"

    def test_a_conversation_keeps_its_prefix_byte_for_byte(self, client, faulty):
        options = {"domain": "finance", "anchors": ["fidelity"], "system": "系统", "tools": [TOOL]}
        first = client.chat("第一问？", **options)
        client.chat([*first.messages, {"role": "user", "content": "第二问？"}], **options)
        client.chat(
            [{"role": "user", "content": "第一问？"}, *first.messages[1:], {"role": "user", "content": "三？"}],
            **options,
        )
        one, two, three = (request.raw for request in faulty.requests)
        assert two.startswith(one.removesuffix(b"]}"))
        assert three.startswith(one.removesuffix(b"]}"))
        assert list(json.loads(one))[:2] == ["tools", "system"]
        assert list(json.loads(one))[-1] == "messages"

    def test_blocks_pass_through_untouched_but_for_text(self, client, faulty):
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBOR\u200b"}}
        blocks = [image, {"type": "text", "text": "what\u200b is this?", "cache_control": {"type": "ephemeral"}}]
        client.chat([{"role": "user", "content": blocks}])
        assert sent(faulty)["messages"][0]["content"] == [image, {**blocks[1], "text": "what is this?"}]

    def test_openai_gets_its_own_shapes(self, client, faulty):
        call = {"type": "tool_use", "id": "t1", "name": "get", "input": {"a": 1}}
        messages = [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "42"}]},
        ]
        client.chat(messages, model="openai:gpt-6.1-sol", system="sys", tools=[TOOL], tool_choice="any")
        body = sent(faulty)
        assert [m["role"] for m in body["messages"]] == ["system", "user", "assistant", "tool"]
        assert json.loads(body["messages"][2]["tool_calls"][0]["function"]["arguments"]) == {"a": 1}
        assert body["tools"][0]["function"]["parameters"] == TOOL["input_schema"]
        assert body["tool_choice"] == "required"
        assert body["max_completion_tokens"] == 4096
        assert body["stream_options"] == {"include_usage": True}

    def test_openai_shapes_are_taken_for_anthropic(self, client, faulty):
        function = {"name": "get", "arguments": '{"a": 1}'}
        messages = [
            {"role": "system", "content": "sys"},
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "t1", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "t1", "content": "42"},
        ]
        client.chat(messages)
        body = sent(faulty)
        assert body["system"] == "sys"
        assert body["messages"][1]["content"] == [{"type": "tool_use", "id": "t1", "name": "get", "input": {"a": 1}}]
        assert body["messages"][2]["content"][0]["type"] == "tool_result"

    def test_empty_turns_are_dropped_but_never_the_question(self, client, faulty):
        turns = [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": " "},
            {"role": "user", "content": "b"},
        ]
        reply = client.chat(turns)
        assert [m["content"] for m in sent(faulty)["messages"]] == ["a", "b"]
        assert any(note.rule == "empty-turn" for note in reply.adjustments)
        for nothing in ("", " \n", [], [{"role": "user", "content": ""}], [{"role": "user", "content": []}]):
            with pytest.raises(zlclient.InputError):
                client.chat(nothing)
        assert len(faulty.requests) == 1

    def test_extra_passes_through(self, client, faulty):
        client.chat("hi", extra={"metadata": {"user_id": "u"}}, extra_headers={"anthropic-beta": "x"})
        assert sent(faulty)["metadata"] == {"user_id": "u"}
        assert faulty.requests[0].headers["anthropic-beta"] == "x"

    def test_unknown_options_are_errors_that_help(self, client):
        with pytest.raises(zlclient.InputError, match="did you mean 'temperature'"):
            client.chat("hi", temprature=1)


TOOL = {"name": "get", "description": "d", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}


class TestSampling:
    def test_no_sampling_for_a_model_that_rejects_it(self, client, faulty):
        client.chat("hi", model="anthropic:claude-opus-5-5", temperature=0.2)
        assert "temperature" not in sent(faulty)
        assert faulty.requests[0].headers["anthropic-version"] == "2026-10-21"

    def test_strict_makes_it_an_error(self, client, faulty):
        with pytest.raises(zlclient.InputError, match="temperature"):
            client.chat("hi", model="anthropic:claude-opus-5-5", temperature=0.2, strict=True)
        assert faulty.requests == []

    def test_an_explicit_temperature_takes_the_older_version_where_the_model_does(self, client, faulty):
        reply = client.chat("hi", model="anthropic:claude-sonnet-4-6", temperature=0.2)
        assert sent(faulty)["temperature"] == 0.2
        assert faulty.requests[0].headers["anthropic-version"] == "2023-06-01"
        assert any(note.rule == "version" for note in reply.adjustments)

    def test_legacy_sends_the_preset(self, client, faulty):
        client.chat("hi", model="legacy")
        assert (sent(faulty)["model"], sent(faulty)["temperature"]) == ("claude-sonnet-4-6", 0.35)
        client.chat("hi", model="legacy", preset="precise")
        assert sent(faulty)["temperature"] == 0.3

    def test_openai_takes_it_only_at_effort_none(self, client, faulty):
        client.chat("hi", model="openai:gpt-6-sol", temperature=0.2)
        assert "temperature" not in sent(faulty)
        client.chat("hi", model="openai:gpt-6-sol", temperature=0.2, effort="none")
        assert sent(faulty)["temperature"] == 0.2
        client.chat("hi", model="openai:gpt-5.4")
        assert sent(faulty)["temperature"] == 0.35


class TestLearning:
    def test_a_400_that_names_a_parameter_is_sent_once_more_without_it(self, client, faulty, clock):
        refusal = {"type": "error", "error": {"type": "invalid_request_error", "message": "temperature: Extra inputs"}}
        faulty.script({"status": 400, "body": refusal})
        reply = client.chat("hi", model="legacy")
        assert reply.text
        assert [("temperature" in request.body) for request in faulty.requests] == [True, False]
        assert clock.slept == []
        assert any("as its server said" in note.reason for note in reply.adjustments)
        faulty.script()
        client.chat("hi", model="legacy")
        assert "temperature" not in sent(faulty, 0)

    def test_max_tokens_has_two_names(self, client, faulty):
        error = {"message": "Unsupported parameter: 'max_completion_tokens'", "param": "max_completion_tokens"}
        faulty.script({"status": 400, "body": {"error": error}})
        client.chat("hi", model="openai:gpt-6.1-sol")
        assert "max_tokens" in sent(faulty)
        assert "max_completion_tokens" not in sent(faulty)

    def test_a_400_about_anything_else_is_final(self, client, faulty):
        error = {"type": "invalid_request_error", "message": "messages.0: text is too long, try max_tokens"}
        faulty.script(default={"status": 400, "body": {"type": "error", "error": error}})
        with pytest.raises(zlclient.BadRequest):
            client.chat("hi")
        assert len(faulty.requests) == 1

    def test_strict_keeps_the_refusal(self, client, faulty):
        refusal = {"type": "error", "error": {"type": "invalid_request_error", "message": "temperature: no"}}
        faulty.script(default={"status": 400, "body": refusal})
        with pytest.raises(zlclient.BadRequest, match="temperature: no"):
            client.chat("hi", model="legacy", temperature=0.1, strict=True)


class TestFallback:
    def test_the_next_route_answers_when_one_is_unavailable(self, client, faulty):
        faulty.script({"status": 500}, {"status": 500})
        reply = client.chat("hi", fallback=["openai:gpt-6.1-sol"])
        assert (reply.provider, len(reply.attempts)) == ("openai", 3)
        assert any(note.rule == "fallback" for note in reply.adjustments)

    def test_not_for_a_wrong_request(self, client, faulty):
        faulty.script(default={"status": 401})
        with pytest.raises(zlclient.Unauthorized) as caught:
            client.chat("hi", fallback=["openai:gpt-6.1-sol"])
        assert len(caught.value.attempts) == 1

    def test_the_error_lists_every_attempt_in_order(self, client, faulty):
        faulty.script({"status": 429, "headers": {"retry-after": "99"}}, {"status": 400})
        with pytest.raises(zlclient.BadRequest) as caught:
            client.chat("hi", fallback=["openai:gpt-6.1-sol"])
        assert [(a.provider, a.status) for a in caught.value.attempts] == [("anthropic", 429), ("openai", 400)]
        assert caught.value.provider == "openai"

    def test_a_route_whose_window_is_too_small_is_skipped(self, client, faulty):
        faulty.script({"status": 429, "headers": {"retry-after": "99"}})
        with pytest.raises(zlclient.RateLimited):
            client.chat("word " * 40_000, fallback=["openai:gpt-3.5-turbo"])
        assert len(faulty.requests) == 1

    @pytest.mark.parametrize("policy", ["shorten", "split", "fallback"])
    def test_rate_limit_policies_do_not_wait(self, client, faulty, clock, policy):
        faulty.script({"status": 429})
        prompt = "Summarise.\n\n" + "\n\n".join(f"Paragraph {n}. " + "word " * 40 for n in range(20))
        reply = client.chat(prompt, on_rate_limit=policy, fallback=["openai:gpt-6.1-sol"])
        assert clock.slept == []
        assert len(faulty.requests) == {"shorten": 2, "split": 3, "fallback": 2}[policy]
        if policy == "shorten":
            assert len(sent(faulty)["messages"][0]["content"]) < 0.6 * len(prompt)
        if policy == "split":
            halves = [request.body["messages"][0]["content"] for request in faulty.requests[1:]]
            assert all(half.startswith("Summarise.") for half in halves)
            assert all(f"Paragraph {n}." in "".join(halves) for n in range(20))
            assert reply.usage.output == 12


class Person(BaseModel):
    name: str
    age: int


class TestAnswers:
    def answer(self, faulty, text):
        faulty.script(default={"events": list(anthropic_events([text]))})

    def test_output_is_parsed(self, client, faulty):
        self.answer(faulty, '{"name": "Ann", "age": 3}')
        reply = client.chat("who?", output=Person)
        assert reply.parsed == Person(name="Ann", age=3)
        schema = sent(faulty)["output_config"]["format"]["schema"]
        assert schema["additionalProperties"] is False

    def test_what_does_not_fit_is_recorded_raised_or_asked_again(self, client, faulty):
        self.answer(faulty, "no json")
        assert client.chat("who?", output=Person).parsed is None
        with pytest.raises(zlclient.CheckError) as caught:
            client.chat("who?", output=Person, format_policy="raise")
        assert caught.value.reply.text == "no json"
        faulty.script(
            {"events": list(anthropic_events(["no"]))}, {"events": list(anthropic_events(['{"name":"B","age":1}']))}
        )
        reply = client.chat("who?", output=Person, format_policy="retry")
        assert (reply.parsed.name, len(reply.attempts)) == ("B", 2)

    def test_numbers_are_checked_against_the_source(self, client, faulty):
        self.answer(faulty, "交付量为38.7万辆，同比下降9.5%。")
        reply = client.chat("多少？", source="交付量为386,810辆，同比下降8.5%。")
        verdicts = {fact.text: fact.verdict for fact in reply.checks["fidelity"].facts}
        assert "present" in verdicts.values()
        assert not reply.checks["fidelity"].ok
        with pytest.raises(zlclient.CheckError):
            client.chat("多少？", source="交付量为386,810辆，同比下降8.5%。", fidelity="raise")

    def test_format(self, client, faulty):
        self.answer(faulty, "一句。两句。")
        assert client.chat("说两句", format={"sentences": 2}).checks["format"].ok
        assert not client.chat("说三句", format=zlclient.FormatSpec(sentences=3)).checks["format"].ok
        with pytest.raises(zlclient.InputError):
            client.chat("x", format={"sentence": 1})

    def test_tool_calls(self, client, faulty):
        events = list(anthropic_events([]))
        block = {"type": "tool_use", "id": "t1", "name": "get", "input": {}}
        events[1] = {"type": "content_block_start", "index": 0, "content_block": block}
        piece = {"type": "content_block_delta", "index": 0}
        events[2:2] = [
            {**piece, "delta": {"type": "input_json_delta", "partial_json": part}} for part in ('{"a"', ": 1}")
        ]
        faulty.script({"events": events})
        reply = client.chat("go", tools=[TOOL])
        assert [(call.id, call.name, call.input) for call in reply.tool_calls] == [("t1", "get", {"a": 1})]
        assert reply.messages[-1]["content"] == [{**block, "input": {"a": 1}}]

    def test_a_reply_prints_converts_and_pickles(self, client):
        reply = client.chat("hi")
        assert str(reply) == "Hello from loopback."
        assert json.loads(reply.to_json())["usage"]["output"] == 6
        assert pickle.loads(pickle.dumps(reply)) == reply
        assert reply.messages[-1] == {"role": "assistant", "content": "Hello from loopback."}

    def test_errors_pickle(self, client, faulty):
        faulty.script(default={"status": 500})
        with pytest.raises(zlclient.ServerError) as caught:
            client.chat("hi")
        copy = pickle.loads(pickle.dumps(caught.value))
        assert (str(copy), copy.attempts) == (str(caught.value), caught.value.attempts)


class TestPrivacy:
    SECRET = "身份证号110101199001011234"

    def test_no_prompt_text_in_logs_or_errors(self, client, faulty, caplog):
        caplog.set_level(logging.DEBUG, logger="zlclient")
        client.chat(self.SECRET)
        faulty.script(default={"status": 500})
        with pytest.raises(zlclient.ServerError) as caught:
            client.chat(self.SECRET)
        logged = " ".join(str(record.__dict__) for record in caplog.records)
        assert "zl_route" in logged
        assert self.SECRET not in logged + str(caught.value) + repr(caught.value)
        assert "test-key" not in logged + repr(client.settings)

    def test_content_is_logged_when_switched_on(self, faulty, caplog):
        caplog.set_level(logging.INFO, logger="zlclient")
        with Client(log_content=True) as client:
            client.chat(self.SECRET)
        assert self.SECRET in str(caplog.records[0].__dict__)


class TestOwnClients:
    def test_a_users_sdk_client_is_used_as_it_is(self, faulty):
        import anthropic

        seen = []
        own = anthropic.Anthropic(middleware=[lambda request, call: (seen.append(request.url), call(request))[1]])
        with Client(clients={"anthropic": own}) as client:
            assert client.chat("hi").text == "Hello from loopback."
            with client.stream("hi") as answer:
                assert "".join(answer) == "Hello from loopback."
            faulty.script(default={"status": 500})
            with pytest.raises(zlclient.ServerError):
                client.chat("hi", retry_wait=0)
        assert len(faulty.requests) == 2
        assert len(seen) == 4

    async def test_async(self, faulty):
        import openai

        client = zlclient.AsyncClient(clients={"openai": openai.AsyncOpenAI()})
        assert (await client.chat("hi", model="openai:gpt-6.1-sol")).text == "Hello from loopback."
        await client.aclose()

    def test_an_http_client(self, faulty):
        import httpx2

        seen = []
        with Client(http_client=httpx2.Client(event_hooks={"request": [seen.append]})) as client:
            client.chat("hi")
        assert len(seen) == 1

    def test_a_compatible_server_by_configuration(self, faulty, monkeypatch):
        monkeypatch.setenv("VLLM_KEY", "vk")
        provider = {
            "kind": "openai",
            "base_url": f"{faulty.url}/v1",
            "key_env": "VLLM_KEY",
            "accepts": {"context": 32768},
        }
        with Client(providers={"vllm": provider}, routes={"auto": "vllm:qwen3"}) as client:
            reply = client.chat("hi", temperature=0.9)
        body = faulty.requests[0].body
        assert (body["model"], body["temperature"], body["max_tokens"]) == ("qwen3", 0.9, 4096)
        assert faulty.requests[0].headers["authorization"] == "Bearer vk"
        assert reply.route == "auto → vllm:qwen3"


def test_a_retiring_model_warns_with_its_date(client):
    with pytest.warns(zlclient.ModelRetirementWarning, match="2026-11-30"):
        client.chat("hi", model="anthropic:claude-sonnet-4-5")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.chat("hi", model="anthropic:claude-sonnet-5-5")


def test_auto_is_the_newest_active_sonnet_or_the_openai_pair(client, clock, monkeypatch):
    assert client.prepare("x").route.model.id == "claude-sonnet-5-5"
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    assert client.prepare("x").route.provider.name == "anthropic"  # read once: preparing is pure
    with Client(clock=clock) as another:
        assert another.prepare("x").route.provider.name == "openai"
    assert clock.today() == date(2026, 11, 30)


def test_offline_through_the_whole_corridor(clock):
    with Client(provider="local", clock=clock) as client:
        reply = client.chat("交付量是多少？\n\n2024年Q1特斯拉交付量为386810辆。营收213亿美元。")
        assert reply.text == "2024年Q1特斯拉交付量为386810辆。"
        assert reply.responder
        assert reply.cost == 0
        with client.stream("Hello") as answer:
            assert "".join(answer) == answer.reply.text
        assert asyncio.run(client.achat("Hello")).text == answer.reply.text


def test_the_module_functions(faulty):
    assert zlclient.chat("hi").text == "Hello from loopback."
    assert asyncio.run(zlclient.achat("hi")).text == "Hello from loopback."
    with zlclient.stream("hi") as answer:
        assert "".join(answer) == "Hello from loopback."
    assert zlclient.prepare("hi").wire["method"] == "POST"


def test_a_bare_id_is_found_at_the_settings_provider(faulty):
    with Client(provider="anthropic", model="claude-opus-5-5") as client:
        client.chat("hi")
    assert faulty.requests[0].body["model"] == "claude-opus-5-5"


@pytest.mark.parametrize(
    ("model", "options", "message", "left_out"),
    [
        (
            "anthropic:claude-sonnet-5-5",
            {"effort": "low"},
            "output_config.effort: Input should be 'high'",
            "output_config",
        ),
        ("anthropic:claude-sonnet-5-5", {"extra": {"top_k": 5}}, "top_k: Extra inputs are not permitted", "top_k"),
        (
            "openai:gpt-6-sol",
            {"effort": "none"},
            "Unsupported value: 'reasoning_effort' does not support 'none'",
            "reasoning_effort",
        ),
        ("openai:gpt-4o", {}, "Unsupported value: 'temperature' does not support 0.35 with this model.", "temperature"),
    ],
)
def test_what_a_server_refuses_is_left_out_once(client, faulty, model, options, message, left_out):
    faulty.script(
        {"status": 400, "body": {"type": "error", "error": {"type": "invalid_request_error", "message": message}}}
    )
    client.chat("hi", model=model, **options)
    assert [left_out in request.body for request in faulty.requests] == [True, False]


def test_a_limit_that_is_too_high_is_no_unknown_name(client, faulty):
    error = {"message": "max_completion_tokens is too large: 999", "param": "max_completion_tokens"}
    faulty.script(default={"status": 400, "body": {"error": error}})
    with pytest.raises(zlclient.BadRequest):
        client.chat("hi", model="openai:gpt-6.1-sol", max_tokens=999)
    assert len(faulty.requests) == 1
