"""Open responses of the SDKs' HTTP stack, and what its exceptions mean."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import httpx2

from ..errors import BadAnswer, ClientClosed, ConnectFailed, InputError, Timeout
from .failure import Failure, status_failure

Json = Mapping[str, Any]


def _plain(response: Any, verb: str) -> Any:
    """The body's chunks as they come; undoing no content encoding is cheaper where there is none."""
    return getattr(response, f"{verb}_bytes" if "content-encoding" in response.headers else f"{verb}_raw")()


class SdkExchange:
    """An open response; `events` are the SDK's own decoded ones, where its wire is not plain server-sent events."""

    __slots__ = ("_events", "_response", "_sdk", "headers", "status")

    def __init__(self, sdk: Any, response: Any, events: Any = None) -> None:
        self._sdk, self._response, self._events = sdk, response, events
        self.status: int = response.status_code
        self.headers: Mapping[str, str] = response.headers

    def __iter__(self) -> Iterator[bytes | Json]:
        try:
            if self._events is None:
                yield from _plain(self._response, "iter")
            else:
                for event in self._events:
                    yield event.to_dict(mode="json")
        except Exception as error:  # noqa: BLE001 - translated and raised
            raise translate(self._sdk, error) from cause_of(error)

    def close(self) -> None:
        """Give the connection back."""
        self._response.close()

    def abandon(self) -> None:
        """As `close`: for an owner that is going away."""
        self._response.close()

    __del__ = abandon


class AsyncSdkExchange:
    """The same for asyncio."""

    __slots__ = ("_events", "_loop", "_response", "_sdk", "headers", "status")

    def __init__(self, sdk: Any, response: Any, events: Any = None) -> None:
        self._sdk, self._response, self._events = sdk, response, events
        self.status: int = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._loop = asyncio.get_running_loop()

    async def __aiter__(self) -> AsyncIterator[bytes | Json]:
        try:
            if self._events is None:
                async for chunk in _plain(self._response, "aiter"):
                    yield chunk
            else:
                async for event in self._events:
                    yield event.to_dict(mode="json")
        except Exception as error:  # noqa: BLE001 - translated and raised
            raise translate(self._sdk, error) from cause_of(error)

    async def aclose(self) -> None:
        """Give the connection back."""
        await self._response.aclose()

    def abandon(self) -> None:
        """As `aclose`, for an owner that is going away: only the loop it belongs to can close a response."""
        if not self._response.is_closed and self._loop.is_running():
            self._loop.call_soon_threadsafe(self._loop.create_task, self._response.aclose())

    __del__ = abandon


def response_failure(response: Any) -> Failure:
    """The failure that a response with an error status means, its body read or not."""
    try:
        body = response.json()
    except (ValueError, httpx2.StreamError):
        body = response.text if response.is_stream_consumed else ""
    return status_failure(response.status_code, response.headers, body, time.time())


def cause_of(error: Exception) -> Exception | None:
    """`error` as a cause to show, unless it quotes a header's value, which may be a key."""
    quotes = isinstance(error, httpx2.LocalProtocolError) or isinstance(error.__cause__, httpx2.LocalProtocolError)
    return None if quotes else error


def translate(sdk: Any, error: Exception) -> Exception:
    """An SDK's or transport's exception as a Failure; anything that is no failed exchange as it is."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, sdk.APIStatusError):
        found: Any = error
        failure = status_failure(found.status_code, found.response.headers, found.body, time.time())
        failure.error_type = failure.error_type or getattr(found, "type", None)
        return failure
    cause = error.__cause__ if isinstance(error, sdk.APIConnectionError) else error
    if isinstance(cause, httpx2.PoolTimeout):
        return Failure(ConnectFailed, "every connection is in use")
    if isinstance(error, sdk.APITimeoutError | httpx2.TimeoutException):
        return Failure(Timeout, "timed out")
    if isinstance(cause, httpx2.LocalProtocolError):
        return InputError("holds characters that no header can carry", where="extra_headers")
    if isinstance(error, ValueError) and not isinstance(error, UnicodeError):
        return Failure(BadAnswer, "an event of the stream is not JSON")
    if isinstance(cause, UnicodeError):
        return InputError("holds characters that cannot be sent; sanitise it", where="messages")
    if isinstance(cause, RuntimeError) and "closed" in str(cause):
        return Failure(ClientClosed, "the client or its event loop is closed")
    if isinstance(error, sdk.APIConnectionError | httpx2.RequestError | httpx2.StreamError):
        return Failure(ConnectFailed, f"the connection failed: {type(cause or error).__name__}")
    return error
