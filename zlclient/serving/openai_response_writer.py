"""Writes Responses answers: whole, or as the stream of typed, numbered events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .anthropic import json_response
from .composing import Composed, Done
from .errors import error_body
from .faults import HTML, broken_body, status_error
from .openai_common import counted, token_counts
from .responders.base import Alive, Ask, Fault, Pause, Text, Thinking, ToolCall
from .server import delayed
from .tokens import pieces
from .wire import COMMENT, STALL, Drop, Piece, WireResponse

if TYPE_CHECKING:
    from .server import Call

# Request fields a response repeats, with their defaults.
_ECHOED: dict[str, Any] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "service_tier": "default",
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
}


class ResponseWriter:
    """One response. `on_end` is called with its body once it is complete."""

    def __init__(self, call: Call, ask: Ask) -> None:
        self._call = call
        self._given, self._cached = token_counts(call.server, ask)
        self._number = 0
        self._item: dict[str, Any] | None = None
        self.on_end: Callable[[dict[str, Any]], None] | None = None
        echoed = {name: ask.body.get(name) for name in _ECHOED if ask.body.get(name) is not None}
        self._body: dict[str, Any] = {
            "id": call.server.new_id("resp_"),
            "object": "response",
            "created_at": int(call.server.clock()),
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "model": ask.model,
            "output": [],
            "usage": None,
            "user": ask.body.get("user"),
            **_ECHOED,
            **echoed,
        }

    def whole(self, composed: Iterator[Composed]) -> WireResponse:
        """The response as one JSON body."""
        delay, fault = 0.0, None
        for event in composed:
            match event:
                case Pause():
                    delay += event.seconds
                case Fault():
                    fault = event
                case Alive():
                    pass
                case _:
                    for _ in self._written(event):
                        pass
        response = json_response(self._body)
        if fault is not None:
            assert isinstance(response.body, bytes)
            response = broken_body(response.body, fault, "openai", self._call.request_id)
        return delayed(response, delay)

    def stream(self, composed: Iterator[Composed]) -> Iterator[Piece]:
        """The response as server-sent events; each piece holds whole events."""
        yield self._event("response.created", response=self._body) + self._event(
            "response.in_progress", response=self._body
        )
        for event in composed:
            match event:
                case Pause():
                    yield event
                case Alive():
                    yield COMMENT
                case Fault():
                    yield from self._mid_fault(event)
                    return
                case _:
                    yield b"".join(self._written(event))

    def _written(self, event: Text | Thinking | ToolCall | Done) -> Iterator[bytes]:
        """The events that add `event` to the response."""
        match event:
            case Text():
                yield from self._open("message")
                yield from self._text(event.text)
            case Thinking():
                yield from self._open("reasoning")
                yield from self._thinking(event.text)
            case ToolCall():
                yield from self._close("completed")
                yield from self._tool_call(event)
            case Done():
                yield from self._end(event)

    def _open(self, kind: str) -> Iterator[bytes]:
        if self._item is not None and self._item["type"] == kind:
            return
        yield from self._close("completed")
        if kind == "message":
            item: dict[str, Any] = {"type": "message", "role": "assistant", "content": []}
            item |= {"id": self._call.server.new_id("msg_"), "status": "in_progress"}
        else:
            item = {"type": "reasoning", "id": self._call.server.new_id("rs_"), "summary": []}
        self._item = item
        self._body["output"].append(item)
        yield self._event("response.output_item.added", output_index=self._at, item=item)
        if kind == "message":
            part: dict[str, Any] = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            item["content"].append(part)
            yield self._event("response.content_part.added", **self._where("content_index"), part=part)
        else:
            part = {"type": "summary_text", "text": ""}
            item["summary"].append(part)
            yield self._event("response.reasoning_summary_part.added", **self._where("summary_index"), part=part)

    def _text(self, text: str) -> Iterator[bytes]:
        assert self._item is not None
        self._item["content"][0]["text"] += text
        where = self._where("content_index")
        for piece in pieces(text):
            yield self._event("response.output_text.delta", **where, delta=piece, logprobs=[])

    def _thinking(self, text: str) -> Iterator[bytes]:
        assert self._item is not None
        self._item["summary"][0]["text"] += text
        where = self._where("summary_index")
        for piece in pieces(text):
            yield self._event("response.reasoning_summary_text.delta", **where, delta=piece)

    def _tool_call(self, call: ToolCall) -> Iterator[bytes]:
        arguments = json.dumps(call.input, ensure_ascii=False)
        item: dict[str, Any] = {"type": "function_call", "id": self._call.server.new_id("fc_"), "call_id": call.id}
        item |= {"name": call.name, "arguments": "", "status": "in_progress"}
        self._body["output"].append(item)
        where = {"output_index": self._at, "item_id": item["id"]}
        yield self._event("response.output_item.added", output_index=self._at, item=item)
        for piece in pieces(arguments):
            yield self._event("response.function_call_arguments.delta", **where, delta=piece)
        item |= {"arguments": arguments, "status": "completed"}
        yield self._event("response.function_call_arguments.done", **where, arguments=arguments)
        yield self._event("response.output_item.done", output_index=self._at, item=item)

    def _close(self, status: str) -> Iterator[bytes]:
        """The end of the open message or reasoning item, if there is one."""
        item, self._item = self._item, None
        if item is None:
            return
        if item["type"] == "message":
            part = item["content"][0]
            item["status"] = status
            where = {"item_id": item["id"], "output_index": self._at, "content_index": 0}
            yield self._event("response.output_text.done", **where, text=part["text"], logprobs=[])
            yield self._event("response.content_part.done", **where, part=part)
        else:
            part = item["summary"][0]
            where = {"item_id": item["id"], "output_index": self._at, "summary_index": 0}
            yield self._event("response.reasoning_summary_text.done", **where, text=part["text"])
            yield self._event("response.reasoning_summary_part.done", **where, part=part)
        yield self._event("response.output_item.done", output_index=self._at, item=item)

    def _end(self, done: Done) -> Iterator[bytes]:
        cut = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}.get(done.reason)
        status = "incomplete" if cut else "completed"
        yield from self._close(status)
        given, cached, made = counted(done, self._given, self._cached)
        self._body["status"] = status
        self._body["incomplete_details"] = {"reason": cut} if cut else None
        self._body["usage"] = {
            "input_tokens": given,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
            "output_tokens": made,
            "output_tokens_details": {"reasoning_tokens": done.thinking_tokens},
            "total_tokens": given + made,
        }
        if self.on_end is not None:
            self.on_end(self._body)
        yield self._event(f"response.{status}", response=self._body)

    def _mid_fault(self, fault: Fault) -> Iterator[Piece]:
        match fault.kind:
            case "status":
                error = error_body("openai", status_error(fault), self._call.request_id)["error"]
                code = "rate_limit_exceeded" if fault.status == 429 else "server_error"
                self._body |= {"status": "failed", "error": {"code": code, "message": error["message"]}}
                yield self._event("error", code=code, message=error["message"], param=None)
                yield self._event("response.failed", response=self._body)
            case "drop":
                yield Drop()
            case "stall":
                yield STALL
            case "malformed":
                yield b'event: response.output_text.delta\ndata: {"type": "response.output_text.delta", \n\n'
            case "html":
                yield HTML
            case "empty":
                return

    @property
    def _at(self) -> int:
        return len(self._body["output"]) - 1

    def _where(self, index: str) -> dict[str, Any]:
        assert self._item is not None
        return {"item_id": self._item["id"], "output_index": self._at, index: 0}

    def _event(self, kind: str, **fields: Any) -> bytes:
        data = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        return f"event: {kind}\ndata: {text}\n\n".encode("utf-8", "surrogatepass")
