"""The Anthropic Messages wire: a tuned request as its body."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from ..errors import InputError
from .anthropic_stream import AnthropicDecoder
from .losses import left_out, unknown_keys
from .passthrough import add_extra, lower_case

if TYPE_CHECKING:
    from ..prepared import Tuned
    from ..reply import Adjustment

Json = Mapping[str, Any]

_FUNCTION = frozenset(["type", "name", "description", "parameters", "strict"])  # what is carried of OpenAI's function
_TURNED = ("image_url", "input_audio", "file")  # OpenAI's blocks


class AnthropicWire:
    """POST /v1/messages, streamed."""

    path = "/v1/messages"
    auth_header = "authorization"

    def headers(self, tuned: Tuned) -> dict[str, str]:
        """The version is always sent, so that what leaves does not depend on the SDK's default."""
        return {
            "anthropic-version": tuned.version,
            "content-type": "application/json",
            **lower_case(tuned.request.extra_headers),
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
        add_extra(body, tuned.extra)
        body["stream"] = True
        messages = (_message(message, index) for index, message in enumerate(tuned.messages))
        body["messages"] = [message for message in messages if message["content"]]
        return body

    def dropped(self, tuned: Tuned) -> tuple[Adjustment, ...]:
        """What is only in OpenAI's shapes: a message's `name`, an image's `detail`, reasoning without a signature."""
        return left_out(_losses(tuned), "Anthropic")

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
    if function.get("strict") is not None:
        turned["strict"] = function["strict"]
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
    if not isinstance(content, str) and any(block["type"] in _TURNED or _is_unsigned(block) for block in content):
        where = f"messages[{index}].content"
        content = [_block(block, f"{where}[{n}]") for n, block in enumerate(content) if not _is_unsigned(block)]
    if content is message["content"] and "name" not in message:
        return message
    return {"role": message["role"], "content": content}


def _is_unsigned(block: Json) -> bool:
    """Reasoning that another wire's model wrote: this API rejects a thinking block without its own signature."""
    return block["type"] == "thinking" and not block.get("signature")


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


def _losses(tuned: Tuned) -> Iterator[tuple[str, str]]:
    for index, tool in enumerate(tuned.tools):
        if tool.get("type") == "function":
            yield from unknown_keys(tool.get("function") or tool, _FUNCTION, f"tools[{index}]")
    for index, message in enumerate(tuned.messages):
        if message.get("name") is not None:
            yield "name", f"messages[{index}]"
        content = message["content"]
        if isinstance(content, str):
            continue
        for position, block in enumerate(content):
            where = f"messages[{index}].content[{position}]"
            if _is_unsigned(block):
                yield "thinking", where
            elif block["type"] == "image_url" and isinstance(block["image_url"], Mapping):
                yield from unknown_keys(cast("Json", block["image_url"]), frozenset(["url"]), where)
