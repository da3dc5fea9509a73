"""What a call over a document gives back: one reply over all its requests, or one error with all that was finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import DeadlineExceeded, SendError
from ..reply import Adjustment, Reply, Timings, Usage
from .citations import cite
from .coverage import Coverage
from .errors import SegmentAnswer, SegmentFailure, SegmentsFailed, SegmentsLate
from .jobs import Job, shifted
from .requests import asked
from .wording import states_nothing

if TYPE_CHECKING:
    from .plan import Plan

_NAMED = 5  # failures named in a message; the rest are in the error's `failures`


def whole_reply(
    reply: Reply,
    plan: Plan,
    jobs: Sequence[Job],
    *,
    unread: Mapping[int, str | None],
    notes: Sequence[Adjustment],
    began: float,
    total: float,
) -> Reply:
    """The caller's reply from the last one, which began `began` seconds into a call of `total` seconds."""
    coverage = Coverage.of(plan.segments, unread)
    made = [*notes, *(note for job in jobs if job.reply for note in job.reply.adjustments), *reply.adjustments]
    return replace(
        reply,
        usage=_usage(jobs) + reply.usage,
        timings=Timings(reply.timings.ttft, reply.timings.tpot, total),
        attempts=(*(attempt for job in jobs for attempt in job.attempts), *shifted(reply.attempts, began)),
        adjustments=tuple({repr(note): note for note in made}.values()),  # most requests need the same ones
        sent=reply.sent if plan.whole is not None else plan.request.messages,
        citations=() if plan.request.output else cite(reply.text, plan.document, coverage, asked(plan.request)),
        coverage=coverage,
    )


def failure(
    cause: SendError, plan: Plan, jobs: Sequence[Job], *, unread: Mapping[int, str | None], began: float
) -> SegmentsFailed:
    """The error for jobs that failed, or for the last request, which began `began` seconds into the call."""
    segments = plan.segments
    failures = [
        SegmentFailure(segments[at].index, segments[at].path, segments[at].start, segments[at].end, job.error)
        for job in jobs
        if job.error is not None
        for at in job.covers
    ]
    finished = [
        SegmentAnswer(segment.path, segment.start, segment.end, job.reply.text, not states_nothing(job.reply.text))
        for job in jobs
        if job.phase == "read" and job.reply is not None
        for segment in (segments[job.covers[0]],)
    ]
    last = [] if any(job.error is cause for job in jobs) else [cause]
    kind = SegmentsLate if isinstance(cause, DeadlineExceeded) else SegmentsFailed
    return kind(
        _problem(failures, len(segments), cause),
        cause=cause,
        failures=failures,
        finished=finished,
        coverage=Coverage.of(segments, unread),
        attempts=(
            *(attempt for job in jobs for attempt in job.attempts),
            *(attempt for error in last for attempt in shifted(error.attempts, began)),
        ),
        usage=sum((error.usage or Usage() for error in last), _usage(jobs)),
    )


def _usage(jobs: Sequence[Job]) -> Usage:
    return sum((job.usage for job in jobs), Usage())


def _problem(failures: Sequence[SegmentFailure], total: int, cause: SendError) -> str:
    why = f"{type(cause).__name__}: {cause.args[0]}"
    if not failures:
        return f"the request over the answers of {total} segments failed: {why}"
    spans = ", ".join(f"{failed.start}–{failed.end}" for failed in failures[:_NAMED])
    more = ", …" if len(failures) > _NAMED else ""
    return f"{len(failures)} of {total} segments failed (characters {spans}{more}): {why}"
