"""The Anthropic Messages wire: requests into asks, events into messages and streams."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from .anthropic_validation import check, model_of, version_of
from .caching import PrefixCache
from .composing import Composed, Done, compose
from .errors import error_body, reader
from .faults import broken_body, fault_response, status_error
from .responders.base import (
    Alive,
    Ask,
    Block,
    ChoiceMode,
    Fault,
    Pause,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    Turn,
    text_of,
)
from .server import delayed
from .tokens import count, count_json, pieces
from .wire import STALL, Drop, Piece, WireResponse

if TYPE_CHECKING:
    from .server import Call, LocalServer

IMAGE_TOKENS = 1600  # an image of about one megapixel, by the vision guide
SIGNATURE = "ZmFrZSBzaWduYXR1cmUgb2YgdGhlIGxvY2FsIHNlcnZlcg=="


def create(call: Call) -> WireResponse:
    """POST /v1/messages."""
    body = call.json()
    version = version_of(call)
    ask = read_ask(call, body, version)
    answer = call.server.answer(call, ask)
    message = MessageWriter(call, ask)
    composed = compose(answer.events, ask, lambda: call.server.new_id("toolu_"))
    if not ask.stream:
        return delayed(message.whole(composed), answer.delay)
    response = WireResponse(200, {"content-type": "text/event-stream; charset=utf-8"}, message.stream(composed))
    response.headers["cache-control"] = "no-cache"
    return delayed(response, answer.delay)


def count_tokens(call: Call) -> WireResponse:
    """POST /v1/messages/count_tokens."""
    body = call.json()
    version = version_of(call)
    reader(check)(call, body, model_of(call, body), version, "count_tokens")
    return json_response({"input_tokens": input_tokens(body)})


@reader
def read_ask(call: Call, body: Mapping[str, Any], version: str) -> Ask:
    """`body`, checked, as an Ask; raises WireError 400 or 404."""
    check(call, body, model_of(call, body), version)
    choice = cast("Mapping[str, Any]", body.get("tool_choice") or {})
    config = cast("Mapping[str, Any]", body.get("output_config") or {})
    shape = cast("Mapping[str, Any]", config.get("format") or {})
    thinking = cast("Mapping[str, Any]", body.get("thinking") or {}).get("type")
    return Ask(
        wire="anthropic",
        model=body["model"],
        turns=tuple(Turn(message["role"], blocks_of(message["content"])) for message in body["messages"]),
        system=text_of(body.get("system")),
        tools=tuple(
            Tool(tool["name"], tool["input_schema"], tool.get("description", ""))
            for tool in body.get("tools") or ()
            if tool.get("type", "custom") == "custom"
        ),
        tool_choice=ToolChoice(cast("ChoiceMode", choice.get("type", "auto")), choice.get("name", "")),
        output_schema=shape.get("schema"),
        max_tokens=body["max_tokens"],
        temperature=body.get("temperature"),
        top_p=body.get("top_p"),
        stop=tuple(body.get("stop_sequences") or ()),
        thinking=thinking in ("enabled", "adaptive"),
        stream=bool(body.get("stream")),
        api_version=version,
        headers=call.request.headers,
        body=body,
    )


def blocks_of(content: str | list[Block]) -> tuple[Block, ...]:
    """A message's content as blocks."""
    return ({"type": "text", "text": content},) if isinstance(content, str) else tuple(content)


def input_tokens(body: Mapping[str, Any]) -> int:
    """The estimated input tokens of a request body: text, tools and a fixed cost an image."""
    total = count(text_of(body.get("system"))) + count_json(body.get("tools"))
    for message in body["messages"]:
        total += 3
        content = message["content"]
        if isinstance(content, str):
            total += count(content)
            continue
        for block in cast("list[Mapping[str, Any]]", content):
            kind = block.get("type")
            if kind == "image":
                total += IMAGE_TOKENS
            elif kind in ("text", "document", "tool_result"):
                total += count(text_of(block))
            else:
                total += count_json({key: value for key, value in block.items() if key != "source"})
    return total + 4


def json_response(value: Any) -> WireResponse:
    """200 with `value` as JSON."""
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return WireResponse(200, {"content-type": "application/json"}, body)


def prefix_cache(server: LocalServer) -> PrefixCache:
    """The server's cache of prompt prefixes."""
    return cast("PrefixCache", server.store("prefixes", lambda: PrefixCache(server.cache_minimum, server.clock)))


class MessageWriter:
    """Writes one answer, whole or as a stream of server-sent events."""

    def __init__(self, call: Call, ask: Ask) -> None:
        self._call, self._ask = call, ask
        read, written = prefix_cache(call.server).account(ask.body)
        fresh = max(input_tokens(ask.body) - read - written, 0)
        self._usage: dict[str, Any] = {
            "input_tokens": fresh,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read,
            "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 1,
            "service_tier": "standard",
        }
        self._message: dict[str, Any] = {
            "id": call.server.new_id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": ask.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": self._usage,
        }

    def whole(self, composed: Iterator[Composed]) -> WireResponse:
        """The message as one JSON body. Pauses between the events delay its head."""
        content: list[dict[str, Any]] = []
        delay, fault = 0.0, None
        for event in composed:
            match event:
                case Pause(seconds):
                    delay += seconds
                case Fault():
                    fault = event
                case Done():
                    self._finish(event)
                case Alive():
                    pass
                case _:
                    _append(content, event)
        self._message["content"] = content
        response = json_response(self._message)
        if fault is not None:
            assert isinstance(response.body, bytes)
            response = broken_body(response.body, fault, "anthropic", self._call.request_id)
        return delayed(response, delay)

    def stream(self, composed: Iterator[Composed]) -> Iterator[Piece]:
        """The message as server-sent events; each piece holds whole events."""
        yield _sse("message_start", {"message": self._message}) + _sse("ping", {})
        index, kind = -1, ""
        for event in composed:
            match event:
                case Pause():
                    yield event
                case Alive():
                    yield _sse("ping", {})
                case Text() | Thinking() | ToolCall():
                    out = b""
                    wanted = _block_kind(event)
                    if wanted != kind or isinstance(event, ToolCall):
                        out = _block_end(index, kind)
                        index, kind = index + 1, wanted
                        start = {"index": index, "content_block": _empty_block(event)}
                        out += _sse("content_block_start", start)
                    yield out + b"".join(_deltas(index, event))
                case Fault():
                    yield from self._mid_fault(event)
                    return
                case Done():
                    self._finish(event)
                    out = _block_end(index, kind)
                    ending = {"stop_reason": self._message["stop_reason"], "stop_sequence": event.stop_sequence}
                    usage = {key: value for key, value in self._usage.items() if key.endswith(("tokens", "details"))}
                    yield out + _sse("message_delta", {"delta": ending, "usage": usage}) + _sse("message_stop", {})

    def _finish(self, done: Done) -> None:
        self._message["stop_reason"], self._message["stop_sequence"] = done.reason, done.stop_sequence
        self._usage["output_tokens"] = done.output_tokens
        if done.thinking_tokens:
            self._usage["output_tokens_details"] = {"thinking_tokens": done.thinking_tokens}
        known = {
            "input_tokens": done.usage.input_tokens,
            "output_tokens": done.usage.output_tokens,
            "cache_read_input_tokens": done.usage.cache_read_tokens,
            "cache_creation_input_tokens": done.usage.cache_write_tokens,
        }
        self._usage.update({key: value for key, value in known.items() if value is not None})

    def _mid_fault(self, fault: Fault) -> Iterator[Piece]:
        match fault.kind:
            case "status":
                body = error_body("anthropic", status_error(fault), self._call.request_id)
                yield b"event: error\ndata: " + json.dumps(body).encode() + b"\n\n"
            case "drop":
                yield Drop()
            case "stall":
                yield STALL
            case "malformed":
                yield b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, \n\n'
            case "html":
                yield from fault_response(fault, "anthropic", self._call.request_id).pieces()
            case "empty":
                return


def _sse(kind: str, fields: Mapping[str, Any]) -> bytes:
    data = json.dumps({"type": kind, **fields}, ensure_ascii=False, separators=(",", ":"))
    return f"event: {kind}\ndata: {data}\n\n".encode("utf-8", "surrogatepass")


def _block_kind(event: Text | Thinking | ToolCall) -> str:
    return {Text: "text", Thinking: "thinking", ToolCall: "tool_use"}[type(event)]


def _empty_block(event: Text | Thinking | ToolCall) -> dict[str, Any]:
    match event:
        case Text():
            return {"type": "text", "text": ""}
        case Thinking():
            return {"type": "thinking", "thinking": "", "signature": ""}
        case ToolCall():
            return {"type": "tool_use", "id": event.id, "name": event.name, "input": {}}


def _block_end(index: int, kind: str) -> bytes:
    if index < 0:
        return b""
    out = b""
    if kind == "thinking":
        out = _sse(
            "content_block_delta", {"index": index, "delta": {"type": "signature_delta", "signature": SIGNATURE}}
        )
    return out + _sse("content_block_stop", {"index": index})


def _deltas(index: int, event: Text | Thinking | ToolCall) -> Iterator[bytes]:
    match event:
        case Text(text):
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(text)]
        case Thinking(text):
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(text)]
        case ToolCall():
            written = json.dumps(event.input, ensure_ascii=False)
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces(written))]
    for delta in deltas:
        yield _sse("content_block_delta", {"index": index, "delta": delta})


def _append(content: list[dict[str, Any]], event: Text | Thinking | ToolCall) -> None:
    """Add an event to the blocks of a whole message; text goes on in the block before it."""
    kind = _block_kind(event)
    if isinstance(event, ToolCall):
        content.append({**_empty_block(event), "input": dict(event.input)})
        return
    if not content or content[-1]["type"] != kind:
        content.append({**_empty_block(event), **({"signature": SIGNATURE} if kind == "thinking" else {})})
    content[-1][kind] += event.text
