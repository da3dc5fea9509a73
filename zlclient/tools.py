"""Tool definitions and the choice among them, in either wire's shape: what both wires read is checked here, once.

No error repeats a value: descriptions and schemas may hold prompt text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from .errors import InputError

Json = Mapping[str, Any]


def checked_tools(tools: Any) -> tuple[Json, ...]:
    """Tool definitions: Anthropic's, OpenAI's functions, or a provider's own with a `type` of its own.

    Raises:
        InputError: one has the wrong shape; `where` names the field.
    """
    if not isinstance(tools, Sequence) or isinstance(tools, str | bytes | bytearray | memoryview):
        raise InputError("must be a list of tables", where="tools")
    for index, tool in enumerate(cast("Sequence[Any]", tools)):
        where = f"tools[{index}]"
        if not isinstance(tool, Mapping):
            raise InputError("must be a table", where=where)
        _check_tool(cast("Json", tool), where)
    return tuple(cast("Sequence[Json]", tools))


def _check_tool(tool: Json, where: str) -> None:
    kind = tool.get("type")
    if kind is not None and (not isinstance(kind, str) or not kind):
        raise InputError("must be a non-empty string", where=f"{where}.type")
    if kind == "function":
        nested = "function" in tool
        function = tool["function"] if nested else tool
        where = f"{where}.function" if nested else where
        if not isinstance(function, Mapping):
            raise InputError("must be a table", where=where)
        _check_name(cast("Json", function), where)
        _check_schema(cast("Json", function), "parameters", where)
    elif kind is None or "input_schema" in tool:
        _check_name(tool, where)
        if "input_schema" not in tool:
            raise InputError("needs an input_schema", where=where)
        _check_schema(tool, "input_schema", where)


def checked_choice(choice: Any) -> str | Json:
    """A word or a tool's name, or either wire's table.

    Raises:
        InputError: it has the wrong shape; `where` names the field.
    """
    where = "tool_choice"
    if isinstance(choice, str) and choice:
        return choice
    if not isinstance(choice, Mapping):
        raise InputError("must be a non-empty string or a table", where=where)
    choice = cast("Json", choice)
    kind = choice.get("type")
    if not isinstance(kind, str) or not kind:
        raise InputError("must be a non-empty string", where=f"{where}.type")
    if kind == "tool":
        _check_name(choice, where)
    elif kind == "function":
        nested = "function" in choice
        function = choice["function"] if nested else choice
        where = f"{where}.function" if nested else where
        if not isinstance(function, Mapping):
            raise InputError("must be a table", where=where)
        _check_name(cast("Json", function), where)
    return choice


def _check_name(holder: Json, where: str) -> None:
    if not isinstance(holder.get("name"), str) or not holder["name"]:
        raise InputError("must be a non-empty string", where=f"{where}.name")


def _check_schema(holder: Json, key: str, where: str) -> None:
    if holder.get(key) is not None and not isinstance(holder[key], Mapping):
        raise InputError("must be a table", where=f"{where}.{key}")
