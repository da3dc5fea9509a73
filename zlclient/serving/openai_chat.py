"""The OpenAI Chat Completions wire."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from .anthropic import json_response
from .composing import Composed, Done, compose
from .errors import error_body, reader
from .faults import HTML, broken_body, status_error
from .logprobs import check_logprobs, written_logprobs
from .openai_common import (
    FINISH,
    Body,
    arguments_of,
    check_fields,
    check_limit,
    check_sampling,
    content_blocks,
    counted,
    invalid,
    missing,
    model_of,
    read_schema,
    read_tool,
    token_counts,
)
from .responders.base import (
    Alive,
    Ask,
    Block,
    ChoiceMode,
    Chosen,
    Fault,
    Pause,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    Turn,
)
from .server import delayed
from .tokens import pieces
from .wire import COMMENT, STALL, Drop, Piece, WireResponse

if TYPE_CHECKING:
    from .server import Call

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
MAX_CHOICES = 128


def create(call: Call) -> WireResponse:
    """POST /v1/chat/completions."""
    ask = read_ask(call, call.json())
    answer = call.server.answer(call, ask)
    completion = CompletionWriter(call, ask)
    composed = compose(answer.events, ask, lambda: call.server.new_id("call_"))
    if not ask.stream:
        return delayed(completion.whole(composed), answer.delay)
    headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
    return delayed(WireResponse(200, headers, completion.stream(composed)), answer.delay)


@reader
def read_ask(call: Call, body: Body) -> Ask:
    """`body`, checked, as an Ask; raises WireError 400 or 404."""
    model = model_of(call, body)
    check_fields(body, "chat")
    effort = body.get("reasoning_effort")
    check_sampling(body, model, effort, "reasoning_effort")
    if body.get("max_tokens") is not None and model.effort and model.provider == "openai":
        message = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        raise invalid(message, "max_tokens", "unsupported_parameter")
    limit = check_limit(body, "max_completion_tokens", model, 1) or check_limit(body, "max_tokens", model, 1)
    system, turns = read_messages(body)
    shape = cast("Body", body.get("response_format") or {})
    shape = {**cast("Body", shape.get("json_schema") or {}), **shape}
    if shape.get("type") == "json_object" and "json" not in json.dumps(body["messages"]).lower():
        message = (
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
        )
        raise invalid(message, "messages", None)
    n = body.get("n", 1)
    if n is not None and not 1 <= n <= MAX_CHOICES:
        raise invalid(f"Invalid 'n': expected an integer between 1 and {MAX_CHOICES}.", "n")
    check_logprobs(body)
    stop = body.get("stop") or ()
    return Ask(
        wire="chat",
        model=body["model"],
        turns=turns,
        system=system,
        tools=read_tools(body),
        tool_choice=read_choice(body.get("tool_choice")),
        output_schema=read_schema(shape, "response_format.json_schema" if "schema" in shape else "response_format"),
        max_tokens=limit,
        temperature=body.get("temperature"),
        top_p=body.get("top_p"),
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        seed=body.get("seed"),
        stream=bool(body.get("stream")),
        api_version="v1",
        headers=call.request.headers,
        body=body,
    )


def read_messages(body: Body) -> tuple[str, tuple[Turn, ...]]:
    """The system text and the turns; raises WireError 400 for messages that the API would not take."""
    messages = body.get("messages")
    if messages is None:
        raise missing("messages")
    if not messages:
        message = "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array."
        raise invalid(message, "messages", "empty_array")
    system: list[str] = []
    turns: list[Turn] = []
    waiting: set[str] = set()
    listed = cast("list[Body]", messages)
    for at, message in enumerate(listed):
        role = message.get("role")
        if role not in ROLES:
            supported = ", ".join(f"'{name}'" for name in ROLES)
            raise invalid(f"Invalid value: '{role}'. Supported values are: {supported}.", f"messages[{at}].role")
        if role in ("tool", "function"):
            _check_answers(message, at, waiting)
            _add(turns, Turn("user", (_tool_result(message),)))
            continue
        _check_answered(waiting, at)
        if role in ("system", "developer"):
            system += [block["text"] for block in content_blocks(message.get("content")) if block["type"] == "text"]
        elif role == "user":
            if not message.get("content"):
                raise invalid(
                    "Invalid value for 'content': expected a string, got null.", f"messages[{at}].content", None
                )
            turns.append(Turn("user", content_blocks(message["content"])))
        else:
            calls = cast("list[Body]", message.get("tool_calls") or [])
            turns.append(Turn("assistant", (*content_blocks(message.get("content")), *map(_tool_use, calls))))
            waiting = {str(found.get("id")) for found in calls}
    _check_answered(waiting, len(listed))
    return "\n\n".join(system), tuple(turns)


def _check_answers(message: Body, at: int, waiting: set[str]) -> None:
    if message["role"] != "tool":
        return
    if message.get("tool_call_id") not in waiting:
        text = (
            "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
        )
        raise invalid(text, f"messages.[{at}].role", None)
    waiting.discard(str(message["tool_call_id"]))


def _check_answered(waiting: set[str], at: int) -> None:
    if waiting:
        text = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. "
            f"The following tool_call_ids did not have response messages: {', '.join(sorted(waiting))}"
        )
        raise invalid(text, f"messages.[{at}].role", None)


def _add(turns: list[Turn], turn: Turn) -> None:
    """Append `turn`; results of calls made together are one turn."""
    last = turns[-1] if turns else None
    if last and last.role == "user" and last.blocks and last.blocks[0]["type"] == "tool_result":
        turns[-1] = Turn("user", (*last.blocks, *turn.blocks))
    else:
        turns.append(turn)


def _tool_result(message: Body) -> Block:
    content = content_blocks(message.get("content"))
    name = message.get("tool_call_id") or message.get("name")
    return {"type": "tool_result", "tool_use_id": name, "content": list(content)}


def _tool_use(call: Body) -> Block:
    function = cast("Body", call.get("function") or {})
    arguments = arguments_of(function.get("arguments"))
    return {"type": "tool_use", "id": call.get("id"), "name": function.get("name"), "input": arguments}


def read_tools(body: Body) -> tuple[Tool, ...]:
    """The function tools of the request."""
    found: list[Tool] = []
    for at, tool in enumerate(cast("list[Body]", body.get("tools") or [])):
        if tool.get("type") != "function":
            if tool.get("type") != "custom":
                text = f"Invalid value: '{tool.get('type')}'. Supported values are: 'function' and 'custom'."
                raise invalid(text, f"tools[{at}].type")
            continue
        function = cast("Body", tool.get("function") or {})
        found.append(read_tool(function, f"tools[{at}].function", strict=bool(function.get("strict"))))
    return tuple(found)


def read_choice(choice: Any) -> ToolChoice:
    """A tool choice of either OpenAI wire."""
    if isinstance(choice, Mapping):
        named = cast("Body", choice)
        name = cast("Body", named.get("function") or named).get("name", "")
        if named.get("type") == "allowed_tools":
            return ToolChoice("any" if named.get("mode") == "required" else "auto")
        return ToolChoice("tool", name) if name else ToolChoice()
    modes: dict[str, ChoiceMode] = {"none": "none", "required": "any", "auto": "auto"}
    if choice is not None and choice not in modes:
        raise invalid(
            f"Invalid value: '{choice}'. Supported values are: 'none', 'auto', and 'required'.", "tool_choice"
        )
    return ToolChoice(modes[choice]) if choice else ToolChoice()


class CompletionWriter:
    """Writes one answer, whole or as chunks; with `n` choices, all hold the same."""

    def __init__(self, call: Call, ask: Ask) -> None:
        self._call = call
        self._given, self._cached = token_counts(call.server, ask)
        self._choices = ask.body.get("n") or 1
        options = cast("Body", ask.body.get("stream_options") or {})
        self._with_usage = bool(options.get("include_usage"))
        self._head: dict[str, Any] = {
            "id": call.server.new_id("chatcmpl-"),
            "object": "chat.completion.chunk" if ask.stream else "chat.completion",
            "created": int(call.server.clock()),
            "model": ask.model,
            "service_tier": "default",
            "system_fingerprint": "fp_zlclient",
        }

    def whole(self, composed: Iterator[Composed]) -> WireResponse:
        """The completion as one JSON body."""
        text: list[str] = []
        tokens: list[Chosen] = []
        calls: list[dict[str, Any]] = []
        delay, fault, finish = 0.0, None, "stop"
        for event in composed:
            match event:
                case Text():
                    text.append(event.text)
                    tokens += event.tokens
                case ToolCall():
                    calls.append(_written(event))
                case Pause():
                    delay += event.seconds
                case Fault():
                    fault = event
                case Done():
                    finish = FINISH[event.reason]
                    self._head["usage"] = self._usage(event)
                case _:
                    pass
        message: dict[str, Any] = {"role": "assistant", "content": "".join(text) if text or not calls else None}
        message |= {"refusal": None, "annotations": []}
        if calls:
            message["tool_calls"] = calls
        self._head["choices"] = [
            {"index": index, "message": message, "logprobs": written_logprobs(tokens), "finish_reason": finish}
            for index in range(self._choices)
        ]
        response = json_response(self._head)
        if fault is not None:
            assert isinstance(response.body, bytes)
            response = broken_body(response.body, fault, "openai", self._call.request_id)
        return delayed(response, delay)

    def stream(self, composed: Iterator[Composed]) -> Iterator[Piece]:
        """The completion as chunks, then `[DONE]`."""
        yield self._chunk({"role": "assistant", "content": "", "refusal": None})
        calls = 0
        for event in composed:
            match event:
                case Pause():
                    yield event
                case Alive():
                    yield COMMENT
                case Text():
                    parts = pieces(event.text)
                    chunks = [self._chunk({"content": parts[0]}, tokens=event.tokens)] if parts else []
                    yield b"".join([*chunks, *(self._chunk({"content": piece}) for piece in parts[1:])])
                case ToolCall():
                    yield b"".join(self._chunk({"tool_calls": [delta]}) for delta in _call_deltas(event, calls))
                    calls += 1
                case Fault():
                    yield from self._mid_fault(event)
                    return
                case Done():
                    yield self._chunk({}, FINISH[event.reason]) + self._last(event)
                case _:
                    pass  # a chat stream does not show reasoning

    def _chunk(self, delta: Body, finish: str | None = None, *, tokens: Sequence[Chosen] = ()) -> bytes:
        data = dict(self._head)
        data["choices"] = [
            {"index": index, "delta": delta, "logprobs": written_logprobs(tokens), "finish_reason": finish}
            for index in range(self._choices)
        ]
        if self._with_usage:
            data["usage"] = None
        return _sse(data)

    def _last(self, done: Done) -> bytes:
        usage = _sse({**self._head, "choices": [], "usage": self._usage(done)}) if self._with_usage else b""
        return usage + b"data: [DONE]\n\n"

    def _usage(self, done: Done) -> dict[str, Any]:
        given, cached, made = counted(done, self._given, self._cached)
        made *= self._choices
        return {
            "prompt_tokens": given,
            "completion_tokens": made,
            "total_tokens": given + made,
            "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": done.thinking_tokens,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        }

    def _mid_fault(self, fault: Fault) -> Iterator[Piece]:
        match fault.kind:
            case "status":
                yield _sse(error_body("openai", status_error(fault), self._call.request_id))
            case "drop":
                yield Drop()
            case "stall":
                yield STALL
            case "malformed":
                yield b'data: {"id": "broken", \n\n'
            case "html":
                yield HTML
            case "empty":
                return


def _written(call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(call.input, ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _call_deltas(call: ToolCall, index: int) -> Iterator[dict[str, Any]]:
    written = _written(call)
    arguments = written["function"]["arguments"]
    yield {"index": index, **written, "function": {"name": call.name, "arguments": ""}}
    for piece in pieces(arguments):
        yield {"index": index, "function": {"arguments": piece}}


def _sse(data: Body) -> bytes:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return b"data: " + text.encode("utf-8", "surrogatepass") + b"\n\n"
