"""The OpenAI Responses wire: requests, stored responses, token counts; `openai_response_writer.py` writes answers."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from .anthropic import json_response
from .composing import compose
from .errors import WireError, reader
from .openai_chat import read_choice
from .openai_common import (
    Body,
    arguments_of,
    check_fields,
    check_limit,
    check_sampling,
    content_blocks,
    invalid,
    missing,
    model_of,
    read_schema,
    read_tool,
    token_counts,
)
from .openai_response_writer import ResponseWriter
from .responders.base import Ask, Tool, Turn
from .server import delayed
from .wire import WireResponse

if TYPE_CHECKING:
    from .server import Call, LocalServer

KEPT = 1000  # stored responses; the oldest go first
ROLES = ("user", "assistant", "system", "developer")
LEAST_OUTPUT = 16  # the API's own minimum of max_output_tokens


@dataclass(frozen=True, slots=True)
class Stored:
    """A response that may be retrieved or continued: its body, and the turns up to and with it."""

    body: dict[str, Any]
    turns: tuple[Turn, ...]


def create(call: Call) -> WireResponse:
    """POST /v1/responses."""
    body = call.json()
    ask = read_ask(call, body)
    answer = call.server.answer(call, ask)
    writer = ResponseWriter(call, ask)
    composed = compose(answer.events, ask, lambda: call.server.new_id("call_"))
    if body.get("store", True):
        writer.on_end = lambda made: _keep(call.server, Stored(made, (*ask.turns, _turn_of(made))))
    if not ask.stream:
        return delayed(writer.whole(composed), answer.delay)
    headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
    return delayed(WireResponse(200, headers, writer.stream(composed)), answer.delay)


def count_tokens(call: Call) -> WireResponse:
    """POST /v1/responses/input_tokens."""
    body = call.json()
    ask = read_ask(call, body, "responses_input_tokens")
    return json_response({"object": "response.input_tokens", "input_tokens": token_counts(call.server, ask)[0]})


def retrieve(call: Call, response_id: str) -> WireResponse:
    """GET /v1/responses/{id}."""
    return json_response(_stored(call.server, response_id).body)


def delete(call: Call, response_id: str) -> WireResponse:
    """DELETE /v1/responses/{id}."""
    _stored(call.server, response_id)
    with call.server.lock:
        _store(call.server).pop(response_id, None)
    return json_response({"id": response_id, "object": "response", "deleted": True})


@reader
def read_ask(call: Call, body: Body, endpoint: str = "responses") -> Ask:
    """`body`, checked, as an Ask; raises WireError 400 or 404."""
    model = model_of(call, body)
    check_fields(body, endpoint)
    reasoning = cast("Body", body.get("reasoning") or {})
    check_sampling(body, model, reasoning.get("effort"), "reasoning.effort")
    limit = check_limit(body, "max_output_tokens", model, LEAST_OUTPUT)
    if body.get("conversation") is not None:
        raise invalid("zlclient serve keeps no conversations; use 'previous_response_id'.", "conversation")
    system, turns = read_input(body)
    before = body.get("previous_response_id")
    if before is not None:
        turns = (*_stored(call.server, str(before), "previous_response_id").turns, *turns)
    system = "\n\n".join(filter(None, (body.get("instructions") or "", system)))
    shape = cast("Body", cast("Body", body.get("text") or {}).get("format") or {})
    return Ask(
        wire="responses",
        model=body["model"],
        turns=turns,
        system=system,
        tools=read_tools(body),
        tool_choice=read_choice(body.get("tool_choice")),
        output_schema=read_schema(shape, "text.format"),
        max_tokens=limit,
        temperature=body.get("temperature"),
        top_p=body.get("top_p"),
        thinking=bool(reasoning.get("summary")),
        stream=bool(body.get("stream")),
        api_version="v1",
        headers=call.request.headers,
        body=body,
    )


def read_tools(body: Body) -> tuple[Tool, ...]:
    """The function tools; the provider's own tools (web search, …) have nothing to run them here."""
    return tuple(
        read_tool(tool, f"tools[{at}]", strict=bool(tool.get("strict")))
        for at, tool in enumerate(cast("list[Body]", body.get("tools") or []))
        if tool.get("type") == "function"
    )


def read_input(body: Body) -> tuple[str, tuple[Turn, ...]]:
    """The system text and the turns of `input`; raises WireError 400."""
    given = body.get("input")
    if given is None:
        raise missing("input")
    if isinstance(given, str):
        return "", (Turn("user", content_blocks(given)),)
    system: list[str] = []
    turns: list[Turn] = []
    calls: set[str] = set()
    for at, item in enumerate(cast("list[Body]", given)):
        kind = item.get("type", "message")
        if kind == "message":
            turn = _message(item, at)
            if item["role"] in ("system", "developer"):
                system.append(turn.text)
            else:
                _add(turns, turn)
        elif kind == "function_call":
            calls.add(str(item.get("call_id")))
            arguments = arguments_of(item.get("arguments"))
            use = {"type": "tool_use", "id": item.get("call_id"), "name": item.get("name"), "input": arguments}
            _add(turns, Turn("assistant", (use,)))
        elif kind == "function_call_output":
            if item.get("call_id") not in calls and body.get("previous_response_id") is None:
                text = f"No tool call found for function call output with call_id {item.get('call_id')}."
                raise invalid(text, "input", None)
            content = list(content_blocks(item.get("output")))
            result = {"type": "tool_result", "tool_use_id": item.get("call_id"), "content": content}
            _add(turns, Turn("user", (result,)))
    return "\n\n".join(system), tuple(turns)


def _message(item: Body, at: int) -> Turn:
    role = item.get("role")
    if role not in ROLES:
        supported = ", ".join(f"'{name}'" for name in ROLES)
        raise invalid(f"Invalid value: '{role}'. Supported values are: {supported}.", f"input[{at}].role")
    if item.get("content") is None:
        raise missing(f"input[{at}].content")
    return Turn("assistant" if role == "assistant" else "user", content_blocks(item["content"]))


def _add(turns: list[Turn], turn: Turn) -> None:
    """Append `turn`: calls join the assistant's turn before them, results the results before them."""
    last = turns[-1] if turns else None
    joins = turn.blocks and turn.blocks[0]["type"] in ("tool_use", "tool_result")
    if (
        last
        and joins
        and last.role == turn.role
        and (turn.role == "assistant" or last.blocks[0]["type"] == "tool_result")
    ):
        turns[-1] = Turn(turn.role, (*last.blocks, *turn.blocks))
    else:
        turns.append(turn)


def _turn_of(made: Body) -> Turn:
    """The assistant's turn that a response is, for the request that continues it."""
    blocks: list[Body] = []
    for item in made["output"]:
        if item["type"] == "message":
            blocks += content_blocks(item["content"])
        elif item["type"] == "function_call":
            arguments = arguments_of(item["arguments"])
            blocks.append({"type": "tool_use", "id": item["call_id"], "name": item["name"], "input": arguments})
    return Turn("assistant", tuple(blocks))


def _store(server: LocalServer) -> OrderedDict[str, Stored]:
    return cast("OrderedDict[str, Stored]", server.store("responses", OrderedDict))


def _keep(server: LocalServer, stored: Stored) -> None:
    with server.lock:
        kept = _store(server)
        kept[stored.body["id"]] = stored
        while len(kept) > KEPT:
            kept.popitem(last=False)


def _stored(server: LocalServer, response_id: str, param: str | None = None) -> Stored:
    with server.lock:
        found = _store(server).get(response_id)
    if found is None and param:
        text = f"Previous response with id '{response_id}' not found."
        raise WireError(400, text, kind="invalid_request_error", param=param, code="previous_response_not_found")
    if found is None:
        raise WireError(404, f"Response with id '{response_id}' not found.", kind="invalid_request_error")
    return found
