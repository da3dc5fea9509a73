"""The two drivers of a call over a document: threads and asyncio, over the same Reading.

`answer` is the client's own way to answer one request, through the whole corridor; `begin` opens the last one's stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ..errors import SendError
from ..reply import Finish, Reply, Start, StreamEvent, TextDelta
from ..sending.sender import AsyncOpened, Opened

if TYPE_CHECKING:
    from ..request import Request
    from ..sending.call import Call
    from .jobs import Job
    from .reading import Reading

Answer = Callable[["Request"], Reply]
AsyncAnswer = Callable[["Request"], Awaitable[Reply]]
Finished = Callable[["Call"], Reply]


def answer_over(reading: Reading, answer: Answer) -> Reply:
    """The whole, checked reply.

    Raises:
        SegmentsFailed: see `Reading.rounds`.
    """
    _read(reading, answer)
    joined = reading.joined()
    if joined is not None:
        return joined
    last = reading.last()
    with reading.last_failures():
        reply = answer(last)
    return reading.finished(reply)


async def aanswer_over(reading: Reading, answer: AsyncAnswer) -> Reply:
    """As `answer_over`."""
    await _aread(reading, answer)
    joined = reading.joined()
    if joined is not None:
        return joined
    last = reading.last()
    with reading.last_failures():
        reply = await answer(last)
    return reading.finished(reply)


def open_over(
    reading: Reading, answer: Answer, begin: Callable[[Request], tuple[Opened, Finished]]
) -> tuple[Opened, Finished]:
    """The last request's answer under way, and what makes the caller's reply of it."""
    _read(reading, answer)
    joined = reading.joined()
    if joined is not None:
        return Opened(*_already(joined), iter(())), lambda _: joined
    last = reading.last()
    with reading.last_failures():
        opened, finish = begin(last)
    return opened, lambda call: reading.finished(finish(call))


async def aopen_over(
    reading: Reading, answer: AsyncAnswer, begin: Callable[[Request], Awaitable[tuple[AsyncOpened, Finished]]]
) -> tuple[AsyncOpened, Finished]:
    """As `open_over`."""
    await _aread(reading, answer)
    joined = reading.joined()
    if joined is not None:
        return AsyncOpened(*_already(joined), _nothing()), lambda _: joined
    last = reading.last()
    with reading.last_failures():
        opened, finish = await begin(last)
    return opened, lambda call: reading.finished(finish(call))


def _read(reading: Reading, answer: Answer) -> None:
    def work(job: Job) -> None:
        request = reading.start(job)
        if request is None:
            return
        try:
            reading.answered(job, answer(request))
        except SendError as error:
            reading.failed(job, error)

    for jobs in reading.rounds():
        pool = ThreadPoolExecutor(min(reading.concurrency, len(jobs)), thread_name_prefix="zlclient-read")
        try:
            # Each in a copy of the caller's context, so that its spans hang under the caller's.
            futures = [pool.submit(copy_context().run, work, job) for job in jobs]
            for future in futures:
                future.result()
        finally:
            pool.shutdown(cancel_futures=True)


async def _aread(reading: Reading, answer: AsyncAnswer) -> None:
    async def work(job: Job) -> None:
        async with free:
            request = reading.start(job)
            if request is None:
                return
            try:
                reading.answered(job, await answer(request))
            except SendError as error:
                reading.failed(job, error)

    free = asyncio.Semaphore(reading.concurrency)
    for jobs in reading.rounds():
        tasks = [asyncio.create_task(work(job)) for job in jobs]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(slots=True)
class _Text:
    """In the decoder's place, for a reply that is whole already."""

    text: str


@dataclass(slots=True)
class _Done:
    """In the call's place."""

    decoder: _Text
    finished: bool = True


class _Closed:
    """In the exchange's place: there is no connection."""

    def close(self) -> None: ...

    def abandon(self) -> None:
        """Nothing is open."""

    async def aclose(self) -> None: ...


def _already(reply: Reply) -> tuple[Call, list[StreamEvent], Any]:
    """(call, events, exchange) of a reply that needed no stream of its own."""
    events: list[StreamEvent] = [
        Start(None, reply.model),
        TextDelta(reply.text),
        Finish(reply.stop_reason, reply.usage),
    ]
    return cast("Call", _Done(_Text(reply.text))), events, _Closed()


async def _nothing() -> AsyncIterator[Any]:
    for piece in cast("Iterator[Any]", ()):
        yield piece
