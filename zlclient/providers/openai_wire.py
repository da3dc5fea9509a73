"""The OpenAI Chat Completions wire, which every compatible server speaks: a tuned request as its body.

What has a twin is carried: a tool result's `is_error` as the words "[tool error]" before its text, since a tool message
has no such field. What has none and would be missed, such as an image in a tool result, is an InputError.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from ..errors import InputError
from .losses import left_out, unknown_keys
from .openai_stream import OpenAIDecoder
from .passthrough import add_extra, lower_case

if TYPE_CHECKING:
    from ..prepared import Tuned
    from ..reply import Adjustment

Json = Mapping[str, Any]

TOOL_ERROR = "[tool error]"
_TOOL = frozenset(["type", "name", "description", "input_schema", "strict"])
# What is carried of each block; a text document becomes a text, which has no title.
_CARRIED = {
    "text": frozenset(["type", "text"]),
    "image": frozenset(["type", "source"]),
    "document": frozenset(["type", "source", "title"]),
    "tool_use": frozenset(["type", "id", "name", "input"]),
    "tool_result": frozenset(["type", "tool_use_id", "content", "is_error"]),
}
_REASONING = ("thinking", "redacted_thinking")


class OpenAIWire:
    """POST /chat/completions, streamed, with usage in the last chunk."""

    path = "/chat/completions"
    auth_header = "authorization"

    def headers(self, tuned: Tuned) -> dict[str, str]:
        """Content type and what the caller adds."""
        return {"content-type": "application/json", **lower_case(tuned.request.extra_headers)}

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
            if _is_one_by_one(request.tool_choice):
                body["parallel_tool_calls"] = False
        if tuned.effort is not None:
            body["reasoning_effort"] = tuned.effort
        if tuned.schema is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": _output(tuned)}
        add_extra(body, tuned.extra)
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

    def dropped(self, tuned: Tuned) -> tuple[Adjustment, ...]:
        """What is only in Anthropic's shapes: cache marks, reasoning, citations, titles of texts."""
        return left_out(_losses(tuned), "OpenAI")

    def decoder(self) -> OpenAIDecoder:
        """A fresh decoder."""
        return OpenAIDecoder()


def _output(tuned: Tuned) -> Json:
    """The schema, named as the API allows (ASCII letters, digits, "_" and "-", at most 64)."""
    name = re.sub(r"[^\w-]", "_", tuned.schema_name, flags=re.ASCII)[:64]
    return {"name": name, "schema": tuned.schema, "strict": True}


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
    if tool.get("strict") is not None:
        function["strict"] = tool["strict"]
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


def _is_one_by_one(choice: str | Json) -> bool:
    return isinstance(choice, Mapping) and choice.get("disable_parallel_tool_use") is True


def _messages(message: Json, where: str) -> list[Json]:
    """One neutral message as one or more of this wire's: tool results become messages of their own."""
    content, role = message["content"], message["role"]
    if isinstance(content, str):
        return [message]
    name = {"name": message["name"]} if message.get("name") is not None else {}
    parts: list[Json] = []
    results: list[Json] = []
    calls: list[Json] = []
    for index, block in enumerate(content):
        kind = block["type"]
        if kind == "tool_result":
            result = _result(block, f"{where}[{index}]")
            results.append({"role": "tool", "tool_call_id": block["tool_use_id"], "content": result})
        elif kind == "tool_use":
            arguments = json.dumps(block["input"], ensure_ascii=False)
            function = {"name": block["name"], "arguments": arguments}
            calls.append({"id": block["id"], "type": "function", "function": function})
        elif kind not in _REASONING:
            parts.append(_part(block, f"{where}[{index}]"))
    if role == "assistant" and len(parts) == 1 and parts[0]["type"] == "text":
        said: Any = parts[0]["text"]  # some compatible servers take an assistant's content as a string only
    else:
        said = parts or None
    if calls:
        return [*results, {"role": role, **name, "content": said, "tool_calls": calls}]
    return [*results, {"role": role, **name, "content": said}] if parts else results


def _result(block: Json, where: str) -> Any:
    """The content of a tool message: a text, or text parts."""
    content, failed = block.get("content") or "", block.get("is_error") is True
    if isinstance(content, str):
        return f"{TOOL_ERROR} {content}" if failed else content
    parts: list[Json] = []
    for index, part in enumerate(content):
        place = f"{where}.content[{index}]"
        parts.append(_part(part, place))
        if parts[-1]["type"] != "text":
            raise InputError(
                f"a tool result takes no {part['type']} on the OpenAI wire; put it in a user turn", where=place
            )
    return [{"type": "text", "text": TOOL_ERROR}, *parts] if failed else parts


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


def _losses(tuned: Tuned) -> Iterator[tuple[str, str]]:
    if isinstance(tuned.system, tuple):
        for index, block in enumerate(tuned.system):
            yield from unknown_keys(block, _CARRIED["text"], f"system[{index}]")
    for index, tool in enumerate(tuned.tools):
        if "input_schema" in tool:
            yield from unknown_keys(tool, _TOOL, f"tools[{index}]")
    for index, message in enumerate(tuned.messages):
        if not isinstance(message["content"], str):
            yield from _block_losses(message["content"], f"messages[{index}].content")


def _block_losses(blocks: Any, where: str) -> Iterator[tuple[str, str]]:
    for index, block in enumerate(blocks):
        kind, place = block["type"], f"{where}[{index}]"
        if kind in _REASONING:
            yield "thinking", place
        elif kind in _CARRIED:
            yield from unknown_keys(block, _CARRIED[kind], place)
        if kind == "tool_result" and isinstance(block.get("content"), list):
            yield from _block_losses(block["content"], f"{place}.content")
        if kind == "document" and block.get("title") and block["source"].get("type") == "text":
            yield "title", place
