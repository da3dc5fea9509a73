"""Every text of a request is cleaned once, wherever it stands; what is no text keeps its bytes."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlclient import Client, InputError, Settings
from zlclient.request import Request
from zlclient.shaping.sanitise import sanitize
from zlclient.shaping.shape import shape

SETTINGS = Settings.load(folder="/", env={})
DIRTY = "a\u200bb\x00\r\nc"
CLEAN = "ab\nc"


def shaped(messages, **options):
    return shape(Request.of(messages, **options), SETTINGS)


def test_every_kind_of_text():
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": DIRTY}, "title": "t"}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": DIRTY}]}
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {"k": ["a\x00b", 1, None]}}
    messages = [
        {"role": "user", "content": [document, {"type": "text", "text": DIRTY}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": DIRTY, "signature": "s"}, use]},
        {"role": "user", "content": [result, {**result, "content": "a\u200b\x00b"}]},
    ]
    before = copy.deepcopy(messages)
    found, notes = shaped(messages, system=[{"type": "text", "text": DIRTY, "cache_control": {"type": "ephemeral"}}])
    first, second, third = (message["content"] for message in found.messages)
    assert first[0]["source"]["data"] == first[1]["text"] == CLEAN
    assert second[0] == before[1]["content"][0]  # signed by the provider: untouched
    assert second[1]["input"] == {"k": ["ab", 1, None]}
    assert third[0]["content"][0]["text"] == CLEAN
    assert third[1]["content"] == "ab"
    assert found.system[0]["text"] == CLEAN
    assert messages == before
    assert {note.stage for note in notes} == {"sanitise"}


def test_a_clean_request_keeps_its_very_objects():
    messages = [{"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image", "source": {"x": 1}}]}]
    request = Request.of(messages, system="s", tools=[{"name": "f", "input_schema": {}}])
    found, notes = shape(request, SETTINGS)
    assert (found.messages, found.system, found.tools) == (request.messages, request.system, request.tools)
    assert all(new is old for new, old in zip(found.messages, request.messages, strict=True))
    assert notes == ()


def test_tool_schemas_keep_their_bytes_controls_aside():
    tool = {"name": "f", "description": "a\u200bb  \n\n\n c", "input_schema": {"const": "x\ud800\x00"}}
    found, _ = shaped("hi", tools=[tool])
    assert found.tools[0]["description"] == tool["description"]
    assert found.tools[0]["input_schema"] == {"const": "x\ufffd"}


@given(st.text(min_size=1))
def test_what_is_sent_is_the_sanitised_text(text):
    clean = sanitize(text).text
    with Client(settings=SETTINGS) as client:
        if clean.strip():
            prepared = client.prepare(text, provider="anthropic")
            assert json.loads(prepared.content)["messages"][0]["content"] == clean
        else:
            with pytest.raises(InputError):
                client.prepare(text, provider="anthropic")


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.text(), x), max_leaves=6
    )
)
def test_anything_in_tools_and_extra_is_sent_or_refused_plainly(value):
    with Client(settings=SETTINGS) as client:
        try:
            prepared = client.prepare("hi", provider="anthropic", tools=[{"name": "f", "x": value}], extra={"y": value})
        except InputError:
            return
        prepared.content.decode("utf-8")


def test_a_lone_surrogate_that_was_kept_is_an_error_before_anything_is_sent():
    with Client(settings=SETTINGS) as client:
        with pytest.raises(InputError, match="surrogate"):
            client.prepare("a\ud83d", provider="anthropic", sanitize="off")
        with pytest.raises(InputError, match="JSON"):
            client.prepare("a", provider="anthropic", extra={"x": object()})
