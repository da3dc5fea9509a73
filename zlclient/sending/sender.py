"""The two drivers of `send`: one for threads, one for asyncio, over the same Call, Plan and policy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenacity import AsyncRetrying, RetryCallState, Retrying

from ..errors import ConfigError, RateLimited, SendError, Timeout
from ..providers.failure import Failure
from ..providers.limit import limited
from .call import Call
from .policy import is_unavailable, retry_wait

if TYPE_CHECKING:
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
        # The answer is left here, not returned: tenacity keeps what it is given in a cycle, and with it a connection.
        self.opened: Any = None

    def take(self) -> Any:
        """The answer under way; it is then held by nobody else."""
        opened, self.opened = self.opened, None
        return opened

    def amend(self, error: SendError) -> bool:
        """Whether the request was mended after `error` and is to be sent again at once."""
        amended = self.plan.amend(self.target, error)
        if amended is None or amended.prepared.content in self.amended:
            return False
        self.amended.add(amended.prepared.content)
        self.target = amended
        return True

    def wait_after(self, error: BaseException | None) -> float | None:
        """Seconds before the next attempt; None to give up, as always once content has arrived."""
        if not isinstance(error, SendError) or self.call.delivered:
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


class _Routes:
    """The routes of a call, one after another."""

    def __init__(self, plan: Plan, call: Call) -> None:
        self.target = plan.first
        self._left = iter(plan.fallbacks)
        self._call = call
        self._error: SendError | None = None

    def move_on(self, error: SendError | ConfigError) -> None:
        """Take the next route worth trying after `error`.

        Raises `error` where there is none. A fallback that lacks its key is passed over: what the caller then gets is
        what the provider said, with all attempts.
        """
        if isinstance(error, SendError):
            self._error = error
        if self._error is None:
            raise error
        target = self._next(self._error)
        if target is None:
            raise self._error from self._error.__cause__
        self.target = target

    def _next(self, error: SendError) -> Target | None:
        left = self._call.left()
        split = isinstance(error, RateLimited) and self._call.prepared.bounds.on_rate_limit == "split"
        if split or self._call.delivered or not is_unavailable(error) or (left is not None and left <= 0):
            return None
        for make in self._left:
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
        routes = _Routes(plan, call)
        while True:
            tries = _Tries(call, routes.target, plan)
            try:
                Retrying(sleep=self._clock.sleep, **tries.tenacity_options())(self._attempt, tries, whole)
                return tries.take()
            except (SendError, ConfigError) as error:
                routes.move_on(error)

    def _attempt(self, tries: _Tries, whole: bool) -> None:
        tries.count += 1
        while True:
            try:
                tries.opened = self._exchange(tries, whole)
                return
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
    with suppress(Failure):
        for _ in chunks:
            pass


class AsyncSender:
    """Sends a plan from a task."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def send(self, plan: Plan, *, whole: bool) -> AsyncOpened:
        """As `Sender.send`."""
        call = Call(self._clock, plan.first.prepared.bounds.deadline, plan.began)
        routes = _Routes(plan, call)
        while True:
            tries = _Tries(call, routes.target, plan)
            try:
                await AsyncRetrying(sleep=self._clock.asleep, **tries.tenacity_options())(self._attempt, tries, whole)
                return tries.take()
            except (SendError, ConfigError) as error:
                routes.move_on(error)

    async def _attempt(self, tries: _Tries, whole: bool) -> None:
        tries.count += 1
        while True:
            try:
                tries.opened = await self._exchange(tries, whole)
                return
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
    """As `drain`, under a bound of its own: that it passes is no fault of a call that has its answer."""
    bound.lift()
    with suppress(Failure, TimeoutError):
        async with asyncio.timeout(call.grant(DRAIN)):
            async for _ in chunks:
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

    def lift(self) -> None:
        """Bound nothing any more."""
        self._timeout.reschedule(None)

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError:
            raise Failure(Timeout, "timed out") from None
