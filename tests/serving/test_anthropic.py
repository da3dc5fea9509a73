import json
from collections.abc import Iterable
from datetime import date
from typing import Any

import pytest

from zlclient.serving import LocalServer, WireRequest, WireResponse
from zlclient.serving.responders.base import Ask, Event, Responder, Text

CURRENT, OLDER = "2026-10-21", "2023-06-01"
HELLO = [{"role": "user", "content": "hello"}]
LOOK = {"name": "look", "description": "d", "input_schema": {"type": "object"}}
USE = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "21"}


class Echo(Responder):
    name = "echo"

    def __init__(self) -> None:
        self.asks: list[Ask] = []

    def respond(self, ask: Ask) -> Iterable[Event]:
        self.asks.append(ask)
        return (Text("ok"),)


def post(
    server: LocalServer | None = None,
    version: str | None = CURRENT,
    path: str = "/v1/messages",
    beta: str = "",
    **body: Any,
) -> WireResponse:
    body = {"model": "claude-sonnet-4-6", "max_tokens": 100, "messages": HELLO} | body
    body = {name: value for name, value in body.items() if value is not ...}
    headers = {"anthropic-version": version} if version else {}
    if beta:
        headers["anthropic-beta"] = beta
    return (server or LocalServer([Echo()])).handle(WireRequest("POST", path, headers, json.dumps(body).encode()))


def data(response: WireResponse) -> Any:
    return json.loads(b"".join(piece for piece in response.pieces() if isinstance(piece, bytes)))


def turns(*contents: Any) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[at % 2], "content": content} for at, content in enumerate(contents)]


# what is sent (… leaves a field out), the status, and words of the message
REJECTED: list[tuple[dict[str, Any], int, str]] = [
    ({"max_tokens": ...}, 400, "max_tokens: Field required"),
    ({"max_tokens": 0}, 400, "max_tokens: Input should be greater than or equal to 1"),
    ({"max_tokens": "9"}, 400, "max_tokens: Input should be a valid integer"),
    ({"max_tokens": True}, 400, "max_tokens"),
    ({"max_tokens": 64_001}, 400, "max_tokens: 64001 > 64000"),
    ({"model": ...}, 400, "model: Field required"),
    ({"model": "nope"}, 404, "model: nope"),
    ({"model": "gpt-4o"}, 404, "model: gpt-4o"),
    ({"messages": ...}, 400, "messages: Field required"),
    ({"messages": []}, 400, "messages: at least one message is required"),
    ({"messages": "hello"}, 400, "messages: Input should be a valid list"),
    ({"messages": ["hello"]}, 400, "messages: Input should be a valid list"),
    ({"metadata": "x"}, 400, "metadata: Input should be a valid dictionary"),
    ({"stream": "yes"}, 400, "stream: Input should be a valid boolean"),
    ({"system": 5}, 400, "system: Input should be a valid string or list"),
    ({"messages": turns("")}, 400, "non-empty content"),
    ({"messages": turns([])}, 400, "non-empty content"),
    ({"messages": turns(" \n")}, 400, "non-whitespace"),
    ({"messages": turns([{"type": "text", "text": ""}])}, 400, "text content blocks must be non-empty"),
    ({"messages": turns([{"type": "text", "text": "  "}])}, 400, "non-whitespace"),
    ({"messages": turns([{"text": "x"}])}, 400, "messages.0.content.0.type: Field required"),
    ({"messages": [{"role": "system", "content": "x"}]}, 400, "top-level `system` parameter"),
    ({"messages": [{"role": "tool", "content": "x"}]}, 400, "messages.0.role"),
    ({"messages": [{"role": "user"}]}, 400, "messages.0.content: Field required"),
    ({"messages": [{"role": "assistant", "content": "x"}, *HELLO]}, 400, 'first message must use the "user" role'),
    ({"messages": turns("hi", "The answer is")}, 400, "does not support assistant message prefill"),
    ({"messages": turns("hi", "so ") , "model": "claude-haiku-4-5"}, 400, "trailing whitespace"),
    ({"messages": turns("hi", [USE]), "model": "claude-haiku-4-5"}, 200, ""),
    ({"messages": turns("hi", [USE], "and?")}, 400, "`tool_use` ids were found without `tool_result` blocks"),
    ({"messages": turns("hi", "ho", [RESULT])}, 400, "unexpected `tool_use_id`"),
    ({"messages": turns([USE])}, 400, "can only be in `assistant` messages"),
    ({"messages": turns("hi", [RESULT], "x")}, 400, "can only be in `user` messages"),
    ({"flavour": "mint"}, 400, "flavour: Extra inputs are not permitted"),
    ({"stop": ["x"]}, 400, "stop: Extra inputs are not permitted"),
    ({"mcp_servers": []}, 400, "mcp_servers: Extra inputs are not permitted"),
    ({"stop_sequences": "x"}, 400, "stop_sequences"),
    ({"stop_sequences": [" "]}, 400, "non-whitespace"),
    ({"tools": [{"name": "look"}]}, 400, "tools.0.custom.input_schema: Field required"),
    ({"tools": [{"input_schema": {}}]}, 400, "tools.0.custom.name: Field required"),
    ({"tools": [LOOK | {"name": "a b"}]}, 400, "should match pattern"),
    ({"tools": [LOOK, LOOK]}, 400, "Tool names must be unique"),
    ({"tool_choice": {"type": "any"}}, 400, "only be specified while providing tools"),
    ({"tools": [LOOK], "tool_choice": {"type": "tool", "name": "x"}}, 400, "Tool 'x' not found"),
    ({"output_config": {"effort": "huge"}}, 400, "output_config.effort"),
    ({"output_config": {"effort": "xhigh"}}, 400, "output_config.effort"),
    ({"output_config": {"effort": "low"}, "model": "claude-haiku-4-5"}, 400, "effort parameter"),
    ({"output_config": {"formats": 1}}, 400, "output_config.formats: Extra inputs are not permitted"),
    ({"output_config": {"format": {"type": "json_schema"}}}, 400, "output_config.format.schema: Field required"),
    ({"thinking": {"type": "maybe"}}, 400, "thinking.type"),
    ({"thinking": {"type": "enabled"}}, 400, "budget_tokens: Field required"),
    ({"thinking": {"type": "enabled", "budget_tokens": 10}}, 400, "greater than or equal to 1024"),
    ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, 400, "`max_tokens` must be greater"),
    ({"thinking": {"type": "adaptive"}, "tools": [LOOK], "tool_choice": {"type": "any"}}, 400, "forces tool use"),
    ({"system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}] * 5}, 400, "A maximum of 4 blocks"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "status", "words"), REJECTED)
def test_rejections(sent: dict[str, Any], status: int, words: str):
    response = post(**sent)
    body = data(response)
    assert response.status == status, body
    if status != 200:
        kind = {400: "invalid_request_error", 404: "not_found_error"}[status]
        assert body["error"]["type"] == kind
        assert words in body["error"]["message"]
        assert body["request_id"] == response.headers["request-id"]


@pytest.mark.parametrize("version", [None, "2024-01-01", "v1"])
def test_the_version_is_required_and_known(version: str | None):
    response = post(version=version)
    assert response.status == 400
    assert "anthropic-version" in data(response)["error"]["message"]


@pytest.mark.parametrize("name", ["temperature", "top_p", "top_k"])
@pytest.mark.parametrize("model", ["claude-sonnet-4-6", "claude-opus-4-5", "claude-sonnet-5-5", "claude-mythos-9"])
def test_the_current_version_takes_no_sampling_at_all(name: str, model: str):
    response = post(model=model, **{name: 1})
    assert response.status == 400
    assert name in data(response)["error"]["message"]


@pytest.mark.parametrize(
    ("model", "sent", "words"),
    [
        ("claude-sonnet-4-6", {"temperature": 0.3}, None),
        ("claude-opus-4-5-20251101", {"top_k": 40}, None),
        ("claude-haiku-4-5", {"temperature": 1.0}, None),
        ("claude-sonnet-4-6", {"temperature": 0.3, "top_p": 0.9}, "cannot both be specified"),
        ("claude-sonnet-4-6", {"temperature": 1.5}, "temperature: range: 0..1"),
        ("claude-sonnet-4-6", {"temperature": "warm"}, "temperature: Input should be a valid number"),
        ("claude-opus-4-7", {"temperature": 0.3}, "`temperature` is not supported"),
        ("claude-sonnet-5", {"top_p": 0.9}, "`top_p` is not supported"),
        ("claude-haiku-5-5", {"top_k": 4}, "`top_k` is not supported"),
        ("claude-new-6", {"temperature": 1.0}, "`temperature` is not supported"),
        ("claude-sonnet-4-6", {"temperature": 0.3, "thinking": {"type": "adaptive"}}, "when thinking is enabled"),
    ],
)
def test_the_older_version_leaves_sampling_to_the_model(model: str, sent: dict[str, Any], words: str | None):
    response = post(version=OLDER, model=model, **sent)
    assert response.status == (400 if words else 200), data(response)
    if words:
        assert words in data(response)["error"]["message"]


DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}
CITED = {"type": "text", "text": "x", "citations": [{"type": "char_location"}]}


@pytest.mark.parametrize("messages", [turns("a", [DOCUMENT], "b"), turns([CITED])])
def test_what_only_the_current_version_rejects(messages: list[Any]):
    assert post(messages=messages).status == 400
    assert post(version=OLDER, messages=messages).status == 200


def test_beta_fields_need_a_beta_header():
    assert post(mcp_servers=[]).status == 400
    assert post(mcp_servers=[], beta="mcp-client-2025-11-20").status == 200


def test_retirement_can_be_tried_before_it_happens():
    assert post(model="claude-opus-4-5").status == 200
    server = LocalServer([Echo()], today=date(2027, 1, 23))
    gone = post(server, model="claude-opus-4-5")
    assert gone.status == 404
    assert "2027-01-22" in data(gone)["error"]["message"]
    assert post(LocalServer([Echo()], today=date(2027, 1, 22)), model="claude-opus-4-5").status == 200


def test_models_that_are_not_listed():
    assert post(model="claude-opus-9").status == 200
    assert post(LocalServer([Echo()], strict=True), model="claude-opus-9").status == 404
    assert post(LocalServer([Echo()], models=["my-model"]), model="my-model", temperature=0.3).status == 200
    assert post(model="auto").status == 200


def test_everything_an_ask_holds():
    echo = Echo()
    post(
        LocalServer([echo]),
        version=OLDER,
        system=[{"type": "text", "text": "be brief"}],
        messages=turns([{"type": "text", "text": "q"}, DOCUMENT], [{"type": "text", "text": "I look"}, USE], [RESULT]),
        tools=[LOOK, {"type": "web_search_20260101", "name": "web_search"}],
        tool_choice={"type": "tool", "name": "look"},
        output_config={"format": {"type": "json_schema", "schema": {"type": "object"}}},
        stop_sequences=["END"],
        temperature=0.4,
    )
    ask = echo.asks[0]
    assert (ask.system, ask.turn, ask.question, ask.stop, ask.temperature) == ("be brief", 1, "q", ("END",), 0.4)
    assert [tool.name for tool in ask.tools] == ["look"]
    assert (ask.tool_choice.mode, ask.tool_choice.name) == ("tool", "look")
    assert ask.output_schema == {"type": "object"}
    assert ask.tool_results == (RESULT,)
    assert ask.api_version == OLDER
    assert ask.turns[0].blocks[1] == DOCUMENT


def test_count_tokens_takes_what_messages_takes_without_max_tokens():
    path = "/v1/messages/count_tokens"
    counted = data(post(path=path, max_tokens=...))["input_tokens"]
    assert counted > 0
    assert data(post(path=path, max_tokens=..., tools=[LOOK], system="be brief"))["input_tokens"] > counted
    assert post(path=path).status == 400
    assert data(post())["usage"]["input_tokens"] == counted


def test_a_marked_prefix_is_written_once_and_read_after_until_it_expires():
    now = [1000.0]
    server = LocalServer([Echo()], clock=lambda: now[0])
    long = [{"type": "text", "text": "word " * 2000, "cache_control": {"type": "ephemeral"}}]

    def usage(question: str, system: list[Any] = long) -> tuple[int, int, int]:
        found = data(post(server, system=system, messages=turns(question)))["usage"]
        return found["cache_creation_input_tokens"], found["cache_read_input_tokens"], found["input_tokens"]

    written, read, fresh = usage("one")
    assert (written > 1500, read, fresh < 20) == (True, 0, True)
    assert usage("two") == (0, written, fresh)
    now[0] += 301
    assert usage("three")[:2] == (written, 0)
    assert usage("four", [{"type": "text", "text": "another " * 2000, "cache_control": {"type": "ephemeral"}}])[1] == 0
    assert usage("five", [{"type": "text", "text": "short", "cache_control": {"type": "ephemeral"}}])[:2] == (0, 0)
    assert usage("six", [{"type": "text", "text": "word " * 2000}])[:2] == (0, 0)


def test_a_conversation_reads_what_its_last_turn_wrote():
    server = LocalServer([Echo()], cache_minimum=10)
    mark = {"cache_control": {"type": "ephemeral"}}
    first = turns([{"type": "text", "text": "the first question is rather long " * 3, **mark}])
    wrote = data(post(server, messages=first))["usage"]["cache_creation_input_tokens"]
    then = turns(first[0]["content"][0]["text"], "ok", [{"type": "text", "text": "and a second question", **mark}])
    then[0]["content"] = [{"type": "text", "text": then[0]["content"], **mark}]
    usage = data(post(server, messages=then))["usage"]
    assert usage["cache_read_input_tokens"] == wrote
    assert usage["cache_creation_input_tokens"] > 0


def get(path: str, query: dict[str, list[str]] | None = None, version: str = CURRENT, today: date | None = None) -> Any:
    return data(
        LocalServer(today=today).handle(WireRequest("GET", path, {"anthropic-version": version}, b"", query or {}))
    )


def test_models_have_their_lifecycle():
    day = date(2026, 12, 1)
    by_id = {model["id"]: model for model in get("/v1/models", {"limit": ["1000"]}, today=day)["data"]}
    assert by_id["claude-opus-4-5"]["lifecycle"] == "deprecated"
    assert by_id["claude-opus-4-5"]["retires_at"].startswith("2027-01-22")
    assert by_id["claude-sonnet-5-5"]["lifecycle"] == "active"
    assert "claude-sonnet-4-5" not in by_id
    gone = get("/v1/models", {"lifecycle": ["retired"]}, today=day)["data"]
    assert "claude-sonnet-4-5" in [model["id"] for model in gone]
    assert {model["lifecycle"] for model in gone} == {"retired"}
    assert get("/v1/models/claude-sonnet-4-5", today=day)["lifecycle"] == "retired"
    assert not by_id["claude-haiku-4-5"]["capabilities"]["effort"]["supported"]
    assert get("/v1/models", {"lifecycle": ["gone"]})["error"]["type"] == "invalid_request_error"


def test_models_come_in_pages():
    first = get("/v1/models", {"limit": ["3"]})
    assert (len(first["data"]), first["has_more"]) == (3, True)
    second = get("/v1/models", {"limit": ["3"], "after_id": [first["last_id"]]})
    assert not {m["id"] for m in first["data"]} & {m["id"] for m in second["data"]}
    back = get("/v1/models", {"limit": ["3"], "before_id": [second["first_id"]]})
    assert [m["id"] for m in back["data"]] == [m["id"] for m in first["data"]]
    assert get("/v1/models", {"limit": ["0"]})["type"] == "error"
    assert get("/v1/models/nope")["error"]["type"] == "not_found_error"


BATCHES = "/v1/messages/batches"


def send(server: LocalServer, method: str, path: str, body: Any = None) -> WireResponse:
    raw = json.dumps(body).encode() if body is not None else b""
    return server.handle(WireRequest(method, path, {"anthropic-version": CURRENT, "host": "localhost:1"}, raw))


def one(custom_id: str, **params: Any) -> dict[str, Any]:
    return {"custom_id": custom_id, "params": {"model": "claude-sonnet-5", "max_tokens": 9, "messages": HELLO} | params}


def test_a_batch_goes_its_way():
    server = LocalServer([Echo()])
    made = data(send(server, "POST", BATCHES, {"requests": [one("a"), one("b", max_tokens=0)]}))
    path = f"{BATCHES}/{made['id']}"
    assert made["processing_status"] == "in_progress"
    assert send(server, "GET", f"{path}/results").status == 400
    assert send(server, "DELETE", path).status == 400
    assert data(send(server, "GET", path))["processing_status"] == "in_progress"
    ended = data(send(server, "GET", path))
    assert ended["processing_status"] == "ended"
    assert ended["request_counts"] == {"processing": 0, "succeeded": 1, "errored": 1, "canceled": 0, "expired": 0}
    assert ended["results_url"] == f"http://localhost:1{path}/results"
    lines = b"".join(p for p in send(server, "GET", f"{path}/results").pieces() if isinstance(p, bytes)).splitlines()
    results = {line["custom_id"]: line["result"] for line in map(json.loads, lines)}
    assert results["a"]["message"]["content"][0]["text"] == "ok"
    assert results["b"]["error"]["error"]["type"] == "invalid_request_error"
    assert [batch["id"] for batch in data(send(server, "GET", BATCHES))["data"]] == [made["id"]]
    assert data(send(server, "DELETE", path))["type"] == "message_batch_deleted"
    assert send(server, "GET", path).status == 404


def test_a_cancelled_batch_has_cancelled_results():
    server = LocalServer([Echo()])
    path = f"{BATCHES}/{data(send(server, 'POST', BATCHES, {'requests': [one('a')]}))['id']}"
    assert data(send(server, "POST", f"{path}/cancel"))["processing_status"] == "canceling"
    send(server, "GET", path)
    assert data(send(server, "GET", path))["request_counts"]["canceled"] == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"requests": []},
        {"requests": [one("a"), one("a")]},
        {"requests": [{"custom_id": "a"}]},
        {"requests": [one("a", stream=True)]},
        {"requests": [one("a")], "mode": "fast"},
    ],
)
def test_bad_batches(body: dict[str, Any]):
    assert send(LocalServer([Echo()]), "POST", BATCHES, body).status == 400
