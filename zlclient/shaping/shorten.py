"""A request of about half the size, for `on_rate_limit="shorten"`, and two halves of one, for `"split"`."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    message = messages[-1]
    content = message["content"]
    if not isinstance(content, str):
        return None
    cut = _without_middle(content)
    if cut is None:
        return None
    note = Adjustment("send", "shorten", len(content), len(cut), "rate limited: the middle of the text is left out")
    return replace(tuned, messages=(*messages[:-1], {**message, "content": cut})), note


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
    message = request.messages[-1]
    content = message["content"]
    if isinstance(content, str):
        halves = _halves(content)
        if halves is None:
            return None
        first, second = ({**message, "content": half} for half in halves)
    else:
        longest = max(range(len(content)), key=lambda i: len(str(content[i].get("text", ""))))
        halves = _halves(str(content[longest].get("text", "")), keep_ends=False)
        if halves is None:
            return None
        first, second = (
            {**message, "content": [*content[:longest], {**content[longest], "text": half}, *content[longest + 1 :]]}
            for half in halves
        )
    before = request.messages[:-1]
    return replace(request, messages=(*before, first)), replace(request, messages=(*before, second))


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
