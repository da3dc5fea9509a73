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
