"""The official SDKs, sync and async, in process and over a socket, do on the local server what they do on the real ones."""

import json
from typing import Any

import anthropic
import pytest
from pydantic import BaseModel

SONNET, GPT = "claude-sonnet-5-5", "gpt-4o"
HELLO: Any = [{"role": "user", "content": "hello there"}]
WEATHER: Any = [{"role": "user", "content": "what is the weather in Paris"}]
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
ANTHROPIC_TOOL: Any = {"name": "get_weather", "description": "weather", "input_schema": CITY}
CHAT_TOOL: Any = {"type": "function", "function": {"name": "get_weather", "parameters": CITY, "strict": True}}
RESPONSES_TOOL: Any = {"type": "function", "name": "get_weather", "parameters": CITY, "strict": True}


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]
    parent: "Person | None" = None


async def test_anthropic_create_and_stream(either):
    whole = either.anthropic.messages.create(model=SONNET, max_tokens=64, messages=HELLO)
    assert whole.content[0].text.startswith("Hello!")
    assert whole.usage.input_tokens > 0
    with either.anthropic.messages.stream(model=SONNET, max_tokens=64, messages=HELLO) as stream:
        assert "".join(stream.text_stream) == whole.content[0].text
        usage = stream.get_final_message().usage
    assert (usage.input_tokens, usage.output_tokens) == (whole.usage.input_tokens, whole.usage.output_tokens)
    async with either.async_anthropic.messages.stream(model=SONNET, max_tokens=64, messages=HELLO) as stream:
        assert await stream.get_final_text() == whole.content[0].text


async def test_anthropic_tools(either):
    asked: Any = {"model": SONNET, "max_tokens": 64, "tools": [ANTHROPIC_TOOL]}
    message = either.anthropic.messages.create(messages=WEATHER, **asked)
    (call,) = message.content
    assert (call.type, call.name, call.input, message.stop_reason) == (
        "tool_use",
        "get_weather",
        {"city": "Paris"},
        "tool_use",
    )
    async with either.async_anthropic.messages.stream(messages=WEATHER, **asked) as stream:
        assert (await stream.get_final_message()).content[0].input == {"city": "Paris"}
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "21C"}
    then = [*WEATHER, {"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]
    assert either.anthropic.messages.create(messages=then, **asked).content[0].text == "21C"


@pytest.mark.parametrize(
    ("choice", "calls"),
    [
        ({"type": "none"}, False),
        ({"type": "any"}, True),
        ({"type": "tool", "name": "get_weather"}, True),
        ({"type": "auto"}, False),
    ],
)
def test_tool_choice_is_honoured(clients, choice: Any, calls: bool):
    message = clients.anthropic.messages.create(
        model=SONNET, max_tokens=64, messages=HELLO, tools=[ANTHROPIC_TOOL], tool_choice=choice
    )
    assert (message.content[0].type == "tool_use") == calls


async def test_structured_output(either):
    asked: Any = "extract the person: Ada Lovelace is 36 years old"
    messages: Any = [{"role": "user", "content": asked}]
    theirs = either.anthropic.messages.parse(model=SONNET, max_tokens=200, output_format=Person, messages=messages)
    assert (theirs.parsed_output.name, theirs.parsed_output.age) == ("Ada Lovelace", 36)
    chat = await either.async_openai.chat.completions.parse(model=GPT, response_format=Person, messages=messages)
    assert chat.choices[0].message.parsed.name == "Ada Lovelace"
    made = either.openai.responses.parse(model=GPT, input=asked, text_format=Person)
    assert made.output_parsed.age == 36


async def test_openai_chat(either):
    whole = either.openai.chat.completions.create(model=GPT, messages=HELLO)
    text = whole.choices[0].message.content
    stream = await either.async_openai.chat.completions.create(
        model=GPT, messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == text
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage
    with either.openai.chat.completions.stream(model=GPT, tools=[CHAT_TOOL], messages=WEATHER) as events:
        for _ in events:
            pass
        final = events.get_final_completion()
    call = final.choices[0].message.tool_calls[0]
    assert json.loads(call.function.arguments) == {"city": "Paris"}
    result = {"role": "tool", "tool_call_id": call.id, "content": "21C"}
    then = [*WEATHER, final.choices[0].message.to_dict(), result]
    answered = either.openai.chat.completions.create(model=GPT, tools=[CHAT_TOOL], messages=then)
    assert answered.choices[0].message.content == "21C"


async def test_openai_responses(either):
    whole = either.openai.responses.create(model=GPT, input="hello there")
    async with either.async_openai.responses.stream(model=GPT, input="hello there") as stream:
        kinds = [event.type async for event in stream]
        assert (await stream.get_final_response()).output_text == whole.output_text
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    call = either.openai.responses.create(model=GPT, input="what is the weather in Paris", tools=[RESPONSES_TOOL])
    assert json.loads(call.output[0].arguments) == {"city": "Paris"}
    result: Any = {"type": "function_call_output", "call_id": call.output[0].call_id, "output": "21C"}
    then = either.openai.responses.create(
        model=GPT, input=[result], previous_response_id=call.id, tools=[RESPONSES_TOOL]
    )
    assert then.output_text == "21C"
    with either.openai.responses.stream(model=GPT, input="weather in Oslo?", tools=[RESPONSES_TOOL]) as stream:
        final = stream.get_final_response()
    assert json.loads(final.output[0].arguments) == {"city": "Oslo"}


async def test_the_smaller_endpoints(either):
    assert either.anthropic.messages.count_tokens(model=SONNET, messages=HELLO).input_tokens > 0
    assert either.openai.responses.input_tokens.count(model=GPT, input="hello").input_tokens > 0
    ids = [model.id async for model in either.async_anthropic.models.list(limit=3)]
    assert len(ids) == len(set(ids)) > 3
    retired = either.anthropic.models.list(lifecycle=["active"])
    assert {model.lifecycle for model in retired} == {"active"}
    assert either.anthropic.models.retrieve(SONNET).capabilities.structured_outputs.supported
    assert GPT in [model.id for model in either.openai.models.list()]
    plain = either.openai.embeddings.create(model="text-embedding-3-small", input="hi", encoding_format="float")
    packed = await either.async_openai.embeddings.create(model="text-embedding-3-small", input="hi")
    assert packed.data[0].embedding == pytest.approx(plain.data[0].embedding, abs=1e-6)


def test_anthropic_batches(either):
    params: Any = {"model": SONNET, "max_tokens": 64, "messages": HELLO}
    batch = either.anthropic.messages.batches.create(requests=[{"custom_id": "a", "params": params}])
    while either.anthropic.messages.batches.retrieve(batch.id).processing_status != "ended":
        pass
    (result,) = either.anthropic.messages.batches.results(batch.id)
    assert (result.custom_id, result.result.type) == ("a", "succeeded")


def test_openai_batches(either):
    body = {"model": GPT, "messages": HELLO}
    line = json.dumps({"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": body}).encode()
    file = either.openai.files.create(file=("in.jsonl", line), purpose="batch")
    batch = either.openai.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
    )
    while (batch := either.openai.batches.retrieve(batch.id)).status != "completed":
        pass
    answer = json.loads(either.openai.files.content(batch.output_file_id).text)
    assert answer["response"]["body"]["choices"][0]["message"]["role"] == "assistant"


def test_thinking_is_streamed_where_it_is_on(clients):
    with clients.anthropic.messages.stream(
        model=SONNET, max_tokens=64, messages=HELLO, thinking={"type": "adaptive"}
    ) as stream:
        message = stream.get_final_message()
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.content[0].signature


def test_equal_requests_get_equal_answers(clients):
    asked: Any = {"model": SONNET, "max_tokens": 64, "messages": WEATHER, "tools": [ANTHROPIC_TOOL]}
    one, other = (clients.anthropic.messages.create(**asked) for _ in range(2))
    assert one.content[0].input == other.content[0].input
    assert one.id != other.id


def test_an_unsatisfiable_schema_is_the_callers_error(clients):
    tool: Any = {
        "name": "weather",
        "input_schema": {"type": "object", "properties": {"a": {"enum": []}}, "required": ["a"]},
    }
    with pytest.raises(anthropic.BadRequestError, match="cannot be satisfied"):
        clients.anthropic.messages.create(model=SONNET, max_tokens=64, messages=WEATHER, tools=[tool])
