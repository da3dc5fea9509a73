"""A conversation from whatever the caller handed in, in the neutral form; every field that is read later is checked.

The neutral form is Anthropic's: `{"role": "user" | "assistant", "content": str | [block, …]}`, with `text`, `image`,
`document`, `tool_use` and `tool_result` blocks. OpenAI's shapes of the same things (a `system` message, `tool_calls`, a
`tool` message) are turned into it; blocks of either wire that have no twin on the other pass through, but for the
fields that the stages behind this one read. What passes here either leaves on a wire or is refused by it as InputError.

No error repeats a value: it is, or may hold, prompt text.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping, Sequence
from typing import Any, cast

from .errors import InputError

Json = Mapping[str, Any]


def conversation(prompt: Any) -> tuple[tuple[Json, ...], list[Json]]:
    """(messages in the neutral form, system blocks found among them).

    Raises:
        InputError: something has the wrong shape, or there is no message; `where` names the field.
    """
    if isinstance(prompt, str):
        return ({"role": "user", "content": prompt},), []
    if not _is_list(prompt):
        kind = type(prompt).__name__
        raise InputError(f"must be a string, a list of messages or a rendered template, not {kind}", where="prompt")
    system: list[Json] = []
    messages: list[Json] = []
    for index, message in enumerate(cast("Sequence[Any]", prompt)):
        where = f"messages[{index}]"
        if not isinstance(message, Mapping) or "role" not in message:
            raise InputError('must be a mapping with "role" and "content"', where=where)
        message = cast("Json", message)
        role, content = message["role"], message.get("content")
        if role in ("system", "developer"):
            system.extend(system_blocks(content, f"{where}.content"))
        elif role == "tool":
            messages.append(_tool_message(message, where))
        elif role == "assistant" and message.get("tool_calls"):
            messages.append(_calling_message(message, where))
        elif role in ("user", "assistant"):
            named = {"name": message["name"]} if isinstance(message.get("name"), str) else {}
            messages.append({"role": role, "content": _content(content, f"{where}.content"), **named})
        else:
            raise InputError("must be user, assistant, system, developer or tool", where=f"{where}.role")
    if not messages:
        raise InputError("there is no message to answer", where="messages")
    return tuple(messages), system


def system_blocks(system: Any, where: str = "system") -> list[Json]:
    """The text blocks of a system prompt; none of None and of an empty string.

    Raises:
        InputError: it is neither a string nor a list of text blocks.
    """
    if system is None or system == "":
        return []
    if isinstance(system, str):
        return [{"type": "text", "text": system}]
    if not _is_list(system):
        raise InputError("must be a string or a list of text blocks", where=where)
    blocks: list[Json] = []
    for index, block in enumerate(cast("Sequence[Any]", system)):
        at = f"{where}[{index}]"
        if not isinstance(block, Mapping) or cast("Json", block).get("type") != "text":
            raise InputError('must be a mapping with "type": "text"', where=at)
        _text_field(cast("Json", block), "text", at)
        blocks.append(dict(cast("Json", block)))
    return blocks


def joined_system(blocks: list[Json]) -> str | tuple[Json, ...] | None:
    """Plain text blocks join to one string; blocks with anything more (cache_control …) stay blocks."""
    if any(block.keys() - {"type", "text"} for block in blocks):
        return tuple(blocks)
    return "\n\n".join(block["text"] for block in blocks) or None


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview)


def _content(content: Any, where: str) -> Any:
    """A message's content: the very object where nothing had to be turned."""
    if isinstance(content, str):
        return content
    if not _is_list(content):
        raise InputError("must be a string or a list of content blocks", where=where)
    return _blocks(content, where)


def _blocks(blocks: Any, where: str, *, in_result: bool = False) -> list[Json]:
    checked = [_block(block, f"{where}[{index}]", in_result) for index, block in enumerate(blocks)]
    unturned = isinstance(blocks, list) and all(map(operator.is_, checked, cast("list[Any]", blocks)))
    return cast("list[Json]", blocks) if unturned else checked


def _block(block: Any, where: str, in_result: bool) -> Json:
    if not isinstance(block, Mapping):
        raise InputError('must be a mapping with "type"', where=where)
    block = cast("Json", block)
    kind = block.get("type")
    if not isinstance(kind, str) or not kind:
        raise InputError('must be a mapping with "type"', where=where)
    if kind == "text" or "text" in block:
        _text_field(block, "text", where)
    if kind in ("image", "document"):
        _check_source(block.get("source"), f"{where}.source")
    elif kind == "image_url":
        _check_image_url(block.get("image_url"), f"{where}.image_url")
    elif kind == "tool_use":
        _name_field(block, "id", where)
        _name_field(block, "name", where)
        _mapping_field(block, "input", where)
    elif kind == "tool_result":
        if in_result:
            raise InputError("a tool_result cannot hold another", where=where)
        return _tool_result(block, where)
    return block


def _tool_result(block: Json, where: str) -> Json:
    _name_field(block, "tool_use_id", where)
    content = block.get("content", "")
    if isinstance(content, str):
        return block
    if not _is_list(content):
        raise InputError("must be a string or a list of content blocks", where=f"{where}.content")
    checked = _blocks(content, f"{where}.content", in_result=True)
    return block if checked is content else {**block, "content": checked}


def _check_source(source: Any, where: str) -> None:
    """Where an image or a document comes from; a kind that is not known here passes."""
    if not isinstance(source, Mapping):
        raise InputError('must be a mapping with "type"', where=where)
    source = cast("Json", source)
    for key in _SOURCE_FIELDS.get(str(source.get("type")), ()):
        _text_field(source, key, where)


_SOURCE_FIELDS = {"text": ("data",), "base64": ("media_type", "data"), "url": ("url",)}


def _check_image_url(image: Any, where: str) -> None:
    if isinstance(image, Mapping):
        _name_field(cast("Json", image), "url", where)
    elif not isinstance(image, str) or not image:
        raise InputError('must be an address, or a mapping with "url"', where=where)


def _tool_message(message: Json, where: str) -> Json:
    identity = _name_field(message, "tool_call_id", where)
    content = message.get("content") or ""
    block = {"type": "tool_result", "tool_use_id": identity, "content": _content(content, f"{where}.content")}
    return {"role": "user", "content": [_block(block, where, in_result=False)]}


def _calling_message(message: Json, where: str) -> Json:
    content, calls = message.get("content") or "", message["tool_calls"]
    checked = _content(content, f"{where}.content")
    blocks: list[Json] = list(checked) if not isinstance(checked, str) else []
    if isinstance(checked, str) and checked:
        blocks.append({"type": "text", "text": checked})
    if not _is_list(calls):
        raise InputError("must be a list of calls", where=f"{where}.tool_calls")
    blocks.extend(_call(call, f"{where}.tool_calls[{index}]") for index, call in enumerate(calls))
    return {"role": "assistant", "content": blocks}


def _call(call: Any, where: str) -> Json:
    if not isinstance(call, Mapping):
        raise InputError('must be a mapping with "id" and "function"', where=where)
    call = cast("Json", call)
    identity = _name_field(call, "id", where)
    function = _mapping_field(call, "function", where)
    name = _name_field(function, "name", f"{where}.function")
    arguments = function.get("arguments") or "{}"
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            raise InputError("is not JSON", where=f"{where}.function.arguments") from None
    if not isinstance(arguments, Mapping):
        raise InputError("must be a JSON object", where=f"{where}.function.arguments")
    return {"type": "tool_use", "id": identity, "name": name, "input": arguments}


def _text_field(holder: Json, key: str, where: str) -> str:
    value = holder.get(key)
    if not isinstance(value, str):
        raise InputError("must be a string", where=f"{where}.{key}")
    return value


def _name_field(holder: Json, key: str, where: str) -> str:
    value = holder.get(key)
    if not isinstance(value, str) or not value:
        raise InputError("must be a non-empty string", where=f"{where}.{key}")
    return value


def _mapping_field(holder: Json, key: str, where: str) -> Json:
    value = holder.get(key)
    if not isinstance(value, Mapping):
        raise InputError("must be a mapping", where=f"{where}.{key}")
    return cast("Json", value)
