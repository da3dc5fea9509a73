"""The Anthropic Messages wire: a tuned request as its body, and its stream as events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ..errors import BadAnswer, InputError, Overloaded, RateLimited, ServerError, StatusError
from ..reply import BlockDelta, Finish, Start, StreamEvent, TextDelta, ThinkingDelta, Usage
from .decoder import StreamDecoder
from .failure import Failure

if TYPE_CHECKING:
    from ..errors import SendError
    from ..prepared import Tuned

Json = Mapping[str, Any]

_EVENT_ERRORS: dict[str, tuple[type[SendError], int]] = {
    "overloaded_error": (Overloaded, 529),
    "rate_limit_error": (RateLimited, 429),
    "api_error": (ServerError, 500),
    "timeout_error": (ServerError, 504),
}


class AnthropicWire:
    """POST /v1/messages, streamed."""

    path = "/v1/messages"
    auth_header = "authorization"

    def headers(self, tuned: Tuned) -> dict[str, str]:
        """The version is always sent, so that what leaves does not depend on the SDK's default."""
        return {
            "anthropic-version": tuned.version,
            "content-type": "application/json",
            **tuned.request.extra_headers,
        }

    def body(self, tuned: Tuned) -> Json:
        """The body, in the order that keeps cached prefixes: tools, system, parameters, messages."""
        request = tuned.request
        body: dict[str, Any] = {}
        if tuned.tools:
            body["tools"] = [_tool(tool, index) for index, tool in enumerate(tuned.tools)]
        if tuned.system:
            body["system"] = tuned.system
        body["model"] = tuned.route.model.id
        body["max_tokens"] = tuned.max_tokens
        if tuned.temperature is not None:
            body["temperature"] = tuned.temperature
        if request.stop:
            body["stop_sequences"] = list(request.stop)
        if request.tool_choice is not None:
            body["tool_choice"] = _tool_choice(request.tool_choice)
        config: dict[str, Any] = {}
        if tuned.effort is not None:
            config["effort"] = tuned.effort
        if tuned.schema is not None:
            config["format"] = {"type": "json_schema", "schema": tuned.schema}
        if config:
            body["output_config"] = config
        body.update((key, value) for key, value in tuned.extra.items() if key not in ("messages", "stream"))
        body["stream"] = True
        body["messages"] = [_message(message, index) for index, message in enumerate(tuned.messages)]
        return body

    def decoder(self) -> AnthropicDecoder:
        """A fresh decoder."""
        return AnthropicDecoder()


def _tool(tool: Json, index: int) -> Json:
    """A tool in this wire's shape; OpenAI's shape of a function is turned."""
    if tool.get("type") != "function":
        return tool
    function = cast("Json", tool.get("function") or tool)
    if "name" not in function:
        raise InputError("a function tool needs a name", where=f"tools[{index}]")
    turned: dict[str, Any] = {"name": function["name"]}
    if function.get("description"):
        turned["description"] = function["description"]
    turned["input_schema"] = function.get("parameters") or {"type": "object", "properties": {}}
    return turned


def _tool_choice(choice: str | Json) -> Json:
    if isinstance(choice, str):
        word = "any" if choice == "required" else choice
        return {"type": word} if word in ("auto", "any", "none") else {"type": "tool", "name": word}
    if choice.get("type") == "function":
        return {"type": "tool", "name": choice.get("function", choice)["name"]}
    return choice


def _message(message: Json, index: int) -> Json:
    content = message["content"]
    if isinstance(content, str) or all(block["type"] not in ("image_url", "input_audio", "file") for block in content):
        return message
    where = f"messages[{index}].content"
    return {**message, "content": [_block(block, f"{where}[{n}]") for n, block in enumerate(content)]}


def _block(block: Json, where: str) -> Json:
    kind = block["type"]
    if kind == "image_url":
        url = block["image_url"] if isinstance(block["image_url"], str) else block["image_url"]["url"]
        head, comma, data = url.partition(",")
        if head.startswith("data:") and comma:
            media = head[5:].partition(";")[0]
            return {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}
        return {"type": "image", "source": {"type": "url", "url": url}}
    if kind in ("input_audio", "file"):
        raise InputError(f"a {kind} block has no twin on the Anthropic wire", where=where)
    return block


class AnthropicDecoder(StreamDecoder):
    """Reads one Messages stream."""

    __slots__ = ("_blocks",)

    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, dict[str, Any]] = {}

    def feed_event(self, event: Json) -> list[StreamEvent]:
        """The events of one parsed wire event."""
        kind = event.get("type")
        if kind == "content_block_delta":
            return self._delta(event["index"], event["delta"])
        if kind == "content_block_start":
            self._blocks[event["index"]] = block = dict(event["content_block"])
            if block["type"] == "text" and block.get("text"):
                self._texts.append(block["text"])
                return [TextDelta(block["text"])]
        elif kind == "message_start":
            message = event["message"]
            self.id, self.model = message.get("id"), message.get("model")
            self.usage = _usage(message.get("usage") or {}, Usage())
            return [Start(self.id, self.model, self.usage)]
        elif kind == "content_block_stop":
            self._close(event["index"])
        elif kind == "message_delta":
            self.stop_reason = event["delta"].get("stop_reason") or self.stop_reason
            self.usage = _usage(event.get("usage") or {}, self.usage)
        elif kind == "message_stop":
            self.complete = True
            return [Finish(self.stop_reason, self.usage)]
        elif kind == "error":
            raise _event_failure(event.get("error") or {})
        return []

    def feed_whole(self, body: Json) -> list[StreamEvent]:
        """The events of an answer that came in one piece, as some gateways send it."""
        if body.get("type") == "error":
            raise _event_failure(body.get("error") or {})
        if body.get("type") != "message" or not isinstance(body.get("content"), list):
            raise Failure(BadAnswer, "the JSON body is no message")
        self.id, self.model, self.stop_reason = body.get("id"), body.get("model"), body.get("stop_reason")
        self.usage = _usage(body.get("usage") or {}, Usage())
        events: list[StreamEvent] = [Start(self.id, self.model, self.usage)]
        for index, block in enumerate(body["content"]):
            self._blocks[index] = dict(block)
            if block["type"] == "text":
                self._texts.append(block["text"])
                events.append(TextDelta(block["text"]))
            else:
                events.append(BlockDelta(index, block))
        self.complete = True
        return [*events, Finish(self.stop_reason, self.usage)]

    def _delta(self, index: int, delta: Json) -> list[StreamEvent]:
        kind = delta["type"]
        block = self._blocks.setdefault(index, {"type": "text", "text": ""})
        if kind == "text_delta":
            text = delta["text"]
            self._texts.append(text)
            block.setdefault("_parts", []).append(text)
            return [TextDelta(text)] if text else []
        if kind == "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta["thinking"]
            return [ThinkingDelta(delta["thinking"])]
        if kind == "input_json_delta":
            block["_json"] = block.get("_json", "") + delta["partial_json"]
        elif kind == "signature_delta":
            block["signature"] = delta["signature"]
        elif kind == "citations_delta":
            block.setdefault("citations", []).append(delta["citation"])
        return [BlockDelta(index, delta)]

    def _close(self, index: int) -> None:
        block = self._blocks.get(index, {})
        if "_json" in block:
            arguments = block.pop("_json")
            try:
                block["input"] = json.loads(arguments, strict=False) if arguments else {}
            except ValueError:
                raise Failure(BadAnswer, "the arguments of a tool call are not JSON") from None

    def content(self) -> tuple[Json, ...]:
        """The blocks so far, in order. Empty text is left out: the API gives such blocks and rejects them later."""
        blocks = (_block_of(self._blocks[index]) for index in sorted(self._blocks))
        return tuple(block for block in blocks if block["type"] != "text" or block["text"])


def _block_of(block: dict[str, Any]) -> Json:
    parts = block.pop("_parts", None)
    if parts is not None:
        block["text"] = block.get("text", "") + "".join(parts)
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


def _event_failure(error: Json) -> Failure:
    kind = str(error.get("type") or "error")
    error_class, status = _EVENT_ERRORS.get(kind, (StatusError, None))
    return Failure(error_class, f"{kind}: {error.get('message') or 'no message'}"[:500], status=status, error_type=kind)
