"""Adopting the shaping for one's own SDK client changes one line."""

import anthropic
import openai
import pytest

import zlclient


def test_anthropic(faulty):
    own = anthropic.Anthropic(middleware=[zlclient.middleware(domain="finance", anchors=["fidelity"])])
    messages = [{"role": "user", "content": "2024年\u200b交付量？"}]
    assert own.messages.create(model="claude-sonnet-5-5", max_tokens=9, messages=messages)
    body = faulty.requests[0].body
    assert body["messages"][0]["content"] == "【财经数据】2024年交付量？"
    assert "原文" in body["system"]
    assert messages[0]["content"] == "2024年\u200b交付量？"  # the caller's own objects are left alone


async def test_anthropic_async_and_streamed(faulty):
    own = anthropic.AsyncAnthropic(middleware=[zlclient.middleware()])
    async with own.messages.stream(
        model="claude-sonnet-5-5", max_tokens=9, messages=[{"role": "user", "content": "a\u200bb"}]
    ) as stream:
        assert await stream.get_final_text() == "Hello from loopback."
    assert faulty.requests[0].body["messages"][0]["content"] == "ab"


def test_what_the_model_rejects_is_left_out(faulty):
    own = anthropic.Anthropic(middleware=[zlclient.middleware()])
    body = {"temperature": 0.2}
    message = [{"role": "user", "content": "hi"}]
    own.messages.create(model="claude-opus-5-5", max_tokens=9, messages=message, extra_body=body)
    own.messages.create(
        model="claude-sonnet-4-6",
        max_tokens=9,
        messages=message,
        extra_body=body,
        extra_headers={"anthropic-version": "2023-06-01"},
    )
    assert ["temperature" in request.body for request in faulty.requests] == [False, True]


def test_other_requests_are_left_alone(faulty):
    own = anthropic.Anthropic(middleware=[zlclient.middleware(domain="law")])
    faulty.script(default={"body": {"data": [], "has_more": False}})
    own.models.list()
    assert faulty.requests[0].path.startswith("/v1/models")


def test_openai(faulty):
    faulty.script(default={"body": {"id": "c", "choices": [], "created": 1, "model": "m", "object": "chat.completion"}})
    original = openai.OpenAI()
    own = zlclient.shaped(original, domain="finance", anchors=["fidelity"])
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "交付\u200b量？"}]
    own.with_options(timeout=9).chat.completions.create(model="gpt-6.1-sol", messages=messages, temperature=0.2)
    body = faulty.requests[0].body
    assert body["messages"][1]["content"] == "【财经数据】交付量？"
    assert body["messages"][0]["content"].startswith("s\n\n")
    assert "temperature" not in body
    original.chat.completions.create(model="gpt-6.1-sol", messages=messages)
    assert faulty.requests[1].body["messages"] == messages


@pytest.mark.parametrize(
    "given", ["a\u200bb", [{"role": "user", "content": [{"type": "input_text", "text": "a\u200bb"}]}]]
)
def test_openai_responses(faulty, given):
    faulty.script(default={"body": {"id": "r", "object": "response", "output": [], "model": "m"}})
    zlclient.shaped(openai.OpenAI()).responses.create(model="gpt-6.1-sol", input=given)
    sent = faulty.requests[0].body["input"]
    assert (sent if isinstance(sent, str) else sent[0]["content"][0]["text"]) == "ab"


async def test_openai_async(faulty):
    faulty.script(default={"body": {"id": "c", "choices": [], "created": 1, "model": "m", "object": "chat.completion"}})
    own = zlclient.shaped(openai.AsyncOpenAI())
    await own.chat.completions.create(model="gpt-6.1-sol", messages=[{"role": "user", "content": "a\u200bb"}])
    assert faulty.requests[0].body["messages"][0]["content"] == "ab"


DIRTY = "a\u200bb\U000e0041"  # with a zero-width space and a tag character


def shaped_messages(faulty, messages, **options):
    own = anthropic.Anthropic(middleware=[zlclient.middleware(**options.pop("shaping", {}))])
    own.messages.create(model="claude-sonnet-5-5", max_tokens=9, messages=messages, **options)
    return faulty.requests[-1].body


@pytest.fixture
def chat(faulty):
    faulty.script(default={"body": {"id": "c", "choices": [], "created": 1, "model": "m", "object": "chat.completion"}})

    def send(messages, *, shaping=None, **options):
        own = zlclient.shaped(openai.OpenAI(), **(shaping or {}))
        own.chat.completions.create(model="gpt-6.1-sol", messages=messages, **options)
        return faulty.requests[-1].body

    return send


@pytest.fixture
def respond(faulty):
    faulty.script(default={"body": {"id": "r", "object": "response", "output": [], "model": "m"}})

    def send(given, **options):
        zlclient.shaped(openai.OpenAI()).responses.create(model="gpt-6.1-sol", input=given, **options)
        return faulty.requests[-1].body

    return send


@pytest.mark.parametrize("system", [DIRTY, [{"type": "text", "text": DIRTY, "cache_control": {"type": "ephemeral"}}]])
def test_everything_is_cleaned_that_chat_cleans(faulty, system):
    result = {"type": "tool_result", "tool_use_id": "t", "content": DIRTY}
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": "x\0"}}
    tool = {"name": "f", "description": "d\0", "input_schema": {"type": "object"}}
    body = shaped_messages(
        faulty,
        [
            {"role": "user", "content": DIRTY},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ],
        system=system,
        tools=[tool],
    )
    assert body["system"] == ("ab" if isinstance(system, str) else [{**system[0], "text": "ab"}])
    assert body["tools"][0]["description"] == "d"
    assert body["messages"][0]["content"] == "ab"
    assert body["messages"][1]["content"] == [{**call, "input": {"a": "x"}}]
    assert body["messages"][2]["content"] == [{**result, "content": "ab"}]


def test_an_empty_turn_is_left_out_and_the_rest_is_shaped(faulty):
    turns = [
        {"role": "user", "content": DIRTY},
        {"role": "assistant", "content": " "},
        {"role": "user", "content": DIRTY},
    ]
    body = shaped_messages(faulty, turns, shaping={"domain": "finance"})
    assert [turn["content"] for turn in body["messages"]] == ["【Financial data】ab", "ab"]


def test_a_batch(faulty):
    params = {"model": "claude-sonnet-5-5", "max_tokens": 9}
    requests = [
        {"custom_id": str(n), "params": {**params, "messages": [{"role": "user", "content": text}]}}
        for n, text in enumerate((DIRTY, "clean"))
    ]
    faulty.script(default={"body": {"id": "b", "type": "message_batch"}})
    own = anthropic.Anthropic(middleware=[zlclient.middleware()])
    own.messages.batches.create(requests=requests)
    sent = faulty.requests[0].body["requests"]
    assert [request["params"]["messages"][0]["content"] for request in sent] == ["ab", "clean"]
    assert [request["custom_id"] for request in sent] == ["0", "1"]
    own.messages.count_tokens(model="claude-sonnet-5-5", messages=[{"role": "user", "content": DIRTY}])
    assert faulty.requests[1].body["messages"][0]["content"] == "ab"


def test_chat_completions_in_full(chat):
    call = {"id": "t", "type": "function", "function": {"name": "f", "arguments": '{"a": "\ud800"}'}}
    messages = [
        {"role": "system", "content": DIRTY},
        {"role": "user", "name": "bob", "content": [{"type": "text", "text": DIRTY}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t", "content": f"{DIRTY}\ud83d"},
        {"role": "assistant", "content": DIRTY, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t", "content": [{"type": "text", "text": DIRTY}]},
        {"role": "assistant", "content": " ", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t", "content": "\u200b"},
    ]
    sent = chat(messages)["messages"]
    assert [list(message) for message in sent] == [list(message) for message in messages]
    assert [message["content"] for message in sent] == [
        "ab", [{"type": "text", "text": "ab"}], None, "ab\ufffd", "ab", [{"type": "text", "text": "ab"}], "", "",
    ]  # fmt: skip
    assert sent[2]["tool_calls"] == [{**call, "function": {"name": "f", "arguments": '{"a": "\ufffd"}'}}]


def test_a_tag_is_put_though_nothing_is_dirty(chat):
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}, {"role": "user", "content": "r"}]
    sent = chat(messages, shaping={"domain": "finance"})["messages"]
    assert [message["content"] for message in sent] == ["s", "【Financial data】q", "r"]


def test_responses_in_full(respond):
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"}
    reasoning = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"}
    given = [
        {"role": "developer", "content": DIRTY},
        {"role": "user", "content": [{"type": "input_text", "text": DIRTY}, image]},
        reasoning,
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": DIRTY},
        {"role": "assistant", "content": [{"type": "output_text", "text": DIRTY}]},
        {"role": "user", "content": "q"},
    ]
    body = respond(given, instructions=DIRTY)
    assert body["instructions"] == "ab"
    assert body["input"] == [
        {"role": "developer", "content": "ab"},
        {"role": "user", "content": [{"type": "input_text", "text": "ab"}, image]},
        reasoning,
        given[3],
        {"type": "function_call_output", "call_id": "c", "output": "ab"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "ab"}]},
        {"role": "user", "content": "q"},
    ]
    assert "instructions" not in respond("q", instructions="\u200b")


def test_sampling_on_the_responses_wire_follows_its_effort(faulty):
    faulty.script(default={"body": {"id": "r", "object": "response", "output": [], "model": "m"}})
    own = zlclient.shaped(openai.OpenAI())
    for effort in ("none", "high"):
        own.responses.create(model="gpt-5.5", input="q", temperature=0.2, reasoning={"effort": effort})
    assert ["temperature" in request.body for request in faulty.requests] == [True, False]


def test_off_is_off(chat):
    sent = chat([{"role": "user", "content": DIRTY}], shaping={"sanitize": "off"})["messages"]
    assert sent[0]["content"] == DIRTY


@pytest.mark.parametrize(
    "option", [{"domain": "bogus"}, {"sanitize": "bogus"}, {"anchors": ["bogus"]}, {"anchors": 5}, {"domain": 5}]
)
def test_a_wrong_option_fails_at_construction(option):
    [name] = option
    with pytest.raises(zlclient.InputError, match=name):
        zlclient.middleware(**option)
    with pytest.raises(zlclient.InputError, match=name):
        zlclient.shaped(openai.OpenAI(api_key="k"), **option)


def test_another_client_is_refused():
    with pytest.raises(zlclient.InputError, match="client"):
        zlclient.shaped(anthropic.Anthropic(api_key="k"))


@pytest.mark.parametrize("content", [[5], [{"text": "no type"}], [{"type": "tool_result", "content": [{}]}]])
def test_a_message_of_another_shape(faulty, content):
    with pytest.raises(zlclient.InputError, match=r"messages: .*unknown shape"):
        shaped_messages(faulty, [{"role": "user", "content": content}])
    assert not faulty.requests


def test_nothing_to_answer(faulty):
    with pytest.raises(zlclient.InputError, match="nothing to answer"):
        shaped_messages(faulty, [{"role": "user", "content": "\u200b"}])
