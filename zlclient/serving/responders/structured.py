"""The structured responder: answers that a schema prescribes, tool calls and structured output, made from the schema.

A tool is called when the request demands it, or when it leaves the choice and the question is about the tool; after a
tool's result the answer is text again. Everything else is the next responder's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..errors import WireError
from .base import Ask, Event, Responder, Text, Tool, ToolCall
from .offline import answer
from .reading import untagged
from .terms import stop_words

if TYPE_CHECKING:
    from ..schema import Field

_WORD = re.compile(r"[A-Za-z]+|[\u3400-\u9fff]{2,}")
# Words of tool names and descriptions that say nothing of what the tool is about.
_COMMON = frozenset(
    (
        "get",
        "set",
        "tool",
        "function",
        "use",
        "used",
        "return",
        "current",
        "call",
        "value",
        "user",
        "information",
        "data",
    )
)


class StructuredResponder(Responder):
    """Answers asks that have tools to call or an output schema."""

    name = "structured"

    def respond(self, ask: Ask) -> Iterable[Event] | None:
        """One ToolCall, or one Text that is JSON; raises WireError 400 for a schema that nothing satisfies."""
        return prescribed(ask)


def prescribed(ask: Ask, field: Field | None = None) -> tuple[Event] | None:
    """The ToolCall or the JSON Text that `ask` prescribes, None where it prescribes none.

    `field` reads values out of a passage; without one they are drawn from the question.

    Raises:
        WireError: 400, for a schema that nothing satisfies.
    """
    tool = chosen_tool(ask)
    if tool is not None:
        return (ToolCall(tool.name, _value(tool.schema, ask, tool.name, field)),)
    if ask.output_schema is not None:
        return (Text(json.dumps(_value(ask.output_schema, ask, "", field), ensure_ascii=False)),)
    return None


def chosen_tool(ask: Ask) -> Tool | None:
    """The tool that this ask's answer calls, or None."""
    if not ask.tools or ask.tool_choice.mode == "none":
        return None
    if ask.tool_choice.mode == "tool":
        return next((tool for tool in ask.tools if tool.name == ask.tool_choice.name), None)
    forced = ask.tool_choice.mode == "any"
    if ask.tool_results and not forced:
        return None
    asked = _words(untagged(ask.question))
    best = max(ask.tools, key=lambda tool: _closeness(tool, asked))
    return best if forced or _closeness(best, asked) > 0 else None


def _closeness(tool: Tool, asked: set[str]) -> float:
    """How much a question is about a tool: words of its name count double those of its description."""
    name = _words(re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", tool.name))
    return 2.0 * len(name & asked) + len(_words(tool.description) & asked)


def _words(text: str) -> set[str]:
    common = _COMMON | stop_words()
    found: set[str] = set()
    for word in _WORD.findall(text):
        if word[0] >= "\u3400":
            found.update(word[at : at + 2] for at in range(len(word) - 1))
        elif len(word) > 1 and (stem := word.lower().removesuffix("s")) not in common:
            found.add(stem)
    return found


def _value(schema: object, ask: Ask, name: str, field: Field | None) -> dict[str, object]:
    # Only requests with a schema pay for the import.
    from ..schema import Source, Unsatisfiable, generate

    seed = f"{name}|{ask.seed}|{ask.turn}|{ask.question}"
    try:
        return generate(schema, seed, Source(untagged(ask.question), lambda: answer(ask), field))  # type: ignore[arg-type]
    except Unsatisfiable as error:
        raise WireError(400, f"The schema cannot be satisfied: {error}") from None
