"""The offline engine: the Anthropic wire in process, with no socket and no SDK."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import ConnectFailed, Timeout
from .failure import Failure, status_failure
from .limit import CURRENT

if TYPE_CHECKING:
    from ..prepared import Prepared
    from ..serving.server import LocalServer
    from ..serving.wire import Piece, WireRequest, WireResponse

Json = Mapping[str, Any]
_NEVER = 3600.0  # a stalled responder says "for ever"; the sender's bound comes long before


class LocalExchange:
    """An answer of the local server, for both kinds of driver.

    `blocking`: its pieces take long to compute, and an event loop waits for them in worker threads.
    """

    def __init__(self, response: WireResponse, *, blocking: bool = False) -> None:
        self._response, self._blocking = response, blocking
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    def __iter__(self) -> Iterator[bytes | Json]:
        for piece in self._response.pieces():
            if isinstance(piece, bytes):
                yield piece
            else:
                time.sleep(_pause(piece))
                _check_limit()

    async def __aiter__(self) -> AsyncIterator[bytes | Json]:
        pieces = self._response.pieces()
        while (piece := await self._next(pieces)) is not None:
            if isinstance(piece, bytes):
                yield piece
                await asyncio.sleep(0)
            else:
                await asyncio.sleep(_pause(piece))

    async def _next(self, pieces: Iterator[Piece]) -> Piece | None:
        return await asyncio.to_thread(next, pieces, None) if self._blocking else next(pieces, None)

    def close(self) -> None:
        """Give up an unread stream."""
        self._response.close()

    async def aclose(self) -> None:
        """Give up an unread stream."""
        self._response.close()

    def abandon(self) -> None:
        """As `close`, for an owner that is going away."""
        self._response.close()


class LocalProvider:
    """Hands requests to a LocalServer in this process."""

    def __init__(self, name: str = "local", server: LocalServer | None = None) -> None:
        from ..serving.server import LocalServer
        from ..serving.wire import WireRequest

        self.name = name
        self._server = server or LocalServer.default()
        self._request = WireRequest

    def open(self, prepared: Prepared, timeout: float | None) -> LocalExchange:  # noqa: ARG002 - the limit bounds it
        """The server's answer; an error status is raised as a Failure."""
        return self._answered(self._wired(prepared), blocking=False)

    async def aopen(self, prepared: Prepared, timeout: float | None) -> LocalExchange:  # noqa: ARG002 - as in `open`
        """The same, in a worker thread where a responder takes long."""
        request = self._wired(prepared)
        if self._server.blocks(request):
            return await asyncio.to_thread(self._answered, request, blocking=True)
        return self._answered(request, blocking=False)

    def _wired(self, prepared: Prepared) -> WireRequest:
        headers = {"x-api-key": "local", **{name.lower(): value for name, value in prepared.headers.items()}}
        return self._request(prepared.method, prepared.path, headers, prepared.content)

    def _answered(self, request: WireRequest, *, blocking: bool) -> LocalExchange:
        response = self._server.handle(request)
        exchange = LocalExchange(response, blocking=blocking)
        if response.status >= 400:
            raise _failed(exchange)
        return exchange

    def close(self) -> None:
        """Nothing is held."""

    async def aclose(self) -> None:
        """Nothing is held."""


def _failed(exchange: LocalExchange) -> Failure:
    raw = b"".join(chunk for chunk in exchange if isinstance(chunk, bytes))
    try:
        body: Any = json.loads(raw)
    except ValueError:
        body = raw.decode("utf-8", "replace")
    return status_failure(exchange.status, exchange.headers, body, time.time())


def _pause(piece: Any) -> float:
    """How long to wait at a piece that is no bytes; a drop breaks the connection."""
    seconds = getattr(piece, "seconds", None)
    if seconds is None:
        raise Failure(ConnectFailed, "the connection broke")
    limit = CURRENT.get()
    left = limit.left() if limit is not None else None
    wait = _NEVER if math.isinf(seconds) else float(seconds)
    return wait if left is None else min(wait, left)


def _check_limit() -> None:
    limit = CURRENT.get()
    if limit is not None and limit.passed():
        raise Failure(Timeout, "timed out")
