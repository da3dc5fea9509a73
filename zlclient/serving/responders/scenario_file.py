"""Scenarios from YAML files and Python data, checked as they are read.

    scenarios = load_scenarios("weather.yaml")
    scenarios = read_scenarios([{"when": {"text": "hello"}, "reply": "Hello!"}])

Both take a list of scenarios. In Python a reply may also be a function of the Ask that gives a reply.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, cast, get_args

from .base import Ask, Fault, FaultKind, StopReason, ToolCall, Usage, Wire
from .scenario import Order, Scenario
from .scenario_match import Speaker, TextMatch, When
from .scenario_reply import ScriptedFault, ScriptedReply
from .scenario_source import Node, read, read_yaml

_KINDS = tuple(kind for kind in get_args(FaultKind) if kind != "status")
_REPLY_KEYS = ("text", "json", "thinking", "tool_calls", "stop_reason", "usage", "ttft", "pace", "fault")
_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_WHEN_KEYS = tuple(field.name for field in dataclasses.fields(When))
_ORDERS: dict[str, Order] = {"reply": "always", "replies": "once", "turns": "by_turn"}


def load_scenarios(path: str | os.PathLike[str]) -> list[Scenario]:
    """The scenarios of a YAML (or JSON) file. Raises ConfigError with file and line."""
    return _scenarios(read_yaml(Path(path)))


def read_scenarios(data: object) -> list[Scenario]:
    """Scenarios from Python data of the same form. Raises ConfigError with the key."""
    return _scenarios(Node(data))


def read_when(data: object) -> When:
    """Conditions alone, from a mapping. Raises ConfigError with the key."""
    return _when(Node(data))


def scenario_of(data: object) -> Scenario:
    """One scenario from a mapping. Raises ConfigError with the key."""
    return _scenario(Node(data))


def _scenarios(node: Node) -> list[Scenario]:
    found = [_scenario(item) for item in node.items()]
    names: set[str] = set()
    for scenario, item in zip(found, node.items(), strict=True):
        if scenario.name in names:
            raise item.error(f"a scenario named {scenario.name!r} is there already", shown=False)
        names.add(scenario.name)
    return found


def _scenario(node: Node) -> Scenario:
    fields = node.fields("name", "when", "times", *_ORDERS)
    given = [key for key in _ORDERS if key in fields]
    if len(given) != 1:
        raise node.error("one of reply, replies or turns is expected", shown=False)
    key = given[0]
    replies = [fields[key]] if key == "reply" else fields[key].items()
    if not replies:
        raise fields[key].error("at least one reply is expected")
    index = node.path[-1] if node.path else 0
    return Scenario(
        name=read(fields, "name", Node.text, f"scenario {cast('int', index) + 1}"),
        when=read(fields, "when", _when, When()),
        replies=tuple(_reply(reply) for reply in replies),
        order=_ORDERS[key],
        times=read(fields, "times", _at_least_one, None),
        origin=node.origin,
    )


def _when(node: Node) -> When:
    fields = node.fields(*_WHEN_KEYS)
    return When(
        text=read(fields, "text", _contained, None),
        system=read(fields, "system", _contained, None),
        tool_result=read(fields, "tool_result", _contained, None),
        model=read(fields, "model", _exact, None),
        role=read(fields, "role", _speaker, None),
        wire=read(fields, "wire", _wire, None),
        tools=read(fields, "tools", lambda tools: tuple(item.text() for item in tools.items(alone=True)), None),
        turn=read(fields, "turn", Node.integer, None),
        headers=read(fields, "headers", _headers, dict[str, TextMatch | None]()),
        request=read(fields, "request", Node.data, dict[str, Any]()),
        where=read(fields, "where", _predicate, None),
    )


def _speaker(node: Node) -> Speaker:
    return cast("Speaker", node.one_of(*get_args(Speaker)))


def _wire(node: Node) -> Wire:
    return cast("Wire", node.one_of(*get_args(Wire)))


def _predicate(node: Node) -> Callable[[Ask], bool]:
    if not callable(node.value):
        raise node.error("a function of the Ask is expected; in a file, use the other conditions")
    return cast("Callable[[Ask], bool]", node.value)


def _headers(node: Node) -> dict[str, TextMatch | None]:
    return {name.lower(): None if item.value is None else _exact(item) for name, item in node.entries()}


def _contained(node: Node) -> TextMatch:
    return _text_match(node, "contains")


def _exact(node: Node) -> TextMatch:
    return _text_match(node, "exact")


def _text_match(node: Node, plain: Literal["exact", "contains"]) -> TextMatch:
    """A string, meaning `plain`, or a mapping of one of exact, contains and regex to a string."""
    if isinstance(node.value, str):
        return TextMatch(plain, node.value)
    fields = node.fields("exact", "contains", "regex")
    if len(fields) != 1:
        raise node.error("a string, or one of exact, contains or regex, is expected")
    ((how, wanted),) = fields.items()
    if how == "regex":
        try:
            re.compile(wanted.text())
        except re.error as error:
            raise wanted.error(f"no valid regular expression: {error}") from None
    return TextMatch(cast("Any", how), wanted.text())


def _reply(node: Node) -> ScriptedReply:
    if isinstance(node.value, ScriptedReply):
        return node.value
    if isinstance(node.value, str):
        return ScriptedReply(text=node.value)
    if callable(node.value):
        make: Any = node.value
        return ScriptedReply(make=lambda ask: _made(node, make, ask))
    fields = node.fields(*_REPLY_KEYS)
    if not fields:
        raise node.error(f"an empty reply; at least one of {', '.join(_REPLY_KEYS)} is expected")
    if "text" in fields and "json" in fields:
        raise fields["json"].error("a reply has text or json", shown=False)
    return ScriptedReply(
        text=read(fields, "text", Node.text, "") or read(fields, "json", _written, ""),
        thinking=read(fields, "thinking", Node.text, ""),
        tool_calls=read(fields, "tool_calls", _tool_calls, ()),
        stop_reason=read(fields, "stop_reason", _stop_reason, None),
        usage=read(fields, "usage", _usage, Usage()),
        ttft=read(fields, "ttft", Node.seconds, 0.0),
        pace=read(fields, "pace", Node.seconds, 0.0),
        fault=read(fields, "fault", _fault, None),
    )


def _written(node: Node) -> str:
    try:
        return json.dumps(node.value, ensure_ascii=False)
    except (TypeError, ValueError):
        raise node.error("a value that JSON can hold is expected") from None


def _stop_reason(node: Node) -> StopReason:
    return cast("StopReason", node.one_of(*get_args(StopReason)))


def _tool_calls(node: Node) -> tuple[ToolCall, ...]:
    return tuple(_tool_call(item) for item in node.items(alone=True))


def _made(node: Node, make: Any, ask: Ask) -> ScriptedReply:
    made = _reply(Node(make(ask), node.source, node.path))
    if made.make is not None:
        raise node.error("the function gave a function", shown=False)
    return made


def _tool_call(node: Node) -> ToolCall:
    fields = node.fields("name", "input", "id")
    if "name" not in fields:
        raise node.error("name is missing")
    return ToolCall(
        fields["name"].text(), read(fields, "input", Node.data, dict[str, Any]()), read(fields, "id", Node.text, "")
    )


def _usage(node: Node) -> Usage:
    return Usage(**{name: count.integer() for name, count in node.fields(*_COUNTS).items()})


def _fault(node: Node) -> ScriptedFault:
    """A status, a kind, or a mapping with one of them and where and how often it comes."""
    if not isinstance(node.value, Mapping):
        return ScriptedFault(_fault_of(node, {}))
    fields = node.fields("status", "kind", "message", "retry_after", "after", "times", "rate", "seed")
    named = [fields[key] for key in ("status", "kind") if key in fields]
    if len(named) != 1:
        raise node.error("one of status or kind is expected", shown=False)
    return ScriptedFault(
        _fault_of(named[0], fields),
        after=read(fields, "after", _after, None),
        times=read(fields, "times", _at_least_one, None),
        rate=read(fields, "rate", _share, 1.0),
        seed=read(fields, "seed", Node.integer, 0),
    )


def _fault_of(node: Node, fields: dict[str, Node]) -> Fault:
    if isinstance(node.value, str):
        return Fault(cast("FaultKind", node.one_of(*_KINDS)))
    if not isinstance(node.value, int) or not 400 <= node.value <= 599:
        raise node.error(f"a status from 400 to 599, or one of {', '.join(_KINDS)}, is expected")
    after = read(fields, "retry_after", _header_value, None)
    return Fault("status", node.value, read(fields, "message", Node.text, ""), after)


def _header_value(node: Node) -> str:
    if not isinstance(node.value, str | int | float):
        raise node.error("a number or a string is expected")
    return str(node.value)


def _at_least_one(node: Node) -> int:
    return node.integer(1)


def _after(node: Node) -> int | Literal["half"]:
    return "half" if node.value == "half" else node.integer(1)


def _share(node: Node) -> float:
    if not isinstance(node.value, (int, float)) or isinstance(node.value, bool) or not 0 <= node.value <= 1:
        raise node.error("a share from 0 to 1 is expected")
    return float(node.value)
