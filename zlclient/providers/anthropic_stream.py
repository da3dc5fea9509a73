"""How an Anthropic Messages answer is read: its events, and its blocks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from ..errors import BadAnswer
from ..reply import BlockDelta, Finish, Start, StreamEvent, TextDelta, ThinkingDelta, Usage
from .decoder import StreamDecoder, event_failure
from .failure import Failure
from .surrogates import mended, mended_value

Json = Mapping[str, Any]

# The API's error types and the statuses they come with when nothing was streamed yet.
_ERRORS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class AnthropicDecoder(StreamDecoder):
    """Reads one Messages stream."""

    __slots__ = ("_blocks",)

    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, dict[str, Any]] = {}

    def _event(self, event: Json) -> list[StreamEvent]:
        kind = event.get("type")
        if kind == "content_block_delta":
            return self._delta(event["index"], event["delta"])
        if kind == "content_block_start":
            self._blocks[event["index"]] = block = mended_value(event["content_block"])
            if block["type"] == "text":
                return self._told(block.get("text", ""))
        elif kind == "message_start":
            message = event["message"]
            self.id, self.model = message.get("id"), message.get("model")
            self.usage = _usage(message.get("usage") or {}, Usage())
            return [Start(self.id, self.model, self.usage)]
        elif kind == "content_block_stop":
            return self._close(event["index"])
        elif kind == "message_delta":
            self.stop_reason = event["delta"].get("stop_reason") or self.stop_reason
            self.usage = _usage(event.get("usage") or {}, self.usage)
        elif kind == "message_stop":
            rest = self._close(max(self._blocks)) if self._blocks else []
            self.complete = True
            return [*rest, Finish(self.stop_reason, self.usage)]
        elif kind == "error":
            raise event_failure(event.get("error") or {}, _ERRORS)
        return []

    def _whole(self, body: Json) -> list[StreamEvent]:
        if body.get("type") == "error":
            raise event_failure(body.get("error") or {}, _ERRORS)
        if body.get("type") != "message" or not isinstance(body.get("content"), list):
            raise Failure(BadAnswer, "the JSON body is no message")
        self.id, self.model, self.stop_reason = body.get("id"), body.get("model"), body.get("stop_reason")
        self.usage = _usage(body.get("usage") or {}, Usage())
        events: list[StreamEvent] = [Start(self.id, self.model, self.usage)]
        for index, block in enumerate(body["content"]):
            self._blocks[index] = dict(block)
            if block["type"] == "text":
                events.extend(self._told(block["text"]))
            else:
                events.append(BlockDelta(index, block))
        self.complete = True
        return [*events, Finish(self.stop_reason, self.usage)]

    def _delta(self, index: int, delta: Json) -> list[StreamEvent]:
        kind = delta["type"]
        block = self._blocks.setdefault(index, {"type": "text", "text": ""})
        if kind == "text_delta":
            return _kept(block, self._said(delta["text"]))
        if kind == "thinking_delta":
            return _kept(block, self._reasoned(delta["thinking"]))
        if kind == "input_json_delta":
            block["_json"] = block.get("_json", "") + delta["partial_json"]
        elif kind == "signature_delta":
            block["signature"] = delta["signature"]
        elif kind == "citations_delta":
            block.setdefault("citations", []).append(mended_value(delta["citation"]))
        return [BlockDelta(index, delta)]

    def _close(self, index: int) -> list[StreamEvent]:
        block = self._blocks.get(index, {})
        if "_json" in block:
            arguments = mended(block.pop("_json"))
            try:
                block["input"] = mended_value(json.loads(arguments, strict=False)) if arguments else {}
            except (ValueError, RecursionError):
                raise Failure(BadAnswer, "the arguments of a tool call are not JSON") from None
        return _kept(block, self._rest())

    def content(self) -> tuple[Json, ...]:
        """The blocks so far, in order. Empty text is left out: the API gives such blocks and rejects them later."""
        blocks = (_block_of(self._blocks[index]) for index in sorted(self._blocks))
        return tuple(block for block in blocks if block["type"] != "text" or block["text"])


def _kept(block: dict[str, Any], events: list[StreamEvent]) -> list[StreamEvent]:
    """`events`, their pieces of text or reasoning noted in their block."""
    for event in events:
        if isinstance(event, TextDelta | ThinkingDelta):
            block.setdefault("_parts", []).append(event.text)
    return events


def _block_of(block: dict[str, Any]) -> Json:
    parts = block.pop("_parts", None)
    if parts is not None:
        key = "thinking" if block["type"] == "thinking" else "text"
        block[key] = block.get(key, "") + "".join(parts)
    block.pop("_json", None)
    if block["type"] == "text" and block.get("citations") is None:
        block.pop("citations", None)
    return block


def _usage(found: Json, before: Usage) -> Usage:
    """Counts are cumulative: a later event replaces what it names and leaves the rest (no input_tokens: kept)."""

    def count(name: str, old: int) -> int:
        value = found.get(name)
        return old if value is None else int(value)

    details = cast("Json", found.get("output_tokens_details") or {})
    return Usage(
        input=count("input_tokens", before.input),
        output=count("output_tokens", before.output),
        cache_read=count("cache_read_input_tokens", before.cache_read),
        cache_write=count("cache_creation_input_tokens", before.cache_write),
        reasoning=int(details.get("thinking_tokens") or details.get("reasoning_tokens") or before.reasoning),
    )
