"""The local runner: one event loop, one AsyncClient, and no more in flight than the pace and the budget allow.

    rows ─▶ feed ─▶ ledger: known? ─▶ ready ─▶ dispatch ─▶ send ─▶ keep ─▶ ledger ─▶ output

Each arrow is bounded by the window of rows that were read and not written, so memory does not grow with the source. A
request's slot is free again once its answer is in the ledger: what a kill can lose is what was in flight.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections import deque
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import CheckError, ConfigError, RateLimited, SendError, Unauthorized, ZlclientError
from ..reply import Attempt, Usage
from .jobs import chunks
from .outcomes import Outcome, answer, failure

if TYPE_CHECKING:
    from ..client import AsyncClient
    from ..sending.clock import Clock
    from .budget import Budget, Reserved
    from .jobs import Job, Made, Maker
    from .ledger import Ledger
    from .output import Output, Pending
    from .pace import Pace
    from .progress import Progress
    from .report import BatchReport, Stopped
    from .sources import Source

_T = TypeVar("_T")

CHUNK = 64  # rows read, and looked up in the ledger, at a time
WINDOW_BYTES = 64_000_000  # of rows that were read and not written
LIMITED_TRIES = 8  # how often a request that is rate limited is sent before its row fails
_LIMITED = (429, 529)
_SLICE = 0.5  # seconds waited at most before looking whether the run was stopped


@dataclass(eq=False, slots=True)
class _Work:
    """A job, the rows that wait for it, and how often it was rate limited."""

    job: Job
    rows: list[Pending] = field(default_factory=list["Pending"])
    limited: int = 0


@dataclass(slots=True)
class Parts:
    """What a run is made of."""

    source: Source
    maker: Maker
    ledger: Ledger
    output: Output
    report: BatchReport
    progress: Progress
    budget: Budget
    clock: Clock


class LocalRunner:
    """Sends every job of the source that the ledger does not know, and settles every row."""

    def __init__(self, parts: Parts, client: AsyncClient, pace: Pace) -> None:
        self._parts, self._client, self._pace = parts, client, pace
        self._chunks = chunks(parts.source.rows(), parts.maker, CHUNK)
        self._window = max(1024, 8 * pace.ceiling)
        self._works: dict[str, _Work] = {}
        self._ready: deque[_Work] = deque()
        self._answered: asyncio.Queue[tuple[_Work, Outcome, asyncio.Event]] = asyncio.Queue()
        self._in_flight: set[asyncio.Task[None]] = set()
        self._moved = asyncio.Event()
        self._fed = False
        self._error: BaseException | None = None

    async def run(self) -> None:
        """Run to the end of the source, or until stopped.

        Raises:
            InputError: the source cannot be read on. ConfigError: a request can never be sent as things are.
            Unauthorized: nor with this key. What was in flight has then ended and is in the ledger.
            LedgerUnavailable: nothing can be kept.
        """
        with _interrupts(self._interrupted):
            helpers = [asyncio.create_task(work) for work in (self._keep(), self._tick())]
            feed, dispatch = asyncio.create_task(self._feed()), asyncio.create_task(self._dispatch())
            work = (feed, dispatch)
            try:
                waiting: set[asyncio.Task[Any]] = {*work}
                while waiting:
                    done, pending = await asyncio.wait([*waiting, *helpers], return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        error = task.exception()
                        if error is not None and task is not feed:
                            raise error
                        if error is not None:  # the source broke: what is in flight may end
                            self._fail(error)
                    waiting &= pending
            finally:
                for task in (*work, *helpers, *self._in_flight):
                    task.cancel()
                await asyncio.gather(*work, *helpers, *self._in_flight, return_exceptions=True)
        if self._error is not None:
            raise self._error

    def stop(self, reason: Stopped) -> None:
        """Send nothing more; what is in flight may end."""
        self._parts.report.stopped = self._parts.report.stopped or reason
        self._wake()

    @property
    def _stopped(self) -> bool:
        return self._parts.report.stopped is not None or self._error is not None

    def _interrupted(self) -> None:
        print(f"\nzlclient: waiting for {len(self._in_flight)} answers; Ctrl-C gives them up", file=sys.stderr)
        self.stop("interrupted")

    # Rows in.

    async def _feed(self) -> None:
        ledger = self._parts.ledger
        while not self._stopped:
            if not self._has_room():
                await self._change()
                continue
            made = await asyncio.to_thread(next, self._chunks, None)
            if made is None:
                break
            fresh = self._register(made)
            known = await asyncio.to_thread(ledger.find, [work.job.key for work in fresh]) if fresh else {}
            for work in fresh:
                outcome = known.get(work.job.key)
                if outcome is None:
                    self._ready.append(work)
                else:
                    self._parts.report.reused += len(work.rows)
                    self._settle(work, outcome)
            self._parts.output.flush()
            self._wake()
        self._fed = True
        self._wake()

    def _has_room(self) -> bool:
        output = self._parts.output
        return output.held + CHUNK <= self._window and output.held_bytes < WINDOW_BYTES

    def _register(self, made: list[Made]) -> list[_Work]:
        """The works that are new. A key is known here from before the ledger is asked until after it was told, so no
        row can slip between the two and be sent again."""
        fresh: list[_Work] = []
        for one in made:
            pending = self._parts.output.expect(one)
            if one.job is None:
                assert one.outcome is not None
                self._parts.output.settle(pending, one.outcome)
                continue
            work = self._works.get(one.job.key)
            if work is None:
                work = self._works[one.job.key] = _Work(one.job)
                fresh.append(work)
            work.rows.append(pending)
        return fresh

    # Requests out.

    async def _dispatch(self) -> None:
        while True:
            if self._stopped or (self._fed and not self._ready and not self._in_flight):
                break
            reserved = await self._admitted()
            if reserved is not None:
                task = asyncio.create_task(self._send(self._ready.popleft(), reserved))
                self._in_flight.add(task)
                task.add_done_callback(self._landed)
        while self._in_flight:
            await self._change()

    async def _admitted(self) -> Reserved | None:
        """What is reserved for the first ready job; None, after a while, where none may be sent yet."""
        parts = self._parts
        if not self._ready or not self._pace.has_room(len(self._in_flight)):
            await self._change()
            return None
        pause = self._pace.wait(parts.clock.monotonic())
        if pause:
            await parts.clock.asleep(min(pause, _SLICE))
            return None
        try:
            expected = self._ready[0].job.expected() if parts.budget.counts_tokens else None
            reserved = parts.budget.reserve(expected)
        except ConfigError as error:
            self._fail(error)
            return None
        if reserved is None:
            if self._in_flight:
                await self._change()
            else:
                self.stop("budget")
        return reserved

    async def _send(self, work: _Work, reserved: Reserved) -> None:
        parts, pace = self._parts, self._pace
        sent = parts.clock.monotonic()
        usage, cost = Usage(), 0.0
        try:
            reply = await self._client.chat(work.job.prompt, **work.job.options)
        except CheckError as error:
            outcome, attempts = failure(error), error.reply.attempts
            usage, cost = error.reply.usage, error.reply.cost
        except SendError as error:
            outcome, attempts = failure(error), error.attempts
            usage = error.usage or usage
            if isinstance(error, Unauthorized):
                self._fail(error)
                outcome = None
            elif isinstance(error, RateLimited) and work.limited + 1 < LIMITED_TRIES:
                work.limited += 1
                outcome = None
        except ConfigError as error:
            self._fail(error)
            parts.budget.settle(reserved, 0, usage, cost)
            return
        except ZlclientError as error:
            outcome, attempts = failure(error), ()
        else:
            outcome, attempts = answer(reply), reply.attempts
            usage, cost = reply.usage, reply.cost
        parts.report.add(len(attempts), usage, cost)
        parts.budget.settle(reserved, len(attempts), usage, cost)
        self._learn(attempts, sent)
        if outcome is None:
            self._ready.appendleft(work)
            return
        if outcome.ok:
            pace.answered()
        kept = asyncio.Event()
        self._answered.put_nowait((work, outcome, kept))
        await kept.wait()

    def _learn(self, attempts: tuple[Attempt, ...], sent: float) -> None:
        limits = [attempt for attempt in attempts if attempt.status in _LIMITED]
        if limits:
            self._pace.limited(sent, self._parts.clock.monotonic(), limits[-1].retry_after)

    def _landed(self, task: asyncio.Task[None]) -> None:
        self._in_flight.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._fail(error)
        self._wake()

    def _fail(self, error: BaseException) -> None:
        """Stop for an error that every further request would meet."""
        self._error = self._error or error
        self._wake()

    # Outcomes out.

    async def _keep(self) -> None:
        """Write to the ledger, in one transaction, all that was answered while it wrote the last ones."""
        while True:
            done = [await self._answered.get()]
            while not self._answered.empty():
                done.append(self._answered.get_nowait())
            outcomes = [(work.job.key, outcome) for work, outcome, _ in done]
            await asyncio.to_thread(self._parts.ledger.keep, outcomes)
            for work, outcome, kept in done:
                self._parts.report.reused += len(work.rows) - 1
                self._settle(work, outcome)
                kept.set()
            self._parts.output.flush()
            self._wake()

    def _settle(self, work: _Work, outcome: Outcome) -> None:
        self._works.pop(work.job.key, None)
        for pending in work.rows:
            self._parts.output.settle(pending, outcome)

    async def _tick(self) -> None:
        while True:
            bound = int(self._pace.bound)
            self._parts.progress.tick("" if bound == self._pace.ceiling else f"{bound} at once")
            await asyncio.sleep(0.1)

    def _wake(self) -> None:
        self._moved.set()

    async def _change(self) -> None:
        """Wait until something happened: the caller looks again. Nothing can happen between its look and this."""
        self._moved.clear()
        await self._moved.wait()


@contextmanager
def _interrupts(stop: Any) -> Generator[None]:
    """The first Ctrl-C calls `stop`, the second is a KeyboardInterrupt; only the main thread can hear them."""
    loop = asyncio.get_running_loop()

    def first() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        stop()

    heard = threading.current_thread() is threading.main_thread()
    if heard:
        try:
            loop.add_signal_handler(signal.SIGINT, first)
        except NotImplementedError:  # Windows: Ctrl-C ends the run at once; the ledger has what was answered
            heard = False
    try:
        yield
    finally:
        if heard:
            loop.remove_signal_handler(signal.SIGINT)


def run_loop(main: Coroutine[Any, Any, _T]) -> _T:
    """Run `main` on a loop of its own: here, or in a thread where a loop is running (a notebook).

    In a thread no signal is heard: there Ctrl-C gives up what is in flight.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(main)
    from concurrent.futures import ThreadPoolExecutor

    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[_T]]] = []

    async def watched() -> _T:
        task = asyncio.ensure_future(main)
        running.append((asyncio.get_running_loop(), task))
        return await task

    with ThreadPoolExecutor(1) as pool:
        try:
            return pool.submit(asyncio.run, watched()).result()
        except KeyboardInterrupt:
            for loop, task in running:
                loop.call_soon_threadsafe(task.cancel)
            raise
