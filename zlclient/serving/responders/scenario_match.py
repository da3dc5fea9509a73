"""What a scenario or an assertion asks of a request, and how far a request is from it.

When(text=TextMatch("contains", "weather"), turn=0).differences(ask)    # () where it matches
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeGuard

from .base import Ask, Wire, text_of

Speaker = Literal["user", "assistant", "tool"]
How = Literal["exact", "contains", "regex"]
_SHOWN = 76  # characters of a text that a difference shows
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A condition on a text. `regex` is searched for, with `re.DOTALL` off, as Python's `re` reads it."""

    how: How
    wanted: str

    def matches(self, text: str) -> bool:
        """Whether `text` meets the condition."""
        match self.how:
            case "exact":
                return text == self.wanted
            case "contains":
                return self.wanted in text
            case "regex":
                return re.search(self.wanted, text) is not None

    def __str__(self) -> str:
        return f"{self.how} {_quoted(self.wanted)}"


@dataclass(frozen=True, slots=True)
class Difference:
    """One condition that a request misses. `closeness` is 0 for nothing in common, towards 1 for almost the same."""

    name: str
    wanted: str
    got: str
    closeness: float = 0.0

    def lines(self) -> Iterator[str]:
        """Two lines, indented, one under the other."""
        yield f"  {self.name:<12} wanted  {self.wanted}"
        yield f"  {'':<12} got     {self.got}"


@dataclass(frozen=True, slots=True)
class When:
    """Conditions on a request, all of which must hold; None asks for nothing.

    text         the last user turn that has text
    system       the system prompt
    tool_result  the text of the tool results in the last turn
    model        the model asked for
    role         who spoke last; "tool" where the last turn brings tool results
    wire         which API was used: anthropic, chat or responses
    tools        names of tools that are offered, at least; an empty tuple means that none is
    turn         how many assistant turns came before
    headers      by lower-case name; None means that the header is absent
    request      a part of the decoded body: mappings may have more keys, lists and values must be equal
    where        a predicate, for what the others cannot say
    """

    text: TextMatch | None = None
    system: TextMatch | None = None
    tool_result: TextMatch | None = None
    model: TextMatch | None = None
    role: Speaker | None = None
    wire: Wire | None = None
    tools: tuple[str, ...] | None = None
    turn: int | None = None
    headers: Mapping[str, TextMatch | None] = field(default_factory=dict[str, TextMatch | None])
    request: Mapping[str, Any] = field(default_factory=dict[str, Any])
    where: Callable[[Ask], bool] | None = None

    @property
    def expects_results(self) -> bool:
        """Whether it is plain from the conditions that requests with tool results are meant."""
        chosen = (self.role, self.tool_result, self.turn, self.where)
        return any(condition is not None for condition in chosen) or "messages" in self.request

    def differences(self, ask: Ask) -> tuple[Difference, ...]:
        """Every condition that `ask` misses, in the order of the fields."""
        return tuple(self._differences(ask))

    def _differences(self, ask: Ask) -> Iterator[Difference]:
        yield from _of_text("text", self.text, ask.question)
        yield from _of_text("system", self.system, ask.system)
        if self.tool_result is not None:
            yield from _of_text("tool_result", self.tool_result, result_text(ask))
        yield from _of_text("model", self.model, ask.model)
        yield from _of_value("role", self.role, speaker(ask))
        yield from _of_value("wire", self.wire, ask.wire)
        yield from self._of_tools(ask)
        yield from _of_value("turn", self.turn, ask.turn)
        for name, wanted in self.headers.items():
            yield from _of_header(name, wanted, ask.headers.get(name))
        yield from body_differences(self.request, ask.body, "request")
        if self.where is not None and not self.where(ask):
            yield Difference("where", f"{getattr(self.where, '__name__', 'the predicate')} to hold", "False")

    def _of_tools(self, ask: Ask) -> Iterator[Difference]:
        if self.tools is None:
            return
        offered = {tool.name for tool in ask.tools}
        missing = offered if not self.tools else set(self.tools) - offered
        if missing:
            yield Difference("tools", _names(self.tools), _names(sorted(offered)))


def speaker(ask: Ask) -> Speaker:
    """Who spoke last."""
    if ask.tool_results:
        return "tool"
    return ask.turns[-1].role if ask.turns else "user"


def result_text(ask: Ask) -> str:
    """The text of the tool results in the last turn."""
    return "\n\n".join(text_of(block.get("content")) for block in ask.tool_results)


def summary(ask: Ask) -> str:
    """A request in one line, for messages."""
    parts = [ask.wire, ask.model, f"turn {ask.turn}", f"role {speaker(ask)}"]
    if ask.tools:
        parts.append(f"tools {_names([tool.name for tool in ask.tools])}")
    parts.append(f"text {_quoted(ask.question)}")
    if ask.tool_results:
        parts.append(f"tool_result {_quoted(result_text(ask))}")
    return ", ".join(parts)


def body_differences(wanted: object, got: object, path: str) -> Iterator[Difference]:
    """Where `got` lacks what `wanted` has: mappings may have more keys, lists and values must be equal."""
    if _is_mapping(wanted) and _is_mapping(got):
        for key, value in wanted.items():
            yield from body_differences(value, got.get(key, _ABSENT), f"{path}.{key}")
    elif _is_list(wanted) and _is_list(got):
        yield from _list_differences(wanted, got, path)
    elif isinstance(wanted, str) and isinstance(got, str):
        yield from _of_text(path, TextMatch("exact", wanted), got)
    elif wanted != got or isinstance(wanted, bool) != isinstance(got, bool):
        yield Difference(path, _quoted(wanted), _quoted(got))


def _list_differences(wanted: Sequence[object], got: Sequence[object], path: str) -> Iterator[Difference]:
    if len(wanted) != len(got):
        yield Difference(path, f"{len(wanted)} items", f"{len(got)} items", 0.5)
    for index, (one, other) in enumerate(zip(wanted, got, strict=False)):
        yield from body_differences(one, other, f"{path}[{index}]")


def _is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, (list, tuple))


def _of_text(name: str, wanted: TextMatch | None, got: str) -> Iterator[Difference]:
    if wanted is None or wanted.matches(got):
        return
    if wanted.how == "regex":
        yield Difference(name, str(wanted), _quoted(got))
        return
    parting = _exact_parting if wanted.how == "exact" else _contains_parting
    at, got_at, closeness = parting(wanted.wanted, got)
    yield Difference(name, f"{wanted.how} {_quoted(wanted.wanted, at)}", _quoted(got, got_at), closeness)


def _exact_parting(wanted: str, got: str) -> tuple[int, int, float]:
    """Where two texts part, in each, and how much of them is common at their ends."""
    head = _common(wanted, got)
    tail = _common(wanted[head:][::-1], got[head:][::-1])
    return head, head, (head + tail) / (max(len(wanted), len(got)) + 1)


def _common(one: str, other: str) -> int:
    """How many characters two texts share at their start."""
    shorter = min(len(one), len(other))
    return next((index for index in range(shorter) if one[index] != other[index]), shorter)


def _contains_parting(wanted: str, got: str) -> tuple[int, int, float]:
    """The same for a part: up to where it is found, from its start or from its end."""
    head = bisect_left(range(1, len(wanted) + 1), 1, key=lambda size: wanted[:size] not in got)
    tail = bisect_left(range(1, len(wanted) + 1), 1, key=lambda size: wanted[-size:] not in got)
    size = len(wanted) + 1
    if head >= tail:
        return head, got.find(wanted[:head]) + head, head / size
    return len(wanted) - tail, got.find(wanted[-tail:]), tail / size


def _of_value(name: str, wanted: object, got: object) -> Iterator[Difference]:
    if wanted is not None and wanted != got:
        yield Difference(name, str(wanted), str(got))


def _of_header(name: str, wanted: TextMatch | None, got: str | None) -> Iterator[Difference]:
    label = f"header {name}"
    if wanted is None:
        if got is not None:
            yield Difference(label, "absent", _quoted(got))
    elif got is None:
        yield Difference(label, str(wanted), "absent")
    else:
        yield from _of_text(label, wanted, got)


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"


def _quoted(value: object, around: int = 0) -> str:
    """`value` on one line; a long text is cut so that its character `around` is seen."""
    if value is _ABSENT:
        return "absent"
    if not isinstance(value, str):
        text = repr(value)
        return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    if len(value) <= _SHOWN:
        return repr(value)
    start = min(max(around - _SHOWN // 2, 0), len(value) - _SHOWN)
    cut = repr(value[start : start + _SHOWN])
    return f"{'…' if start else ''}{cut}{'…' if start + _SHOWN < len(value) else ''}"
