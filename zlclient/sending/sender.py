"""The two drivers of `send`: one for threads, one for asyncio, over the same Call, Plan and policy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenacity import AsyncRetrying, RetryCallState, Retrying

from ..errors import RateLimited, SendError, Timeout
from ..providers.failure import Failure
from ..providers.limit import limited
from .call import Call
from .policy import is_unavailable, retry_wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..providers.base import AsyncExchange, Exchange
    from ..reply import StreamEvent
    from .clock import Clock
    from .plan import Plan, Target

Json = Mapping[str, Any]
DRAIN = 1.0  # seconds granted to a connection to end after the answer is complete, so that it can be used again


@dataclass(slots=True)
class Opened:
    """An answer under way: what was read so far, and where the rest comes from."""

    call: Call
    events: list[StreamEvent]
    exchange: Exchange
    chunks: Iterator[bytes | Json]


@dataclass(slots=True)
class AsyncOpened:
    """The same for asyncio."""

    call: Call
    events: list[StreamEvent]
    exchange: AsyncExchange
    chunks: AsyncIterator[bytes | Json]


class _Tries:
    """The attempts on one route: what is sent now, and what tenacity asks after a failure."""

    def __init__(self, call: Call, target: Target, plan: Plan) -> None:
        self.call, self.target, self.plan = call, target, plan
        self.count = 0
        self.amended: set[bytes] = set()

    def amend(self, error: SendError) -> bool:
        """Whether the request was mended after `error` and is to be sent again at once."""
        amended = self.plan.amend(self.target, error)
        if amended is None or amended.prepared.content in self.amended:
            return False
        self.amended.add(amended.prepared.content)
        self.target = amended
        return True

    def wait_after(self, error: BaseException | None) -> float | None:
        """Seconds before the next attempt; None to give up."""
        if not isinstance(error, SendError):
            return None
        return retry_wait(error, self.count, self.target.prepared.bounds, self.call.left())

    def tenacity_options(self) -> dict[str, Any]:
        """The policy in tenacity's words."""

        def wait(state: RetryCallState) -> float | None:
            return self.wait_after(state.outcome.exception() if state.outcome is not None else None)

        def again(state: RetryCallState) -> bool:
            return wait(state) is not None

        def pause(state: RetryCallState) -> float:
            return wait(state) or 0.0

        return {"retry": again, "wait": pause, "reraise": True}


def _next_route(call: Call, error: SendError, fallbacks: Iterator[Callable[[], Target | None]]) -> Target | None:
    """The next fallback worth trying after `error`; None to give up."""
    left = call.left()
    split = isinstance(error, RateLimited) and call.prepared.bounds.on_rate_limit == "split"
    if split or not is_unavailable(error) or (left is not None and left <= 0):
        return None
    for make in fallbacks:
        target = make()
        if target is not None:
            return target
    return None


class Sender:
    """Sends a plan from a thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def send(self, plan: Plan, *, whole: bool) -> Opened:
        """The answer: read to its end if `whole`, else up to its first content.

        Raises:
            SendError: every route failed; its `attempts` list all of them.
        """
        call = Call(self._clock, plan.first.prepared.bounds.deadline, plan.began)
        fallbacks = iter(plan.fallbacks)
        target: Target | None = plan.first
        while True:
            tries = _Tries(call, target, plan)
            try:
                return Retrying(sleep=self._clock.sleep, **tries.tenacity_options())(self._attempt, tries, whole)
            except SendError as error:
                target = _next_route(call, error, fallbacks)
                if target is None:
                    raise

    def _attempt(self, tries: _Tries, whole: bool) -> Opened:
        tries.count += 1
        while True:
            try:
                return self._exchange(tries, whole)
            except SendError as error:
                if not tries.amend(error):
                    raise

    @staticmethod
    def _exchange(tries: _Tries, whole: bool) -> Opened:
        call, target = tries.call, tries.target
        timeout = call.begin(target.prepared, target.wire)
        exchange: Exchange | None = None
        events: list[StreamEvent] = []
        try:
            with limited(call.limit):
                exchange = target.provider.open(target.prepared, timeout)
                call.opened(exchange.status, exchange.headers)
                chunks = iter(exchange)
                for chunk in chunks:
                    events += call.received(chunk)
                    if call.delivered and not whole:
                        break
                    if call.finished:
                        drain(call, chunks)
                        break
                else:
                    events += call.ended()
                if call.finished:
                    call.complete()
                    exchange.close()
                return Opened(call, events, exchange, chunks)
        except BaseException as error:
            if exchange is not None:
                exchange.close()
            if isinstance(error, Failure):
                raise call.failed(error) from error.__cause__
            raise


def drain(call: Call, chunks: Iterator[bytes | Json]) -> None:
    """Read a complete answer's connection to its end, briefly; a failure here loses nothing but the connection."""
    call.grant(DRAIN)
    try:
        for _ in chunks:
            pass
    except Failure:
        pass


class AsyncSender:
    """Sends a plan from a task."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def send(self, plan: Plan, *, whole: bool) -> AsyncOpened:
        """As `Sender.send`."""
        call = Call(self._clock, plan.first.prepared.bounds.deadline, plan.began)
        fallbacks = iter(plan.fallbacks)
        target: Target | None = plan.first
        while True:
            tries = _Tries(call, target, plan)
            try:
                retrying = AsyncRetrying(sleep=self._clock.asleep, **tries.tenacity_options())
                return await retrying(self._attempt, tries, whole)
            except SendError as error:
                target = _next_route(call, error, fallbacks)
                if target is None:
                    raise

    async def _attempt(self, tries: _Tries, whole: bool) -> AsyncOpened:
        tries.count += 1
        while True:
            try:
                return await self._exchange(tries, whole)
            except SendError as error:
                if not tries.amend(error):
                    raise

    @staticmethod
    async def _exchange(tries: _Tries, whole: bool) -> AsyncOpened:
        call, target = tries.call, tries.target
        timeout = call.begin(target.prepared, target.wire)
        exchange: AsyncExchange | None = None
        events: list[StreamEvent] = []
        try:
            async with Bound(call) as bound:
                exchange = await target.provider.aopen(target.prepared, timeout)
                call.opened(exchange.status, exchange.headers)
                chunks = aiter(exchange)
                async for chunk in chunks:
                    events += call.received(chunk)
                    bound.move()
                    if call.delivered and not whole:
                        break
                    if call.finished:
                        await adrain(call, chunks, bound)
                        break
                else:
                    events += call.ended()
            if call.finished:
                call.complete()
                await exchange.aclose()
            return AsyncOpened(call, events, exchange, chunks)
        except BaseException as error:
            if exchange is not None:
                await exchange.aclose()
            if isinstance(error, Failure):
                raise call.failed(error) from error.__cause__
            raise


async def adrain(call: Call, chunks: AsyncIterator[bytes | Json], bound: Bound) -> None:
    """As `drain`."""
    call.grant(DRAIN)
    bound.move()
    try:
        async for _ in chunks:
            pass
    except Failure:
        pass


class Bound:
    """The call's limit over the statements inside, as an asyncio timeout that moves with it; raises Failure."""

    __slots__ = ("_call", "_timeout")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._timeout = asyncio.timeout(call.limit.left())

    async def __aenter__(self) -> Bound:
        await self._timeout.__aenter__()
        return self

    def move(self) -> None:
        """Follow the limit after it moved."""
        left = self._call.limit.left()
        self._timeout.reschedule(None if left is None else asyncio.get_running_loop().time() + left)

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError:
            if not self._call.finished:
                raise Failure(Timeout, "timed out") from None
