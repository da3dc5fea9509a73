import json
import math
from collections.abc import Iterable
from datetime import date
from typing import Any

import pytest

from zlclient.serving import LocalServer, WireRequest, WireResponse
from zlclient.serving.embeddings import embed
from zlclient.serving.responders.base import Ask, Event, Responder, Text, ToolCall

HELLO = [{"role": "user", "content": "hello"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}


class Echo(Responder):
    name = "echo"

    def __init__(self, *events: Event) -> None:
        self.events = events or (Text("ok"),)
        self.asks: list[Ask] = []

    def respond(self, ask: Ask) -> Iterable[Event]:
        self.asks.append(ask)
        return self.events


def send(server: LocalServer, method: str, path: str, body: Any = None) -> WireResponse:
    raw = json.dumps(body).encode() if body is not None else b""
    return server.handle(WireRequest(method, path, {"authorization": "Bearer k"}, raw))


def chat(server: LocalServer | None = None, **body: Any) -> WireResponse:
    body = {"model": "gpt-4o", "messages": HELLO} | body
    body = {name: value for name, value in body.items() if value is not ...}
    return send(server or LocalServer([Echo()]), "POST", "/v1/chat/completions", body)


def respond(server: LocalServer | None = None, **body: Any) -> WireResponse:
    body = {"model": "gpt-4o", "input": "hello"} | body
    body = {name: value for name, value in body.items() if value is not ...}
    return send(server or LocalServer([Echo()]), "POST", "/v1/responses", body)


def data(response: WireResponse) -> Any:
    return json.loads(b"".join(piece for piece in response.pieces() if isinstance(piece, bytes)))


def tool(**function: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "look", **function}}


def schema(**rest: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "s", **rest}}


# what is sent (… leaves a field out), the parameter that is named, the code, and words of the message
CHAT: list[tuple[dict[str, Any], str | None, str | None, str]] = [
    ({"model": ...}, "model", "missing_required_parameter", "model"),
    ({"messages": ...}, "messages", "missing_required_parameter", "Missing required parameter: 'messages'."),
    ({"messages": []}, "messages", "empty_array", "empty array"),
    ({"messages": "x"}, "messages", "invalid_type", "array"),
    ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role", "invalid_value", "'robot'"),
    ({"messages": [{"role": "user", "content": None}]}, "messages[0].content", None, "content"),
    ({"messages": [{"role": "tool", "tool_call_id": "c1", "content": "x"}]}, "messages.[0].role", None, "must be a response to"),
    ({"messages": [*HELLO, {"role": "assistant", "tool_calls": [CALL]}]}, "messages.[2].role", None, "must be followed by tool"),
    ({"flavour": "mint"}, "flavour", "unknown_parameter", "Unknown parameter: 'flavour'."),
    ({"max_tokens": 0}, "max_tokens", "integer_below_min_value", "minimum value"),
    ({"max_tokens": 99_999}, "max_tokens", "invalid_value", "at most 16384"),
    ({"max_tokens": "9"}, "max_tokens", "invalid_type", "integer"),
    ({"max_tokens": 9, "model": "gpt-5"}, "max_tokens", "unsupported_parameter", "Use 'max_completion_tokens' instead"),
    ({"temperature": 0.3, "model": "gpt-5"}, "temperature", "unsupported_value", "does not support 0.3"),
    ({"temperature": 0.3, "model": "gpt-5.5"}, "temperature", "unsupported_value", "does not support 0.3"),
    ({"temperature": 0.3, "model": "gpt-5.4", "reasoning_effort": "low"}, "temperature", "unsupported_value", "temperature"),
    ({"top_p": 0.3, "model": "o3"}, "top_p", "unsupported_parameter", "'top_p' is not supported"),
    ({"temperature": 3}, "temperature", "decimal_above_max_value", "between 0 and 2"),
    ({"temperature": "hot"}, "temperature", "invalid_type", "decimal"),
    ({"reasoning_effort": "low"}, "reasoning_effort", "unsupported_parameter", "not supported with this model"),
    ({"reasoning_effort": "huge", "model": "gpt-5"}, "reasoning_effort", "unsupported_value", "Supported values are"),
    ({"n": 0}, "n", "invalid_value", "'n'"),
    ({"tools": [tool(name="a b")]}, "tools[0].function.name", "invalid_value", "pattern"),
    ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name", "missing_required_parameter", "name"),
    ({"tools": [{"type": "robot"}]}, "tools[0].type", "invalid_value", "robot"),
    ({"tools": [tool(strict=True, parameters={"type": "object"})]}, "tools[0].function.parameters", "invalid_function_parameters", "additionalProperties"),
    ({"tool_choice": "maybe"}, "tool_choice", "invalid_value", "maybe"),
    ({"response_format": schema()}, "response_format.schema", "missing_required_parameter", "schema"),
    ({"response_format": {"type": "yaml"}}, "response_format", "invalid_value", "yaml"),
    ({"response_format": {"type": "json_object"}}, "messages", None, "must contain the word 'json'"),
    ({"response_format": schema(strict=True, schema=SCHEMA | {"required": []})}, "response_format.json_schema", "invalid_json_schema", "Missing 'a'"),
    ({"response_format": schema(strict=True, schema={"$defs": {"x": {"type": "object"}}})}, "response_format.json_schema", "invalid_json_schema", "'$defs', 'x'"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "param", "code", "words"), CHAT)
def test_chat_rejections(sent: dict[str, Any], param: str | None, code: str | None, words: str):
    response = chat(**sent)
    error = data(response)["error"]
    assert (response.status, error["type"], error["param"], error["code"]) == (
        400,
        "invalid_request_error",
        param,
        code,
    )
    assert words in error["message"]


@pytest.mark.parametrize("name", ["nope", "llama-3"])
def test_unknown_models(name: str):
    response = chat(model=name)
    assert (response.status, data(response)["error"]["code"]) == (404, "model_not_found")
    assert chat(LocalServer([Echo()], models=[name]), model=name, temperature=0.2, max_tokens=9).status == 200


def test_retirement_can_be_tried_before_it_happens():
    assert chat(LocalServer([Echo()], today=date(2027, 1, 14))).status == 200
    assert chat(LocalServer([Echo()], today=date(2027, 1, 15))).status == 404
    assert chat(model="gpt-9").status == 200
    assert chat(LocalServer([Echo()], strict=True), model="gpt-9").status == 404


@pytest.mark.parametrize(
    "sent",
    [
        {"temperature": 0.3},
        {"temperature": 1, "model": "gpt-5"},
        {"temperature": 0.3, "model": "gpt-5.4"},
        {"temperature": 0.3, "model": "gpt-5.5", "reasoning_effort": "none"},
        {"max_completion_tokens": 9, "model": "gpt-5"},
        {"response_format": {"type": "json_object"}, "messages": [{"role": "user", "content": "as JSON"}]},
        {"response_format": schema(strict=True, schema=SCHEMA)},
        {"tools": [tool(), {"type": "custom", "custom": {"name": "x"}}]},
        {"messages": [*HELLO, {"role": "assistant", "content": "so"}]},
    ],
)
def test_what_is_accepted(sent: dict[str, Any]):
    assert chat(**sent).status == 200, data(chat(**sent))


def test_everything_a_chat_ask_holds():
    echo = Echo()
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "developer", "content": [{"type": "text", "text": "and kind"}]},
        {"role": "user", "content": [{"type": "text", "text": "q"}, {"type": "image_url", "image_url": {"url": "u"}}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL, CALL | {"id": "c2"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "21"},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "22"}]},
    ]
    chat(
        LocalServer([echo]),
        messages=messages,
        tools=[tool(description="d", parameters=SCHEMA)],
        tool_choice={"type": "function", "function": {"name": "look"}},
        response_format=schema(schema=SCHEMA),
        max_completion_tokens=50,
        stop="END",
        seed=7,
        temperature=0.4,
        top_p=0.9,
    )
    ask = echo.asks[0]
    assert (ask.wire, ask.system, ask.turn, ask.question) == ("chat", "be brief\n\nand kind", 1, "q")
    assert (ask.max_tokens, ask.stop, ask.seed, ask.temperature, ask.top_p) == (50, ("END",), 7, 0.4, 0.9)
    assert (ask.tools[0].schema, ask.tools[0].description) == (SCHEMA, "d")
    assert (ask.tool_choice.mode, ask.tool_choice.name, ask.output_schema) == ("tool", "look", SCHEMA)
    assert ask.turns[1].blocks[0]["input"] == {"at": 1}
    assert [block["tool_use_id"] for block in ask.tool_results] == ["c1", "c2"]


def test_limits_stops_and_choices():
    server = LocalServer([Echo(Text("one two three"))])
    cut = data(chat(server, max_tokens=2, n=2))
    assert [(c["message"]["content"], c["finish_reason"]) for c in cut["choices"]] == [("one two", "length")] * 2
    assert data(chat(server, stop=[" t"]))["choices"][0]["message"]["content"] == "one"
    called = data(chat(LocalServer([Echo(ToolCall("look", {"a": 1}))])))["choices"][0]
    assert (called["finish_reason"], called["message"]["content"]) == ("tool_calls", None)


def test_a_long_prefix_is_cached_in_steps():
    server = LocalServer([Echo()])
    long = [{"role": "system", "content": "word " * 2000}, *HELLO]
    assert data(chat(server, messages=long))["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    again = data(chat(server, messages=[*long[:1], {"role": "user", "content": "other"}]))["usage"]
    assert again["prompt_tokens_details"]["cached_tokens"] % 128 == 0
    assert 1500 < again["prompt_tokens_details"]["cached_tokens"] < again["prompt_tokens"]


RESPONSES: list[tuple[dict[str, Any], str | None, str | None]] = [
    ({"input": ...}, "input", "missing_required_parameter"),
    ({"input": 3}, "input", "invalid_type"),
    ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role", "invalid_value"),
    ({"input": [{"role": "user"}]}, "input[0].content", "missing_required_parameter"),
    ({"input": [{"type": "function_call_output", "call_id": "x", "output": "1"}]}, "input", None),
    ({"messages": HELLO}, "messages", "unknown_parameter"),
    ({"max_output_tokens": 15}, "max_output_tokens", "integer_below_min_value"),
    ({"temperature": 0.3, "model": "gpt-5"}, "temperature", "unsupported_value"),
    ({"reasoning": {"effort": "huge"}, "model": "gpt-5"}, "reasoning.effort", "unsupported_value"),
    ({"previous_response_id": "resp_x"}, "previous_response_id", "previous_response_not_found"),
    ({"conversation": "conv_1"}, "conversation", "invalid_value"),
    ({"text": {"format": {"type": "json_schema", "name": "s"}}}, "text.format.schema", "missing_required_parameter"),
    ({"tools": [{"type": "function", "name": "x", "strict": True, "parameters": {"type": "object"}}]}, "tools[0].parameters", "invalid_function_parameters"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "param", "code"), RESPONSES)
def test_responses_rejections(sent: dict[str, Any], param: str | None, code: str | None):
    response = respond(**sent)
    error = data(response)["error"]
    assert (response.status, error["type"], error["param"], error["code"]) == (
        400,
        "invalid_request_error",
        param,
        code,
    )


def test_everything_a_responses_ask_holds():
    echo = Echo()
    items = [
        {"role": "developer", "content": "and kind"},
        {"role": "user", "content": [{"type": "input_text", "text": "q"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look"}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": 1}'},
        {"type": "function_call", "call_id": "c2", "name": "look", "arguments": "broken"},
        {"type": "function_call_output", "call_id": "c1", "output": "21"},
        {"type": "function_call_output", "call_id": "c2", "output": "22"},
    ]
    respond(LocalServer([echo]), input=items, instructions="be brief", max_output_tokens=50)
    ask = echo.asks[0]
    assert (ask.wire, ask.system, ask.turn, ask.question) == ("responses", "be brief\n\nand kind", 1, "q")
    assert [block["type"] for block in ask.turns[1].blocks] == ["text", "tool_use", "tool_use"]
    assert ask.turns[1].blocks[2]["input"] == {"arguments": "broken"}
    assert [block["tool_use_id"] for block in ask.tool_results] == ["c1", "c2"]


def test_a_response_is_stored_continued_and_deleted():
    echo = Echo(Text("I look"), ToolCall("look", {"at": 1}, id="c1"))
    server = LocalServer([echo])
    first = data(respond(server, input="q"))
    path = f"/v1/responses/{first['id']}"
    assert data(send(server, "GET", path)) == first
    result = {"type": "function_call_output", "call_id": "c1", "output": "21"}
    respond(server, input=[result], previous_response_id=first["id"])
    ask = echo.asks[-1]
    assert [turn.role for turn in ask.turns] == ["user", "assistant", "user"]
    assert (ask.question, ask.turn, ask.turns[1].blocks[1]["id"]) == ("q", 1, "c1")
    assert data(send(server, "DELETE", path))["deleted"] is True
    assert send(server, "GET", path).status == 404
    unstored = data(respond(server, store=False))
    assert send(server, "GET", f"/v1/responses/{unstored['id']}").status == 404


def test_a_cut_response_is_incomplete():
    made = data(respond(LocalServer([Echo(Text("word " * 50))]), max_output_tokens=16))
    assert (made["status"], made["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert made["output"][0]["status"] == "incomplete"


def test_embeddings_are_unit_vectors_and_near_for_near_texts():
    def close(one: str, other: str) -> float:
        return sum(a * b for a, b in zip(embed(one, 256), embed(other, 256), strict=True))

    assert math.isclose(close("a cat sat", "a cat sat"), 1.0)
    assert (
        close("the cat sat on the mat", "a cat sat on a mat")
        > close("the cat sat on the mat", "quarterly revenue") + 0.3
    )
    assert close("特斯拉交付量", "特斯拉的交付量") > close("特斯拉交付量", "天气很好")
    assert math.isclose(close("", ""), 1.0)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"input": "x"}, 200),
        ({"input": ["x", "y"], "dimensions": 8}, 200),
        ({"input": [1, 2, 3]}, 200),
        ({"input": [[1, 2], [3]]}, 200),
        ({"input": ""}, 400),
        ({"input": []}, 400),
        ({"input": {"a": 1}}, 400),
        ({}, 400),
        ({"input": "x", "dimensions": 0}, 400),
        ({"input": "x", "colour": "red"}, 400),
    ],
)
def test_embedding_requests(sent: dict[str, Any], status: int):
    body = {"model": "text-embedding-3-small"} | sent
    assert send(LocalServer(), "POST", "/v1/embeddings", body).status == status


def upload(server: LocalServer, lines: bytes) -> str:
    form = (
        b'--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--b\r\nContent-Disposition: form-data; '
    )
    form += b'name="file"; filename="in.jsonl"\r\nContent-Type: application/x\r\n\r\n' + lines + b"\r\n--b--\r\n"
    headers = {"content-type": 'multipart/form-data; boundary="b"'}
    return data(server.handle(WireRequest("POST", "/v1/files", headers, form)))["id"]


def line(custom_id: str, **body: Any) -> bytes:
    request = {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions"}
    return json.dumps({**request, "body": {"model": "gpt-4o", "messages": HELLO} | body}).encode() + b"\n"


def test_a_batch_goes_its_way():
    server = LocalServer([Echo()])
    file = upload(server, line("a") + line("b", stream=True) + line("c", temperature=9))
    asked = {
        "input_file_id": file,
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
        "metadata": {"k": "v"},
    }
    made = data(send(server, "POST", "/v1/batches", asked))
    path = f"/v1/batches/{made['id']}"
    assert made["status"] == "validating"
    assert data(send(server, "GET", path))["status"] == "in_progress"
    done = data(send(server, "GET", path))
    assert (done["status"], done["request_counts"]) == ("completed", {"total": 3, "completed": 2, "failed": 1})
    out = send(server, "GET", f"/v1/files/{done['output_file_id']}/content").body
    assert isinstance(out, bytes)
    answers = [json.loads(text) for text in out.splitlines()]
    assert [answer["custom_id"] for answer in answers] == ["a", "b"]
    assert answers[0]["response"]["body"]["choices"][0]["message"]["content"] == "ok"
    bad = send(server, "GET", f"/v1/files/{done['error_file_id']}/content").body
    assert isinstance(bad, bytes)
    assert json.loads(bad)["response"]["status_code"] == 400
    assert data(send(server, "GET", "/v1/batches"))["data"][0]["id"] == made["id"]
    assert len(data(send(server, "GET", "/v1/files"))["data"]) == 3
    assert data(send(server, "DELETE", f"/v1/files/{file}"))["deleted"] is True
    assert send(server, "GET", f"/v1/files/{file}").status == 404


def test_a_cancelled_batch():
    server = LocalServer([Echo()])
    asked = {"input_file_id": upload(server, line("a")), "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    path = f"/v1/batches/{data(send(server, 'POST', '/v1/batches', asked))['id']}"
    assert data(send(server, "POST", f"{path}/cancel"))["status"] == "cancelled"
    assert send(server, "POST", "/v1/batches", asked | {"endpoint": "/v1/images"}).status == 400
    assert send(server, "POST", "/v1/batches", asked | {"completion_window": "1h"}).status == 400
    assert send(server, "POST", "/v1/batches", {"endpoint": "/v1/responses"}).status == 400


@pytest.mark.parametrize(
    "lines", [b"{", b"", b'{"custom_id": "a"}', line("a") * 2, line("a").replace(b"chat/c", b"chat/x")]
)
def test_a_bad_input_file_fails_the_batch(lines: bytes):
    server = LocalServer([Echo()])
    asked = {"input_file_id": upload(server, lines), "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    made = data(send(server, "POST", "/v1/batches", asked))
    assert (made["status"], bool(made["errors"]["data"][0]["message"])) == ("failed", True)
