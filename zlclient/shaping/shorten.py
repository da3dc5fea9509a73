"""A request of about half the size, for `on_rate_limit="shorten"`, and two halves of one, for `"split"`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..reply import Adjustment

if TYPE_CHECKING:
    from ..prepared import Tuned
    from ..request import Request

Json = Mapping[str, Any]


def shortened(tuned: Tuned) -> tuple[Tuned, Adjustment] | None:
    """A request of about half the size, for `on_rate_limit="shorten"`; None when nothing can be left out.

    The oldest turns go first; a single turn loses the middle of its longest text, at line or sentence ends.
    """
    messages = tuned.messages
    keep = _second_half(messages)
    if keep:
        note = Adjustment("send", "shorten", len(messages), len(keep), "rate limited: the oldest turns are left out")
        return replace(tuned, messages=keep), note
    text, with_text = _longest_text(messages[-1])
    cut = _without_middle(text)
    if cut is None:
        return None
    note = Adjustment("send", "shorten", len(text), len(cut), "rate limited: the middle of the text is left out")
    return replace(tuned, messages=(*messages[:-1], with_text(cut))), note


def _longest_text(message: Json) -> tuple[str, Callable[[str], Json]]:
    """A turn's longest text, and the turn with another in its place."""
    content = message["content"]
    if isinstance(content, str):
        return content, lambda text: {**message, "content": text}
    longest = max(range(len(content)), key=lambda i: len(content[i].get("text", "")))

    def with_text(text: str) -> Json:
        block = {**content[longest], "text": text}
        return {**message, "content": [*content[:longest], block, *content[longest + 1 :]]}

    return content[longest].get("text", ""), with_text


def _second_half(messages: tuple[Json, ...]) -> tuple[Json, ...]:
    """The newer half, starting at a plain user turn (a tool result needs the call before it)."""
    for index in range(len(messages) // 2, len(messages)):
        content = messages[index]["content"]
        plain = isinstance(content, str) or all(block["type"] != "tool_result" for block in content)
        if index > 0 and messages[index]["role"] == "user" and plain:
            return messages[index:]
    return ()


def _without_middle(text: str, smallest: int = 400) -> str | None:
    if len(text) < smallest:
        return None
    quarter = len(text) // 4
    ends = [m.end() for m in re.finditer(r"\n+|[。！？!?]|\. ", text)]
    head = max((end for end in ends if end <= quarter), default=quarter)
    tail = min((end for end in ends if end >= len(text) - quarter), default=len(text) - quarter)
    return f"{text[:head].rstrip()}\n[…]\n{text[tail:].lstrip()}"


def split_request(request: Request) -> tuple[Request, Request] | None:
    """Two requests that each ask the same of one half of the last turn's longest text; None when it is too short.

    Short first and last paragraphs hold the instruction, so both halves keep them.
    """
    text, with_text = _longest_text(request.messages[-1])
    halves = _halves(text, keep_ends=isinstance(request.messages[-1]["content"], str))
    if halves is None:
        return None
    before = request.messages[:-1]
    first, second = (replace(request, messages=(*before, with_text(half))) for half in halves)
    return first, second


_INSTRUCTION = 300  # characters: a first or last paragraph up to this long is taken for the instruction


def _halves(text: str, *, keep_ends: bool = True, smallest: int = 400) -> tuple[str, str] | None:
    if len(text) < smallest:
        return None
    paragraphs = text.split("\n\n")
    keep = keep_ends and len(paragraphs) > 2
    head = f"{paragraphs[0]}\n\n" if keep and len(paragraphs[0]) <= _INSTRUCTION else ""
    tail = f"\n\n{paragraphs[-1]}" if keep and len(paragraphs[-1]) <= _INSTRUCTION else ""
    body = text[len(head) : len(text) - len(tail)]
    middle = len(body) // 2
    cuts = [m.end() for m in re.finditer(r"\n+|[。！？!?]|\. ", body)]
    cut = min(cuts, key=lambda end: abs(end - middle), default=middle)
    if not 0 < cut < len(body):
        cut = middle
    return head + body[:cut].rstrip() + tail, head + body[cut:].lstrip() + tail
