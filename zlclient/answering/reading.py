"""One question over one document, as rounds of requests: what both drivers share. No I/O, and time is injected.

for jobs in reading.rounds():   # the parts, then as many rounds of merging as it takes
    ...                         # each job: start(), send, answered() or failed(); in any order, from any thread
reading.joined() or reading.last()
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ..checking.checks import check, settled
from ..errors import CheckError, ClientClosed, DeadlineExceeded, Forbidden, NotFound, SendError, Unauthorized
from ..reply import Adjustment, Reply, Usage
from . import requests
from .errors import SegmentsFailed
from .jobs import Job, Tally
from .plan import Plan, make_plan
from .reducing import Finding, grouped, held, lines, listed, merged
from .results import failure, whole_reply
from .wording import not_stated, states_nothing

if TYPE_CHECKING:
    from ..prepared import Prepared
    from ..request import Request
    from ..routing.routes import Route
    from ..sending.clock import Clock
    from ..settings import Settings

CONCURRENCY = 8
# What every other segment would meet too.
_HOPELESS = (Unauthorized, Forbidden, NotFound, ClientClosed, DeadlineExceeded)


class Reading:
    """The state of one call over a document."""

    def __init__(self, plan: Plan, route: Route, settings: Settings, clock: Clock, began: float) -> None:
        request = plan.request
        self.plan = plan
        self.concurrency = request.concurrency or CONCURRENCY
        self._request, self._route, self._settings = request, route, settings
        self._now, self._began = clock.monotonic, began
        self._deadline = settings.deadline if request.deadline is None else request.deadline
        self._skips = request.on_segment_error == "skip"
        # Extracts are joined without a model, unless they are to take a given form.
        self._joins = request.mode == "extract" and request.output is None and request.format is None
        self._tally = Tally(request.progress)
        self._jobs: list[Job] = []
        self._findings: list[Finding] = []
        self._unread: dict[int, str | None] = {}
        self._notes = list(plan.notes)
        self._stopped = False
        self._last_began = 0.0

    @classmethod
    def of(cls, request: Request, prepare: Callable[[Request], Prepared], settings: Settings, clock: Clock) -> Reading:
        """Plan a request that has a document; `prepare` is the corridor's, for the route and what the question costs.

        Raises:
            InputError: the document is empty, or the model's window leaves no room for it.
        """
        began = clock.monotonic()
        question = prepare(requests.bare(request))
        return cls(make_plan(request, question), question.route, settings, clock, began)

    # The rounds

    def rounds(self) -> Iterator[list[Job]]:
        """The jobs of each round; the next one follows from what the driver noted on those before.

        Raises:
            SegmentsFailed: a segment failed and the policy, or the kind of error, says not to go on without it.
        """
        plan, request = self.plan, self._request
        if plan.whole is not None:
            return
        parts = [
            Job("read", (at,), partial(requests.part, request, segment, plan.output))
            for at, segment in enumerate(plan.segments)
        ]
        yield from self._round(parts)
        self._findings = list(self._found(parts))
        while not self._joins and len(groups := grouped(self._held(), plan.room, plan.model)) > 1:
            jobs = [
                Job("merge", _covers(group), partial(requests.merge, request, group, plan.output)) for group in groups
            ]
            # A single finding rises to the next round as it is.
            yield from self._round([job for job, group in zip(jobs, groups, strict=True) if len(group) > 1])
            self._findings = list(_merged(jobs, groups))

    def _round(self, jobs: list[Job]) -> Iterator[list[Job]]:
        self._jobs += jobs
        self._tally.round(jobs)
        yield jobs
        for job in jobs:
            if job.reply is None:
                self._unread |= dict.fromkeys(job.covers, type(job.error).__name__ if job.error else None)
            elif job.reply.stop_reason == "max_tokens":
                self._note("truncated", job.covers, None, "the intermediate answer reached its output limit")
        errors = [job.error for job in jobs if job.error is not None]
        if not errors:
            return
        hopeless = [error for error in errors if isinstance(error, _HOPELESS)]
        if not self._skips or hopeless or len(errors) == len(jobs):
            raise self._failure((hopeless or errors)[0])
        for job in jobs:
            if job.error is not None:
                reason = "its request failed, and the policy is to go on without it"
                self._note("skipped", job.covers, type(job.error).__name__, reason)

    def _found(self, parts: Sequence[Job]) -> Iterator[Finding]:
        """What the parts say, those left out that have nothing on the question."""
        for job in parts:
            if job.reply is not None and not states_nothing(job.reply.text):
                segment = self.plan.segments[job.covers[0]]
                yield Finding((segment.anchor,), segment.style.escape(job.reply.text), job.covers)

    def _held(self) -> list[Finding]:
        """The findings, each in at most half the room, with a note where one had to be cut."""
        before = self._findings
        self._findings = [held(finding, self.plan.room, self.plan.model) for finding in before]
        for whole, cut in zip(before, self._findings, strict=True):
            if cut.text != whole.text:
                reason = f"{len(whole.text)} characters of an intermediate answer were too long to be merged"
                self._note("cut", whole.segments, f"{len(cut.text)} characters", reason)
        return self._findings

    def _note(self, rule: str, covers: tuple[int, ...], after: str | None, reason: str) -> None:
        first, final = self.plan.segments[covers[0]], self.plan.segments[covers[-1]]
        name = f"segment {first.index}" if first is final else f"segments {first.index} to {final.index}"
        before = f"{name}, characters {first.start} to {final.end}"
        self._notes.append(Adjustment("segment", rule, before, after, reason))

    # One job; these may be called from any thread

    def start(self, job: Job) -> Request | None:
        """The request of a job, with what the call's deadline leaves; None where it is not to be sent any more."""
        job.began = self._elapsed()
        if self._stopped:
            return None
        left = self._left()
        if left is not None and left <= 0:
            self.failed(job, self._late())
            return None
        return replace(job.make(), deadline=left)

    def answered(self, job: Job, reply: Reply) -> None:
        """Its answer came."""
        job.reply = reply
        self._tally.add(done=1)

    def failed(self, job: Job, error: SendError) -> None:
        """It failed; the rest of the round is not started where that cannot help any more."""
        job.error = error
        if not self._skips or isinstance(error, _HOPELESS):
            self._stopped = True
        self._tally.add(failed=1)

    # The end

    def joined(self) -> Reply | None:
        """The reply, where it is joined from the parts' answers without another request; else None.

        Raises:
            CheckError: a check with policy "raise" failed.
        """
        if self.plan.whole is not None or not self._joins:
            return None
        base = next(job.reply for job in self._jobs if job.reply is not None)
        text = lines(self._findings) or not_stated(requests.asked(self._request))
        reply = replace(
            base,
            id=f"zl_{uuid.uuid4().hex}",
            text=text,
            content=({"type": "text", "text": text},),
            stop_reason="end_turn",
            usage=Usage(),
            attempts=(),
            adjustments=(),
        )
        asked = requests.checked(self._request, self._request)
        return settled(check(self.finished(reply), asked, self._settings), asked, self._settings)

    def last(self) -> Request:
        """The request whose answer is the caller's.

        Raises:
            SegmentsLate: there is no time left to send it.
        """
        self._last_began = self._elapsed()
        left = self._left()
        if self.plan.whole is not None:
            return replace(self.plan.whole, deadline=left)
        if left is not None and left <= 0:
            raise self._failure(self._late())
        text = listed(self._findings) or not_stated(requests.asked(self._request))
        return replace(requests.last(self._request, text), deadline=left)

    @contextmanager
    def last_failures(self) -> Generator[None]:
        """Around the last request: an error there takes along what was finished before."""
        try:
            yield
        except CheckError as error:
            raise CheckError(str(error), reply=self.finished(error.reply)) from None
        except SendError as error:
            if self.plan.whole is not None:
                raise
            raise self._failure(error) from error

    def finished(self, reply: Reply) -> Reply:
        """The caller's reply: with citations and coverage, and the usage, times and notes of every request."""
        return whole_reply(
            reply,
            self.plan,
            self._jobs,
            unread=self._unread,
            notes=self._notes,
            began=self._last_began,
            total=self._elapsed(),
        )

    def _failure(self, cause: SendError) -> SegmentsFailed:
        return failure(cause, self.plan, self._jobs, unread=self._unread, began=self._last_began)

    def _late(self) -> SendError:
        route = self._route
        problem = "the deadline passed before the request was sent"
        return DeadlineExceeded(problem, provider=route.provider.name, model=route.model.id, route=route.name)

    def _elapsed(self) -> float:
        return self._now() - self._began

    def _left(self) -> float | None:
        return None if self._deadline is None else self._deadline - self._elapsed()


def _covers(group: Sequence[Finding]) -> tuple[int, ...]:
    return tuple(at for finding in group for at in finding.segments)


def _merged(jobs: Sequence[Job], groups: Sequence[tuple[Finding, ...]]) -> Iterator[Finding]:
    for job, group in zip(jobs, groups, strict=True):
        if len(group) == 1:
            yield group[0]
        elif job.reply is not None:
            yield merged(group, job.reply.text)
