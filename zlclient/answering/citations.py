"""What in the document supports each statement of an answer: by shared words, and by every number, date and name.

A statement without such support is marked, never given the nearest thing instead. Support by words is no proof of
meaning: a claim that swaps who does what to whom has the same words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..checking.fidelity import check_fidelity
from ..checking.sentences import sentences
from .places import places
from .support import ENOUGH, Source, Span, denials
from .wording import states_nothing

if TYPE_CHECKING:
    from ..shaping.documents import Document
    from .coverage import Coverage


@dataclass(frozen=True, slots=True)
class Citation:
    """One statement of an answer, `reply.text[text_start:text_end]`, and what supports it.

    Where `supported`, `document.source[start:end]` is the span, `path` the labels of the divisions it stands in,
    `segment` the index of the segment it begins in, and `score` the share of the statement's words that it has, from 0
    to 1. Otherwise those are None, () and the best score that any span had; `missing` are the numbers, dates and names
    that span lacks.
    """

    statement: str
    text_start: int
    text_end: int
    supported: bool
    score: float
    start: int | None = None
    end: int | None = None
    path: tuple[str, ...] = ()
    segment: int | None = None
    missing: tuple[str, ...] = ()


def cite(answer: str, document: Document, coverage: Coverage, question: str = "") -> tuple[Citation, ...]:
    """A citation for each statement of `answer`, in order, from what was read of `document`.

    A sentence that leads in to others ("As follows:") is no statement, nor is "the text does not state this".
    """
    if states_nothing(answer):
        return ()
    found = sentences(answer)
    spans = [(start, end) for start, end in found if answer[end - 1] not in ":：" or end == found[-1][1]]
    statements = [answer[start:end] for start, end in spans]
    source = Source(document.source, coverage.spans(), document.outline(), statements, question)
    return tuple(
        _citation(statement, span, source, document.source, coverage)
        for statement, span in zip(statements, spans, strict=True)
    )


def _citation(statement: str, place: tuple[int, int], source: Source, text: str, coverage: Coverage) -> Citation:
    found = source.candidates(statement)
    best = found[0].score if found else 0.0
    missing: tuple[str, ...] | None = None
    denied = denials(statement)
    for span in found:
        if span.score < ENOUGH or denied - denials(_read_as(span, text)):
            continue
        lacks = _missing(statement, _read_as(span, text))
        if not lacks:
            segment = next(s.index for s in coverage.segments if s.start <= span.start < s.end)
            return Citation(statement, *place, True, span.score, span.start, span.end, span.path, segment)
        missing = lacks if missing is None else missing
    if missing is None:
        missing = _missing(statement, _read_as(found[0], text)) if found else ()
    return Citation(statement, *place, supported=False, score=best, missing=missing)


def _read_as(span: Span, text: str) -> str:
    """The span under its headings: they are part of what it says, such as the article's number."""
    return "\n".join([*span.path, text[span.start : span.end]])


def _missing(statement: str, span: str) -> tuple[str, ...]:
    """The numbers, dates, names and numbered places (第十二条) of `statement` that `span` lacks, in order."""
    named, told = places(statement), {place.key for place in places(span)}
    lacking = [(place.start, place.text) for place in named if place.numbered and place.key not in told]
    for fact in check_fidelity(statement, span).facts:
        if fact.verdict != "present" and not any(place.start <= fact.start < place.end for place in named):
            lacking.append((fact.start, fact.text))
    return tuple(text for _, text in sorted(lacking))
