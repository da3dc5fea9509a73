"""A request on the Anthropic wire: what OpenAI's shapes say beyond its own is carried or noted."""

import pytest

from zlclient import Client, Settings

MODEL = "anthropic:claude-sonnet-5-5"


@pytest.fixture(scope="module")
def client():
    return Client(settings=Settings.load(folder="/", env={}))


def lost(prepared):
    return {note.rule: note.before for note in prepared.adjustments if "no twin" in note.reason}


@pytest.mark.parametrize("nested", [True, False])
def test_a_function_keeps_its_strictness(client, nested):
    function = {"name": "f", "strict": True, "parameters": {"type": "object"}}
    tool = {"type": "function", "function": function} if nested else {"type": "function", **function}
    prepared = client.prepare("q", model=MODEL, tools=[tool])
    assert prepared.body["tools"] == [{"name": "f", "input_schema": {"type": "object"}, "strict": True}]
    assert lost(prepared) == {}


def test_reasoning_of_another_wire_is_left_out_and_noted(client):
    thought = {"type": "thinking", "thinking": "T"}
    turns = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [thought, {"type": "text", "text": "a"}]},
        {"role": "assistant", "content": [thought]},
        {"role": "user", "content": "more"},
    ]
    prepared = client.prepare(turns, model=MODEL)
    assert lost(prepared) == {"thinking": "messages[1].content[0] and 1 more"}
    assert [message["content"] for message in prepared.body["messages"]] == [
        "q",
        [{"type": "text", "text": "a"}],
        "more",
    ]
    turns[1]["content"][0] = signed = {**thought, "signature": "s"}
    assert client.prepare(turns, model=MODEL).body["messages"][1]["content"][0] == signed


def test_an_image_turned_from_openai_notes_its_detail(client):
    image = {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}}
    prepared = client.prepare([{"role": "user", "content": [image]}], model=MODEL)
    assert prepared.body["messages"][0]["content"] == [
        {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}
    ]
    assert lost(prepared) == {"detail": "messages[0].content[0]"}
