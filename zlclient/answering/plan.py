"""Whether a document goes into one request or is read in parts. Pure: it sees the request and the model's window."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from ..errors import InputError
from ..reply import Adjustment
from ..shaping.anchors import system_text
from ..shaping.domains import language_of
from ..shaping.tune import texts_of
from . import requests
from .reducing import LEAST_ROOM, cost

if TYPE_CHECKING:
    from ..prepared import Prepared
    from ..request import Request
    from ..shaping.documents import Document
    from ..shaping.segment import Pack, Segment

ANCHORED_TOKENS = 2000
"""Tokens under one anchor where the whole document is sent: about a section of a law or a paper."""

PART_TOKENS = 8000
"""Tokens of a part where it is not: small enough to be read closely, large enough that parts are few."""

_FRAMING = 64  # tokens that roles, block borders and blank lines may cost on any wire
_SAMPLE = 4096  # characters that say which language a document is in


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a question over a document is asked.

    `whole` is the one request, or None where the document is read in parts. `room` is how many tokens of text fit a
    request beside the question, `model` whose tokens they are, `output` how many an intermediate answer may take
    (None: the caller's own limit).
    """

    request: Request
    document: Document
    segments: tuple[Segment, ...]
    whole: Request | None
    room: int
    model: str
    output: int | None
    notes: tuple[Adjustment, ...]

    @property
    def first(self) -> Request:
        """The first request that leaves."""
        return self.whole or requests.part(self.request, self.segments[0], self.output)


def make_plan(request: Request, question: Prepared) -> Plan:
    """Plan `request`, which has a document; `question` is the same request without it, prepared (see `requests.bare`).

    Raises:
        InputError: the document is empty, or the model's window leaves no room for any of it.
    """
    document = cast("Document", request.document)
    if not document.source.strip():
        raise InputError("is empty: there is nothing to answer from", where="document")
    model = question.route.model
    tuned = question.tuned
    beside = cost("\n".join([system_text(tuned.system), *texts_of(tuned.messages)]), model.id) + _FRAMING
    room = model.context - tuned.max_tokens - beside
    if room < LEAST_ROOM:
        raise InputError(
            f"{tuned.max_tokens} and the question's {beside} leave no room for the document in the"
            f" {model.context:,} tokens of {model.id}",
            where="max_tokens",
        )
    request, notes = _waiting(request, question.bounds.on_rate_limit)
    notes += _page_notes(document)
    limit = room if request.segment_tokens is None else min(room, request.segment_tokens)
    whole = _whole(document, limit, model.id)
    if whole is not None:
        segments, text = whole
        one, output = requests.whole(request, text), None
    else:
        segments = _segments(document, min(limit, request.segment_tokens or PART_TOKENS), model.id, "sections")
        one, output = None, _output(question, room)
        reason = f"it does not fit {limit:,} tokens of {model.id} beside the question"
        notes.append(Adjustment("segment", "parts", 1, len(segments), reason))
    return Plan(
        request=request,
        document=document,
        segments=tuple(segments),
        whole=one,
        room=room,
        model=model.id,
        output=output,
        notes=tuple(notes),
    )


def _waiting(request: Request, policy: str) -> tuple[Request, list[Adjustment]]:
    """A request that waits after a 429: to shorten or to split it would lose the document or the question."""
    if policy not in ("shorten", "split"):
        return request, []
    reason = "a request over a document is neither shortened nor split"
    return replace(request, on_rate_limit="wait"), [Adjustment("segment", "on_rate_limit", policy, "wait", reason)]


def _whole(document: Document, limit: int, model: str) -> tuple[list[Segment], str] | None:
    """The document's anchored segments and their text, where it takes at most `limit` tokens."""
    if cost(document.source, model) > limit + limit // 4:  # a bound, so that a huge document is not cut up in vain
        return None
    segments = _segments(document, min(limit, ANCHORED_TOKENS), model, "units")
    text = "\n\n".join(segment.rendered.rstrip() for segment in segments)
    return (segments, text) if cost(text, model) <= limit else None


def _segments(document: Document, tokens: int, model: str, pack: Pack) -> list[Segment]:
    try:
        return document.segments(
            tokens,
            model=model,
            style=language_of(document.source[:_SAMPLE]),
            pack=pack,
            omit_page_marks=bool(document.page_marks),
        )
    except InputError as error:
        raise InputError(str(error), where="segment_tokens") from None


def _page_notes(document: Document) -> list[Adjustment]:
    marks = len(document.page_marks)
    reason = "page ends, headers and footers that repeat are not sent"
    return [Adjustment("segment", "page-marks", marks, 0, reason)] if marks else []


def _output(question: Prepared, room: int) -> int | None:
    """The output limit of intermediate answers: two of them must fit one request, whatever their estimate says."""
    asked = question.tuned.max_tokens
    most = max(16, room * 2 // 5 - _FRAMING)
    return most if most < asked else None
