"""Exchanges through an official SDK's client: its credentials, address, proxies and middleware, none of its policy.

The request goes through the SDK's public `post` with our bytes as they are, and the response's bytes come back unread:
that path is cheaper than the SDK's own `create`, because no model is built. A client that a user hands in may write
another request than ours and another stream than server-sent events (Bedrock, Vertex); those get the body as a dict
and give back events the SDK decoded.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import httpx2

from ..errors import ClientClosed, ConnectFailed, CredentialsError, InputError, Timeout
from .failure import Failure, status_failure

if TYPE_CHECKING:
    from ..prepared import Prepared
    from ..settings import ProviderSettings

Json = Mapping[str, Any]


class SdkExchange:
    """An open response of a synchronous SDK client."""

    def __init__(self, sdk: Any, response: Any, events: Any = None) -> None:
        self._sdk, self._response, self._events = sdk, response, events
        self.status: int = response.status_code
        self.headers: Mapping[str, str] = response.headers

    def __iter__(self) -> Iterator[bytes | Json]:
        try:
            if self._events is None:
                yield from self._response.iter_bytes()
            else:
                for event in self._events:
                    yield event.to_dict(mode="json")
        except Exception as error:
            raise translate(self._sdk, error) from error

    def close(self) -> None:
        """Give the connection back."""
        self._response.close()

    def __del__(self) -> None:
        self._response.close()


class AsyncSdkExchange:
    """An open response of an asynchronous SDK client."""

    def __init__(self, sdk: Any, response: Any, events: Any = None) -> None:
        self._sdk, self._response, self._events = sdk, response, events
        self.status: int = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._loop = asyncio.get_running_loop()

    async def __aiter__(self) -> AsyncIterator[bytes | Json]:
        try:
            if self._events is None:
                async for chunk in self._response.aiter_bytes():
                    yield chunk
            else:
                async for event in self._events:
                    yield event.to_dict(mode="json")
        except Exception as error:
            raise translate(self._sdk, error) from error

    async def aclose(self) -> None:
        """Give the connection back."""
        await self._response.aclose()

    def __del__(self) -> None:
        # An abandoned response can only be closed by its loop.
        if not self._response.is_closed and self._loop.is_running():
            self._loop.call_soon_threadsafe(self._loop.create_task, self._response.aclose())


class SdkProvider:
    """One provider reached through `anthropic` or `openai`.

    Args:
        settings: where and how.
        client: an SDK client of the user's own, sync or async, used as it is.
        http_client: an httpx2 client of the user's own, sync or async, for the SDK client made here.
    """

    def __init__(self, settings: ProviderSettings, *, client: Any = None, http_client: Any = None) -> None:
        self.name = settings.name
        self._settings = settings
        is_async = client is not None and hasattr(client, "__aenter__")
        self._given: Any = None if is_async else client
        self._given_async: Any = client if is_async else None
        self._sdk: Any = import_module(settings.kind)  # seconds the first time: before any time bound runs
        self._http_client = http_client
        self._lock = threading.Lock()
        self._client: tuple[int, Any] | None = None  # (process id, SDK client)
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()
        self._closed = False

    def open(self, prepared: Prepared, timeout: float | None) -> SdkExchange:
        """Send; returns once the response's headers are there. Raises Failure."""
        sdk = self._sdk
        if self._given is not None:
            return self._open_given(sdk, prepared, timeout)
        client = self._sync_client(sdk)
        try:
            response = client.post(
                prepared.path,
                cast_to=httpx2.Response,
                content=prepared.content,
                options={"headers": dict(prepared.headers), "timeout": timeout},
                stream=True,
                stream_cls=sdk.Stream,
            )
        except Exception as error:
            raise translate(sdk, error) from error
        return SdkExchange(sdk, response)

    async def aopen(self, prepared: Prepared, timeout: float | None) -> AsyncSdkExchange:
        """Send; returns once the response's headers are there. Raises Failure."""
        sdk = self._sdk
        if self._given_async is not None:
            return await self._aopen_given(sdk, prepared, timeout)
        client = self._async_client(sdk)
        try:
            response = await client.post(
                prepared.path,
                cast_to=httpx2.Response,
                content=prepared.content,
                options={"headers": dict(prepared.headers), "timeout": timeout},
                stream=True,
                stream_cls=sdk.AsyncStream,
            )
        except Exception as error:
            raise translate(sdk, error) from error
        return AsyncSdkExchange(sdk, response)

    def _open_given(self, sdk: Any, prepared: Prepared, timeout: float | None) -> SdkExchange:
        client = self._given.with_options(max_retries=0)
        event_type = _event_type(self._settings.kind)
        try:
            events = client.post(
                prepared.path,
                cast_to=event_type,
                body=dict(prepared.body),
                options={"headers": dict(prepared.headers), "timeout": timeout},
                stream=True,
                stream_cls=sdk.Stream[event_type],
            )
        except Exception as error:
            raise translate(sdk, error) from error
        return SdkExchange(sdk, events.response, events)

    async def _aopen_given(self, sdk: Any, prepared: Prepared, timeout: float | None) -> AsyncSdkExchange:
        client = self._given_async.with_options(max_retries=0)
        event_type = _event_type(self._settings.kind)
        try:
            events = await client.post(
                prepared.path,
                cast_to=event_type,
                body=dict(prepared.body),
                options={"headers": dict(prepared.headers), "timeout": timeout},
                stream=True,
                stream_cls=sdk.AsyncStream[event_type],
            )
        except Exception as error:
            raise translate(sdk, error) from error
        return AsyncSdkExchange(sdk, events.response, events)

    def _sync_client(self, sdk: Any) -> Any:
        """One SDK client a process: after a fork the child must not share its parent's sockets."""
        known, pid = self._client, os.getpid()
        if known is not None and known[0] == pid:
            return known[1]
        with self._lock:
            self._refuse_when_closed()
            if self._client is None or self._client[0] != pid:
                from .clamp import clamp

                http = self._own_http(httpx2.Client) or clamp(sdk.DefaultHttpxClient(limits=self._limits()))
                self._client = (pid, self._build(sdk.Anthropic if self._is_anthropic else sdk.OpenAI, http))
            return self._client[1]

    def _async_client(self, sdk: Any) -> Any:
        """One SDK client an event loop: connections of a closed loop cannot be used on another."""
        loop = asyncio.get_running_loop()
        known = self._by_loop.get(loop)
        if known is None:
            with self._lock:
                self._refuse_when_closed()
                http = self._own_http(httpx2.AsyncClient) or sdk.DefaultAsyncHttpxClient(limits=self._limits())
                kind = sdk.AsyncAnthropic if self._is_anthropic else sdk.AsyncOpenAI
                known = self._by_loop[loop] = self._build(kind, http)
        return known

    @property
    def _is_anthropic(self) -> bool:
        return self._settings.kind == "anthropic"

    def _own_http(self, kind: type) -> Any:
        return self._http_client if isinstance(self._http_client, kind) else None

    def _limits(self) -> Any:
        size = self._settings.max_connections
        return httpx2.Limits(max_connections=size, max_keepalive_connections=size)

    def _build(self, kind: Any, http: Any) -> Any:
        settings = self._settings
        options: dict[str, Any] = {"http_client": http, "max_retries": 0, "default_headers": dict(settings.headers)}
        options["base_url"] = settings.base_url
        if self._is_anthropic:
            options["open_telemetry"] = False
        key = os.environ.get(settings.key_env) if settings.key_env else None
        if key:
            options["api_key"] = key
        elif settings.key_env is None:
            options["api_key"] = "none"  # a server without authentication; the SDK wants some key
        elif not self._is_anthropic:
            raise missing_credentials(settings)
        client = kind(**options)
        if self._is_anthropic and not (client.api_key or client.auth_token or client.credentials):
            raise missing_credentials(settings)
        return client

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise Failure(ClientClosed, "the client is closed")

    def close(self) -> None:
        """Close the connections of this process."""
        self._closed = True
        if self._client is not None and self._client[0] == os.getpid():
            self._client[1].close()
        self._client = None

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        self._closed = True
        client = self._by_loop.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()
        self.close()


def _event_type(kind: str) -> Any:
    if kind == "anthropic":
        from anthropic.types import RawMessageStreamEvent

        return RawMessageStreamEvent
    from openai.types.chat import ChatCompletionChunk

    return ChatCompletionChunk


def missing_credentials(settings: ProviderSettings) -> CredentialsError:
    """The error that names the variable to set and the offline way."""
    return CredentialsError(
        f'no credentials for {settings.name}: set {settings.key_env}, or work offline with provider="local"',
        key=settings.key_env,
    )


def translate(sdk: Any, error: Exception) -> Exception:
    """An SDK's or transport's exception as a Failure; anything that is no failed exchange as it is."""
    if isinstance(error, sdk.APIStatusError):
        found: Any = error
        failure = status_failure(found.status_code, found.response.headers, found.body, time.time())
        if failure.request_id is None:
            failure.request_id = found.request_id
        return failure
    if isinstance(error, sdk.APITimeoutError | httpx2.PoolTimeout):
        return Failure(Timeout, "timed out")
    if isinstance(error, httpx2.TimeoutException):
        return Failure(Timeout, "timed out")
    if isinstance(error, sdk.APIConnectionError):
        cause = error.__cause__
        if isinstance(cause, UnicodeError):
            return InputError("holds characters that cannot be sent; sanitise it", where="messages")
        return Failure(ConnectFailed, f"no connection: {type(cause or error).__name__}")
    if isinstance(error, httpx2.TransportError | httpx2.StreamError):
        return Failure(ConnectFailed, f"the connection broke: {type(error).__name__}")
    if isinstance(error, RuntimeError) and "closed" in str(error):
        return Failure(ClientClosed, "the client or its event loop is closed")
    return error
