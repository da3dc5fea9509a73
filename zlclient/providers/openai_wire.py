"""The OpenAI Chat Completions wire, which every compatible server speaks: requests as bodies, streams as events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ..errors import BadAnswer, InputError, ServerError
from ..reply import BlockDelta, Finish, Start, StreamEvent, TextDelta, ThinkingDelta, Usage
from .decoder import StreamDecoder
from .failure import Failure

if TYPE_CHECKING:
    from ..prepared import Tuned

Json = Mapping[str, Any]

# finish_reason in the neutral words
_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


class OpenAIWire:
    """POST /chat/completions, streamed, with usage in the last chunk."""

    path = "/chat/completions"
    auth_header = "authorization"

    def headers(self, tuned: Tuned) -> dict[str, str]:
        """Content type and what the caller adds."""
        return {"content-type": "application/json", **tuned.request.extra_headers}

    def body(self, tuned: Tuned) -> Json:
        """The body, in the order that keeps cached prefixes: tools, parameters, then system and messages."""
        request = tuned.request
        body: dict[str, Any] = {}
        if tuned.tools:
            body["tools"] = [_tool(tool, index) for index, tool in enumerate(tuned.tools)]
        body["model"] = tuned.route.model.id
        body[tuned.max_tokens_param] = tuned.max_tokens
        if tuned.temperature is not None:
            body["temperature"] = tuned.temperature
        if request.stop:
            body["stop"] = list(request.stop)
        if request.tool_choice is not None:
            body["tool_choice"] = _tool_choice(request.tool_choice)
        if tuned.effort is not None:
            body["reasoning_effort"] = tuned.effort
        if tuned.schema is not None:
            schema = {"name": tuned.schema_name, "schema": tuned.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        body.update((key, value) for key, value in tuned.extra.items() if key not in ("messages", "stream"))
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
        messages: list[Json] = []
        if tuned.system:
            text = tuned.system if isinstance(tuned.system, str) else _system_parts(tuned.system)
            messages.append({"role": "system", "content": text})
        for index, message in enumerate(tuned.messages):
            messages.extend(_messages(message, f"messages[{index}].content"))
        body["messages"] = messages
        return body

    def decoder(self) -> OpenAIDecoder:
        """A fresh decoder."""
        return OpenAIDecoder()


def _system_parts(system: tuple[Json, ...]) -> list[Json]:
    return [{"type": "text", "text": block["text"]} for block in system if block.get("type") == "text"]


def _tool(tool: Json, index: int) -> Json:
    """A tool in this wire's shape; Anthropic's shape is turned."""
    if tool.get("type") == "function":
        return (
            tool
            if "function" in tool
            else {"type": "function", "function": {k: v for k, v in tool.items() if k != "type"}}
        )
    if "name" not in tool or "input_schema" not in tool:
        raise InputError("has no twin on the OpenAI wire; give a name and an input_schema", where=f"tools[{index}]")
    function: dict[str, Any] = {"name": tool["name"], "parameters": tool["input_schema"]}
    if tool.get("description"):
        function["description"] = tool["description"]
    return {"type": "function", "function": function}


def _tool_choice(choice: str | Json) -> str | Json:
    kind: str = choice if isinstance(choice, str) else choice.get("type", "")
    if kind in ("auto", "none", "required"):
        return kind
    if kind == "any":
        return "required"
    if isinstance(choice, str):
        return {"type": "function", "function": {"name": choice}}
    return {"type": "function", "function": {"name": choice["name"]}} if kind == "tool" else choice


def _messages(message: Json, where: str) -> list[Json]:
    """One neutral message as one or more of this wire's: tool results become messages of their own."""
    content, role = message["content"], message["role"]
    if isinstance(content, str):
        return [message]
    parts: list[Json] = []
    results: list[Json] = []
    calls: list[Json] = []
    for index, block in enumerate(content):
        kind = block["type"]
        if kind == "tool_result":
            results.append({"role": "tool", "tool_call_id": block["tool_use_id"], "content": _result_text(block)})
        elif kind == "tool_use":
            arguments = json.dumps(block["input"], ensure_ascii=False)
            function = {"name": block["name"], "arguments": arguments}
            calls.append({"id": block["id"], "type": "function", "function": function})
        elif kind not in ("thinking", "redacted_thinking"):
            parts.append(_part(block, f"{where}[{index}]"))
    if calls:
        return [{"role": role, "content": parts or None, "tool_calls": calls}]
    return [*results, {"role": role, "content": parts}] if parts else results


def _result_text(block: Json) -> Any:
    content = block.get("content", "")
    if isinstance(content, str):
        return content
    return [{"type": "text", "text": part["text"]} for part in content if part.get("type") == "text"]


def _part(block: Json, where: str) -> Json:
    kind = block["type"]
    source = cast("Json", block.get("source") or {})
    if kind == "text":
        return {"type": "text", "text": block["text"]}
    if kind == "image" and source.get("type") == "base64":
        return {"type": "image_url", "image_url": {"url": f"data:{source['media_type']};base64,{source['data']}"}}
    if kind == "image" and source.get("type") == "url":
        return {"type": "image_url", "image_url": {"url": source["url"]}}
    if kind == "document" and source.get("type") == "text":
        return {"type": "text", "text": source["data"]}
    if kind == "document" and source.get("type") == "base64":
        data = f"data:{source['media_type']};base64,{source['data']}"
        return {"type": "file", "file": {"filename": block.get("title") or "document", "file_data": data}}
    if kind in ("image", "document"):
        raise InputError(f"this kind of {kind} source has no twin on the OpenAI wire", where=where)
    return block


class OpenAIDecoder(StreamDecoder):
    """Reads one Chat Completions stream."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        super().__init__()
        self._calls: dict[int, dict[str, str]] = {}

    def feed_event(self, event: Json) -> list[StreamEvent]:
        """The events of one parsed chunk."""
        if event.get("error"):
            raise _event_failure(event["error"])
        found: list[StreamEvent] = []
        if self.id is None:
            self.id, self.model = event.get("id"), event.get("model")
            found.append(Start(self.id, self.model))
        if event.get("usage"):
            self.usage = _usage(event["usage"])
        for choice in event.get("choices") or ():  # the chunk that carries usage has none
            found.extend(self._delta(choice.get("delta") or {}))
            reason = choice.get("finish_reason")
            if reason:
                self.stop_reason = _STOP_REASONS.get(reason, reason)
        return found

    def feed_whole(self, body: Json) -> list[StreamEvent]:
        """The events of an answer that came in one piece."""
        if body.get("error"):
            raise _event_failure(body["error"])
        choices = body.get("choices")
        if not isinstance(choices, list) or not choices:
            raise Failure(BadAnswer, "the JSON body is no chat completion")
        choice = cast("Json", choices[0])
        message = cast("Json", choice.get("message") or {})
        calls: list[Json] = [{**call, "index": i} for i, call in enumerate(message.get("tool_calls") or ())]
        delta = {**message, "tool_calls": calls}
        choice = {"delta": delta, "finish_reason": choice.get("finish_reason") or "stop"}
        return [*self.feed_event({**body, "choices": [choice]}), *self.end()]

    def end(self) -> list[StreamEvent]:
        """Some servers close without [DONE]: an answer that gave its finish reason is whole."""
        if self.complete or self.stop_reason is None:
            return []
        self.complete = True
        return [Finish(self.stop_reason, self.usage)]

    def _delta(self, delta: Json) -> list[StreamEvent]:
        found: list[StreamEvent] = []
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(thought, str) and thought:
            found.append(ThinkingDelta(thought))
        text = delta.get("content")
        if text:
            self._texts.append(text)
            found.append(TextDelta(text))
        if delta.get("refusal"):
            self._texts.append(delta["refusal"])
            found.append(TextDelta(delta["refusal"]))
        for call in delta.get("tool_calls") or ():
            index = call.get("index", 0)
            known = self._calls.setdefault(index, {"id": "", "name": "", "arguments": ""})
            function = cast("Json", call.get("function") or {})
            known["id"] = call.get("id") or known["id"]
            known["name"] = function.get("name") or known["name"]
            known["arguments"] += function.get("arguments") or ""
            found.append(BlockDelta(index, call))
        return found

    def content(self) -> tuple[Json, ...]:
        """The blocks so far, in the neutral form."""
        blocks: list[Json] = []
        if self.text:
            blocks.append({"type": "text", "text": self.text})
        for call in self._calls.values():
            try:
                arguments = json.loads(call["arguments"] or "{}", strict=False)
            except ValueError:
                raise Failure(BadAnswer, "the arguments of a tool call are not JSON") from None
            blocks.append({"type": "tool_use", "id": call["id"], "name": call["name"], "input": arguments})
        return tuple(blocks)


def _usage(found: Json) -> Usage:
    prompt = cast("Json", found.get("prompt_tokens_details") or {})
    completion = cast("Json", found.get("completion_tokens_details") or {})
    cached, written = int(prompt.get("cached_tokens") or 0), int(prompt.get("cache_write_tokens") or 0)
    return Usage(
        input=max(0, int(found.get("prompt_tokens") or 0) - cached - written),
        output=int(found.get("completion_tokens") or 0),
        cache_read=cached,
        cache_write=written,
        reasoning=int(completion.get("reasoning_tokens") or 0),
    )


def _event_failure(error: Any) -> Failure:
    told = cast("Json", error) if isinstance(error, Mapping) else {"message": str(error)}
    message = f"{told.get('type') or 'error'}: {told.get('message') or 'no message'}"[:500]
    return Failure(ServerError, message, error_type=told.get("type"))
