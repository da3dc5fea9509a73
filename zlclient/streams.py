"""Answers read as they arrive.

    with zlclient.stream("…") as answer:
        for text in answer:
            print(text, end="")
    answer.reply.usage

A stream that is dropped, broken out of or never read gives its connection back when it is garbage, at the latest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

from .errors import ConnectFailed
from .providers.failure import Failure
from .providers.limit import limited
from .reply import Reply, StreamEvent, TextDelta
from .sending.sender import AsyncOpened, Bound, Opened, adrain, drain

if TYPE_CHECKING:
    from .errors import SendError
    from .sending.call import Call


def _ignore(_: SendError) -> None:
    """What a stream outside any experiment does with its failure."""


class _Answer:
    """What both kinds of stream share: the call, and the reply once all was read."""

    def __init__(self, opened: Opened | AsyncOpened, finish: Callable[[Call], Reply]) -> None:
        self._call, self._finish = opened.call, finish
        self._abandon = opened.exchange.abandon
        self._reply: Reply | None = None

    def __del__(self) -> None:
        # The exchange itself may be kept alive: by the frames of an error that a retry has overcome, for one.
        self._abandon()

    @property
    def text(self) -> str:
        """The text that has arrived so far."""
        return self._call.decoder.text

    def _whole(self) -> Reply:
        """The reply of an answer that was read to its end; what broke off is none, however often it is asked for."""
        if not self._call.finished:
            raise self._call.error or self._call.failed(Failure(ConnectFailed, "closed before the answer was whole"))
        if self._reply is None:
            self._reply = self._finish(self._call)
        return self._reply


class Stream(_Answer):
    """An answer under way. Iterating gives its text piece by piece; `events()` gives everything.

    Raises while iterating:
        SendError: the answer broke off; `partial_text`, `usage` and `request_id` are attached.
    """

    def __init__(
        self, opened: Opened, finish: Callable[[Call], Reply], failed: Callable[[SendError], None] = _ignore
    ) -> None:
        super().__init__(opened, finish)
        self._exchange = opened.exchange
        self._events = _read(opened, failed)

    def __iter__(self) -> Iterator[str]:
        for event in self._events:
            if isinstance(event, TextDelta):
                yield event.text

    def events(self) -> Iterator[StreamEvent]:
        """Every event that was not read yet."""
        yield from self._events

    @property
    def reply(self) -> Reply:
        """The whole answer; reads what was not read yet. Raises SendError for one that broke off or was closed."""
        for _ in self._events:
            pass
        return self._whole()

    def close(self) -> None:
        """Give the connection back; the rest of the answer is lost."""
        self._exchange.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class AsyncStream(_Answer):
    """The same for asyncio: `async for text in answer`, `await answer.reply()`."""

    def __init__(
        self, opened: AsyncOpened, finish: Callable[[Call], Reply], failed: Callable[[SendError], None] = _ignore
    ) -> None:
        super().__init__(opened, finish)
        self._exchange = opened.exchange
        self._events = _aread(opened, failed)

    async def __aiter__(self) -> AsyncIterator[str]:
        async for event in self._events:
            if isinstance(event, TextDelta):
                yield event.text

    async def events(self) -> AsyncIterator[StreamEvent]:
        """Every event that was not read yet."""
        async for event in self._events:
            yield event

    async def reply(self) -> Reply:
        """The whole answer; reads what was not read yet. Raises SendError for one that broke off or was closed."""
        async for _ in self._events:
            pass
        return self._whole()

    async def aclose(self) -> None:
        """Give the connection back; the rest of the answer is lost."""
        await self._exchange.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.aclose()


def _read(opened: Opened, failed: Callable[[SendError], None]) -> Iterator[StreamEvent]:
    """The rest of an answer. No method of Stream: a generator that held it would keep an abandoned one alive."""
    call, chunks = opened.call, opened.chunks
    yield from opened.events
    while not call.finished:
        call.resume()
        try:
            with limited(call.limit):
                chunk = next(chunks, None)
            events = call.ended() if chunk is None else call.received(chunk)
            if call.finished:
                with limited(call.limit):
                    drain(call, chunks)
                call.complete()
                opened.exchange.close()
        except Failure as failure:
            opened.exchange.close()
            error = call.failed(failure)
            failed(error)
            raise error from failure.__cause__
        yield from events


async def _aread(opened: AsyncOpened, failed: Callable[[SendError], None]) -> AsyncIterator[StreamEvent]:
    """As `_read`."""
    call, chunks = opened.call, opened.chunks
    for event in opened.events:
        yield event
    while not call.finished:
        call.resume()
        try:
            async with Bound(call) as bound:
                chunk = await anext(chunks, None)
                events = call.ended() if chunk is None else call.received(chunk)
                if call.finished:
                    await adrain(call, chunks, bound)
            if call.finished:
                call.complete()
                await opened.exchange.aclose()
        except Failure as failure:
            await opened.exchange.aclose()
            error = call.failed(failure)
            failed(error)
            raise error from failure.__cause__
        for event in events:
            yield event
