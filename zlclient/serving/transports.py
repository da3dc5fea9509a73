"""The local server without a socket: transports that the official SDKs take in their `http_client`.

    anthropic.Anthropic(api_key="local", http_client=httpx2.Client(transport=transport()))
    openai.AsyncOpenAI(api_key="local", http_client=httpx2.AsyncClient(transport=async_transport()))

Pauses are slept, and end in `httpx2.ReadTimeout` where the request's read timeout is shorter, as on a real connection.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Protocol
from urllib.parse import parse_qs

import httpx2

from .server import LocalServer
from .wire import Drop, Pause, Piece, WireRequest, WireResponse, blocks

LONGEST_PAUSE = 3600.0  # a stall without a read timeout ends here


class Handler(Protocol):
    """What a transport stands on: LocalServer, or anything that answers wire requests."""

    def handle(self, request: WireRequest) -> WireResponse:
        """Answer `request`."""
        ...


def transport(server: Handler | None = None, *, sleep: Callable[[float], object] = time.sleep) -> LocalTransport:
    """A synchronous transport over `server` (the shared default one when None)."""
    return LocalTransport(server or LocalServer.default(), sleep)


def async_transport(
    server: Handler | None = None, *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> AsyncLocalTransport:
    """An asynchronous transport over `server`. A blocking responder runs in a worker thread."""
    return AsyncLocalTransport(server or LocalServer.default(), sleep)


def wire_request(request: httpx2.Request, body: bytes) -> WireRequest:
    """An httpx2 request as the server takes it."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    query = parse_qs(request.url.query.decode("ascii", "replace"), keep_blank_values=True)
    return WireRequest(request.method, request.url.path, headers, body, query)


class LocalTransport(httpx2.BaseTransport):
    """Answers requests from a Handler, in the calling thread."""

    def __init__(self, server: Handler, sleep: Callable[[float], object]) -> None:
        self._server, self._sleep = server, sleep

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises httpx2.ReadTimeout and RemoteProtocolError where a real connection would."""
        response = self._server.handle(wire_request(request, request.read()))
        pieces = self._bytes(response, request)
        head = next(pieces, b"")  # the head leaves with the first bytes
        stream = _SyncBody(head, pieces, response)
        return httpx2.Response(response.status, headers=response.headers, stream=stream, request=request)

    def _bytes(self, response: WireResponse, request: httpx2.Request) -> Iterator[bytes]:
        for piece in response.pieces():
            if isinstance(piece, Pause):
                seconds, too_long = _wait(piece, request)
                self._sleep(seconds)
                if too_long:
                    raise httpx2.ReadTimeout("The read operation timed out", request=request)
            else:
                yield _data(piece, request)


class AsyncLocalTransport(httpx2.AsyncBaseTransport):
    """Answers requests from a Handler, in the event loop or, for blocking responders, in worker threads."""

    def __init__(self, server: Handler, sleep: Callable[[float], Awaitable[object]]) -> None:
        self._server, self._sleep = server, sleep

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises httpx2.ReadTimeout and RemoteProtocolError where a real connection would."""
        wired = wire_request(request, await request.aread())
        blocking = blocks(self._server, wired)
        if blocking:
            response = await asyncio.to_thread(self._server.handle, wired)
        else:
            response = self._server.handle(wired)
        pieces = self._bytes(response, request, blocking=blocking)
        head = await anext(pieces, b"")
        stream = _AsyncBody(head, pieces, response)
        return httpx2.Response(response.status, headers=response.headers, stream=stream, request=request)

    async def _bytes(self, response: WireResponse, request: httpx2.Request, *, blocking: bool) -> AsyncIterator[bytes]:
        pieces = response.pieces()
        while True:
            piece = await asyncio.to_thread(next, pieces, None) if blocking else next(pieces, None)
            if piece is None:
                return
            if isinstance(piece, Pause):
                seconds, too_long = _wait(piece, request)
                await self._sleep(seconds)
                if too_long:
                    raise httpx2.ReadTimeout("The read operation timed out", request=request)
            else:
                yield _data(piece, request)


class _SyncBody(httpx2.SyncByteStream):
    def __init__(self, head: bytes, rest: Iterator[bytes], response: WireResponse) -> None:
        self._head, self._rest, self._response = head, rest, response

    def __iter__(self) -> Iterator[bytes]:
        if self._head:
            yield self._head
        yield from self._rest

    def close(self) -> None:
        self._response.close()


class _AsyncBody(httpx2.AsyncByteStream):
    def __init__(self, head: bytes, rest: AsyncIterator[bytes], response: WireResponse) -> None:
        self._head, self._rest, self._response = head, rest, response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._head:
            yield self._head
        async for data in self._rest:
            yield data

    async def aclose(self) -> None:
        self._response.close()


def _wait(pause: Pause, request: httpx2.Request) -> tuple[float, bool]:
    """How long to sleep, and whether the request's read timeout ends it."""
    timeout = request.extensions.get("timeout", {}).get("read")
    limit = LONGEST_PAUSE if timeout is None else float(timeout)
    return min(pause.seconds, limit), pause.seconds > limit


def _data(piece: Piece, request: httpx2.Request) -> bytes:
    if isinstance(piece, Drop):
        raise httpx2.RemoteProtocolError("Server disconnected without sending a response.", request=request)
    assert isinstance(piece, bytes)
    return piece
