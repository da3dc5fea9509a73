"""A request on the OpenAI wire: what has a twin is carried, the rest is noted or refused, nothing vanishes."""

import json
import re

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, create_model

from zlclient import BadRequest, Client, InputError, Settings

MODEL = "openai:gpt-6.1-sol"
PIXEL = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


@pytest.fixture(scope="module")
def client():
    return Client(settings=Settings.load(folder="/", env={}))


def lost(prepared):
    return {note.rule: note.before for note in prepared.adjustments if "no twin" in note.reason}


def turns(*blocks):
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"市": 1}}]}
    return [{"role": "user", "content": "q"}, call, {"role": "user", "content": list(blocks)}]


def result(content, **more):
    return {"type": "tool_result", "tool_use_id": "t", "content": content, **more}


def test_a_tool_result_carries_its_texts_and_its_failure(client):
    sent = client.prepare(turns(result("no such city", is_error=True)), model=MODEL).body["messages"]
    assert json.loads(sent[1]["tool_calls"][0]["function"]["arguments"]) == {"市": 1}
    assert sent[2] == {"role": "tool", "tool_call_id": "t", "content": "[tool error] no such city"}
    parts = [
        {"type": "text", "text": "a"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "b"}},
    ]
    sent = client.prepare(turns(result(parts, is_error=True)), model=MODEL).body["messages"][2]["content"]
    assert [part["text"] for part in sent] == ["[tool error]", "a", "b"]
    sent = client.prepare(turns(result("fine", is_error=False)), model=MODEL).body["messages"][2]["content"]
    assert sent == "fine"


def test_an_image_in_a_tool_result_is_refused(client):
    with pytest.raises(InputError, match=r"messages\[2\]\.content\[0\]\.content\[1\]: .*no image"):
        client.prepare(turns(result([{"type": "text", "text": "a"}, PIXEL])), model=MODEL)
    sent = client.prepare([{"role": "user", "content": [PIXEL]}], model=MODEL).body["messages"][0]["content"]
    assert sent == [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]


def test_what_only_anthropic_has_is_noted(client):
    mark = {"cache_control": {"type": "ephemeral"}}
    thought = {"type": "thinking", "thinking": "T", "signature": "s"}
    said = {"type": "text", "text": "a", "citations": [{"cited_text": "x"}]}
    report = {"type": "document", "title": "R", "source": {"type": "text", "media_type": "text/plain", "data": "d"}}
    prepared = client.prepare(
        [
            {"role": "user", "content": [{"type": "text", "text": "q", **mark}, report]},
            {"role": "assistant", "content": [thought, said]},
            {"role": "user", "content": "more"},
        ],
        model=MODEL,
        system=[{"type": "text", "text": "S", **mark}],
        tools=[{"name": "f", "input_schema": {"type": "object"}, "strict": True, **mark}],
    )
    assert lost(prepared) == {
        "cache_control": "system[0] and 2 more",
        "thinking": "messages[1].content[0]",
        "citations": "messages[1].content[1]",
        "title": "messages[0].content[1]",
    }
    assert prepared.body["tools"][0]["function"]["strict"] is True
    assert prepared.body["messages"][2] == {"role": "assistant", "content": "a"}


def test_nothing_is_noted_where_nothing_is_lost(client):
    function = {"type": "function", "function": {"name": "f", "strict": True, "parameters": {"type": "object"}}}
    prepared = client.prepare(turns(result("r"), {"type": "text", "text": "q"}), model=MODEL, tools=[function])
    assert lost(prepared) == {}
    assert prepared.body["tools"] == [function]


def test_one_call_at_a_time_has_a_twin(client):
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    body = client.prepare("q", model=MODEL, tools=tools, tool_choice=choice).body
    assert (body["tool_choice"], body["parallel_tool_calls"]) == ("auto", False)
    assert "parallel_tool_calls" not in client.prepare("q", model=MODEL, tools=tools, tool_choice="auto").body


@pytest.mark.parametrize("model", [MODEL, "anthropic:claude-sonnet-5-5"])
@pytest.mark.parametrize("key", ["stream", "stream_options", "messages", "model", "max_completion_tokens"])
def test_extra_never_overrides_nor_is_dropped(client, model, key):
    if model != MODEL and key == "max_completion_tokens":
        key = "max_tokens"
    with pytest.raises(InputError, match=f"extra.{key}"):
        client.prepare("q", model=model, extra={key: 1})
    assert client.prepare("q", model=model, extra={"seed": 1}).body["seed"] == 1


@pytest.mark.parametrize("model", [MODEL, "anthropic:claude-sonnet-5-5"])
def test_header_names_are_lower_case(client, model):
    names = {
        "Authorization": "Bearer mine",
        "Anthropic-Version": "2023-06-01",
        "X-A": "1",
        "Content-Type": "application/json",
    }
    headers = client.prepare("q", model=model, extra_headers=names).headers
    assert sorted(headers) == ["anthropic-version", "authorization", "content-type", "x-a"]
    assert (headers["authorization"], headers["anthropic-version"]) == ("Bearer mine", "2023-06-01")


@pytest.mark.usefixtures("faulty")
def test_a_given_header_leaves_once():
    sent = []

    def answer(request):
        sent.append([name.lower() for name, _ in request.headers.raw])
        return httpx2.Response(400, json={})

    with Client(http_client=httpx2.Client(transport=httpx2.MockTransport(answer))) as client:
        for model, header in ((MODEL, "Authorization"), ("anthropic:claude-sonnet-5-5", "Anthropic-Version")):
            with pytest.raises(BadRequest):
                client.chat("q", model=model, extra_headers={header: "mine"})
            assert sent.pop().count(header.lower().encode()) == 1


@given(st.text(min_size=1, max_size=80).filter(lambda name: "\0" not in name))
def test_any_class_name_becomes_a_name_the_api_takes(class_name):
    model = create_model(class_name, a=(int, 0))
    with Client(settings=Settings.load(folder="/", env={})) as client:
        name = client.prepare("q", model=MODEL, output=model).body["response_format"]["json_schema"]["name"]
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)


def test_a_plain_class_name_is_kept(client):
    class Order_1(BaseModel):
        a: int

    assert client.prepare("q", model=MODEL, output=Order_1).body["response_format"]["json_schema"]["name"] == "Order_1"
