"""The requests of a call over a document: the text first, in a block of its own, the question last.

A document block is text on every wire. Before it come only the tools and the system text, which depend on the caller
and the mode, so two questions on one document begin with the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .reducing import listed
from .wording import Task, instruction

if TYPE_CHECKING:
    from ..request import Request
    from ..shaping.segment import Segment
    from .reducing import Finding

Json = Mapping[str, Any]
_CACHED: Json = {"cache_control": {"type": "ephemeral"}}


def asked(request: Request) -> str:
    """The text of the last turn: what is asked."""
    content = request.messages[-1]["content"]
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content if block["type"] == "text")


def whole(request: Request, text: str) -> Request:
    """The one request over the whole document, marked for the provider's prompt cache up to the document's end."""
    return checked(_over(request, "one", text, _CACHED), request)


def part(request: Request, segment: Segment, max_tokens: int | None) -> Request:
    """The request over one segment. The caller's checks, format and output are for the last answer only."""
    return _intermediate(_over(request, "part", segment.rendered), max_tokens)


def merge(request: Request, findings: Sequence[Finding], max_tokens: int | None) -> Request:
    """A request that makes one answer of several, to be merged further."""
    return _intermediate(_over(request, "merge", listed(findings)), max_tokens)


def last(request: Request, text: str) -> Request:
    """The request whose answer is the caller's, over what the parts say."""
    return checked(_over(request, "merge", text), request)


def checked(answered: Request, request: Request) -> Request:
    """`answered` with the document as the source of its fidelity check, where that was asked for without a source."""
    if request.document is None or request.source is not None or request.fidelity in (None, "off"):
        return answered
    return replace(answered, source=request.document.source)


def bare(request: Request) -> Request:
    """`request` without its document: what every request of the call has beside the text."""
    return replace(request, document=None, progress=None, system=_with_instruction(request, "merge"))


def _over(request: Request, task: Task, text: str, marks: Json | None = None) -> Request:
    block = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": text}, **(marks or {})}
    return replace(
        request,
        messages=_placed(request.messages, block),
        system=_with_instruction(request, task),
        document=None,
        progress=None,
    )


def _placed(messages: tuple[Json, ...], block: Json) -> tuple[Json, ...]:
    """The block before all else in the first user turn, unless the conversation brought it along."""
    at = next((index for index, message in enumerate(messages) if message["role"] == "user"), 0)
    content = messages[at]["content"]
    blocks: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    if blocks and blocks[0] == block:
        return messages
    return (*messages[:at], {**messages[at], "content": [block, *blocks]}, *messages[at + 1 :])


def _with_instruction(request: Request, task: Task) -> str | tuple[Json, ...]:
    text = instruction(task, request.mode or "answer", asked(request))
    system = request.system
    if system is None or isinstance(system, str):
        return f"{system}\n\n{text}" if system else text
    return (*system, {"type": "text", "text": text})


def _intermediate(request: Request, max_tokens: int | None) -> Request:
    return replace(
        request,
        max_tokens=request.max_tokens if max_tokens is None else max_tokens,
        output=None,
        source=None,
        fidelity="off",
        format=None,
        format_policy=None,
        tools=(),
        tool_choice=None,
    )
