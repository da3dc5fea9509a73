"""Whatever a request holds, the answer is an answer, in the dialect of its API."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zlclient.serving import LocalServer, WireRequest
from zlclient.serving.fields import accepted_fields

SERVER = LocalServer(models=["m"])
WORDS = st.sampled_from(
    [
        "user",
        "assistant",
        "system",
        "tool",
        "text",
        "image",
        "document",
        "tool_use",
        "tool_result",
        "function",
        "auto",
        "message",
        "function_call",
        "function_call_output",
        "input_text",
        "json_schema",
        "enabled",
        "any",
        "",
        "c1",
        "object",
    ]
)
KEYS = st.sampled_from(
    [
        "type",
        "role",
        "content",
        "text",
        "name",
        "id",
        "input",
        "tool_use_id",
        "source",
        "function",
        "arguments",
        "call_id",
        "parameters",
        "input_schema",
        "format",
        "schema",
        "json_schema",
        "effort",
        "strict",
        "cache_control",
        "output",
        "$ref",
        "tool_calls",
        "tool_call_id",
        "budget_tokens",
        "properties",
        "required",
        "mode",
        "include_usage",
        "data",
        "ttl",
    ]
)
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-3, 3000), st.floats(-2, 3), WORDS, st.text(max_size=8))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=12,
)
GOOD: dict[str, dict[str, Any]] = {
    "messages": {"model": "m", "max_tokens": 20, "messages": [{"role": "user", "content": "what is it?"}]},
    "count_tokens": {"model": "m", "messages": [{"role": "user", "content": "what is it?"}]},
    "chat": {"model": "m", "messages": [{"role": "user", "content": "what is it?"}]},
    "responses": {"model": "m", "input": "what is it?"},
    "embeddings": {"model": "m", "input": "what is it?"},
    "batches": {"input_file_id": "f", "endpoint": "/v1/responses", "completion_window": "24h"},
}
PATHS = {
    "messages": "/v1/messages",
    "count_tokens": "/v1/messages/count_tokens",
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "embeddings": "/v1/embeddings",
    "batches": "/v1/batches",
}


def send(path: str, raw: bytes, version: str = "2023-06-01") -> None:
    headers = {"anthropic-version": version} if "messages" in path else {}
    response = SERVER.handle(WireRequest("POST", path, headers, raw))
    sent = b"".join(piece for piece in response.pieces() if isinstance(piece, bytes))
    assert response.status in (200, 400, 404)
    if response.status != 200:
        assert json.loads(sent)["error"]["message"]


@pytest.mark.parametrize("endpoint", GOOD)
@given(data=st.data())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_value_in_any_field(endpoint: str, data: st.DataObject):
    names = st.sampled_from(sorted(accepted_fields(endpoint)))
    body = GOOD[endpoint] | data.draw(st.dictionaries(names, VALUES, min_size=1, max_size=3))
    send(PATHS[endpoint], json.dumps(body).encode())


BLOCKS = st.lists(st.dictionaries(KEYS, VALUES, max_size=5), min_size=1, max_size=3)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "system", "tool"]),
            "content": st.one_of(st.text(max_size=9), BLOCKS),
        },
        optional={"tool_calls": VALUES, "tool_call_id": VALUES, "type": WORDS, "call_id": VALUES},
    ),
    min_size=1,
    max_size=4,
)
TOOLS = st.lists(
    st.dictionaries(KEYS, st.one_of(VALUES, st.just("look"), st.just({"type": "object"})), min_size=2, max_size=6),
    max_size=2,
)


@given(messages=MESSAGES, tools=TOOLS, stream=st.booleans())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_conversation(messages: list[Any], tools: list[Any], stream: bool):
    common: dict[str, Any] = {"model": "m", "tools": tools, "stream": stream}
    send("/v1/messages", json.dumps(common | {"max_tokens": 9, "messages": messages}).encode())
    send("/v1/chat/completions", json.dumps(common | {"messages": messages}).encode())
    send("/v1/responses", json.dumps(common | {"input": messages}).encode())


@given(raw=st.binary(max_size=60), path=st.sampled_from(sorted(PATHS.values())))
@settings(max_examples=200, deadline=None)
def test_any_bytes(raw: bytes, path: str):
    send(path, raw)


@pytest.mark.parametrize(
    "raw",
    [b"NaN", b'{"model": NaN}', b'{"a": 1e999}', b'"\\ud800"', b'{"model": "m", "input": "\\ud800 who?"}', b"{" * 5000],
)
@pytest.mark.parametrize("path", sorted(PATHS.values()))
def test_odd_json(raw: bytes, path: str):
    send(path, raw)


@given(body=VALUES, method=st.sampled_from(["GET", "POST", "DELETE", "PATCH"]), tail=st.text(max_size=12))
@settings(max_examples=300, deadline=None)
def test_any_path(body: Any, method: str, tail: str):
    for path in (f"/v1/{tail}", f"/v1/files/{tail}", f"/v1/messages/batches/{tail}", f"/v1/models/{tail}", tail):
        for headers in ({}, {"anthropic-version": "2026-10-21", "content-type": "multipart/form-data; boundary=x"}):
            response = SERVER.handle(WireRequest(method, path, headers, json.dumps(body).encode()))
            assert 200 <= response.status < 500


@given(requests=VALUES)
@settings(max_examples=200, deadline=None)
def test_any_batch(requests: Any):
    send("/v1/messages/batches", json.dumps({"requests": requests}).encode())
    send("/v1/messages/batches", json.dumps({"requests": [{"custom_id": "a", "params": requests}]}).encode())
