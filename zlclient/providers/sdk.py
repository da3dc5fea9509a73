"""Exchanges through an official SDK's client: its credentials, address, headers and proxies, none of its policy.

Three ways, from the quickest. An SDK client made here with a key that never changes: its address and headers (public
properties) are read once and its HTTP client sends our bytes; that costs less than the SDK's own `create`, which builds
models. One made here whose credentials are fetched or renewed: the SDK's public `post` with our bytes. One that a user
hands in: `post` with the body as a dict, and the SDK decodes the stream, since middleware may want to read the request
and Bedrock or Vertex write another one.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import httpx2

from ..errors import ClientClosed, ConfigError, CredentialsError
from . import wire_of
from .clamp import clamp
from .exchange import AsyncSdkExchange, SdkExchange, cause_of, response_failure, translate
from .failure import Failure

if TYPE_CHECKING:
    from ..prepared import Prepared
    from ..settings import ProviderSettings


@dataclass(frozen=True, slots=True)
class _Line:
    """An SDK client with its HTTP client; `headers` is None where only the SDK knows the credentials of a request."""

    client: Any
    http: Any
    own: bool
    url: httpx2.URL
    headers: Mapping[str, str] | None

    def request(self, prepared: Prepared, timeout: float | None) -> httpx2.Request:
        """Our bytes as a request. A user's HTTP client adds what it was told to; one made here has nothing to add."""
        headers = {**(self.headers or {}), **prepared.headers}
        if not self.own:
            return self.http.build_request("POST", self.url, headers=headers, content=prepared.content, timeout=timeout)
        bounds = dict.fromkeys(("connect", "read", "write", "pool"), timeout)
        return httpx2.Request(
            "POST", self.url, headers=headers, content=prepared.content, extensions={"timeout": bounds}
        )


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
        if http_client is not None and not isinstance(http_client, httpx2.Client | httpx2.AsyncClient):
            raise ConfigError(f"must be an httpx2 client, not {type(http_client).__name__}", key="http_client")
        self._http_client = http_client
        for given in (http_client, getattr(client, "_client", None)):
            if isinstance(given, httpx2.Client):
                clamp(given)  # changes nothing but that our own deadlines hold
        self._sdk: Any = import_module(settings.kind)  # seconds the first time: before any time bound runs
        self._lock = threading.Lock()
        self._line: tuple[int, _Line] | None = None  # with the process it belongs to
        self._lines: dict[asyncio.AbstractEventLoop, _Line] = {}
        self._closed = False

    def open(self, prepared: Prepared, timeout: float | None) -> SdkExchange:
        """Send; returns once the response's head is there. Raises Failure."""
        try:
            self._refuse_wrong_kind(self._given, self._given_async, httpx2.AsyncClient)
            if self._given is not None:
                return self._open_given(self._given.with_options(max_retries=0), prepared, timeout)
            line = self._sync_line()
            if line.headers is None:
                return SdkExchange(self._sdk, line.client.post(**self._raw(prepared, timeout, "Stream")))
            response = line.http.send(line.request(prepared, timeout), stream=True)
            if response.is_error:
                with suppress(httpx2.DecodingError):
                    response.read()
                raise response_failure(response)
            return SdkExchange(self._sdk, response)
        except Exception as error:  # noqa: BLE001 - translated and raised
            raise translate(self._sdk, error) from cause_of(error)

    async def aopen(self, prepared: Prepared, timeout: float | None) -> AsyncSdkExchange:
        """Send; returns once the response's head is there. Raises Failure."""
        try:
            self._refuse_wrong_kind(self._given_async, self._given, httpx2.Client)
            if self._given_async is not None:
                return await self._aopen_given(self._given_async.with_options(max_retries=0), prepared, timeout)
            line = self._async_line()
            if line.headers is None:
                response = await line.client.post(**self._raw(prepared, timeout, "AsyncStream"))
                return AsyncSdkExchange(self._sdk, response)
            response = await line.http.send(line.request(prepared, timeout), stream=True)
            if response.is_error:
                with suppress(httpx2.DecodingError):
                    await response.aread()
                raise response_failure(response)
            return AsyncSdkExchange(self._sdk, response)
        except Exception as error:  # noqa: BLE001 - translated and raised
            raise translate(self._sdk, error) from cause_of(error)

    def _open_given(self, given: Any, prepared: Prepared, timeout: float | None) -> SdkExchange:
        # The OpenAI SDK stops reading at [DONE] and so drops the connection; its stream is always plain events.
        if not self._is_anthropic:
            return SdkExchange(self._sdk, given.post(**self._raw(prepared, timeout, "Stream", as_body=True)))
        events = given.post(**self._decoded(prepared, timeout, "Stream"))
        return SdkExchange(self._sdk, events.response, events)

    async def _aopen_given(self, given: Any, prepared: Prepared, timeout: float | None) -> AsyncSdkExchange:
        if not self._is_anthropic:
            response = await given.post(**self._raw(prepared, timeout, "AsyncStream", as_body=True))
            return AsyncSdkExchange(self._sdk, response)
        events = await given.post(**self._decoded(prepared, timeout, "AsyncStream"))
        return AsyncSdkExchange(self._sdk, events.response, events)

    def _refuse_wrong_kind(self, fitting: Any, other: Any, wrong_http: type) -> None:
        """A client that was handed in must not be passed over in silence: it may be somebody's proxy."""
        if other is not None and fitting is None:
            raise ConfigError(
                "is for the other kind of call (sync or async); give one that fits", key=f"clients.{self.name}"
            )
        if fitting is None and isinstance(self._http_client, wrong_http):
            raise ConfigError("is for the other kind of call (sync or async); give one that fits", key="http_client")

    def _raw(self, prepared: Prepared, timeout: float | None, stream: str, *, as_body: bool = False) -> dict[str, Any]:
        """The arguments of the SDK's `post` that send our bytes, or a dict of them, and leave the response unread."""
        return {
            "path": prepared.path,
            "cast_to": httpx2.Response,
            **({"body": dict(prepared.body)} if as_body else {"content": prepared.content}),
            "options": {"headers": dict(prepared.headers), "timeout": timeout},
            "stream": True,
            "stream_cls": getattr(self._sdk, stream),
        }

    def _decoded(self, prepared: Prepared, timeout: float | None, stream: str) -> dict[str, Any]:
        """The arguments of the SDK's `post` that let it write the request and decode the stream."""
        from anthropic.types import RawMessageStreamEvent as Event

        return {
            "path": prepared.path,
            "cast_to": Event,
            "body": dict(prepared.body),
            "options": {"headers": dict(prepared.headers), "timeout": timeout},
            "stream": True,
            "stream_cls": getattr(self._sdk, stream)[Event],
        }

    def _sync_line(self) -> _Line:
        """One a process: after a fork the child must not share its parent's sockets."""
        known, pid = self._line, os.getpid()
        if known is not None and known[0] == pid:
            return known[1]
        with self._lock:
            self._refuse_when_closed()
            if self._line is None or self._line[0] != pid:
                sdk = self._sdk
                given = self._http_given(httpx2.Client)
                http = given or clamp(sdk.DefaultHttpxClient(limits=self._limits()))
                kind = sdk.Anthropic if self._is_anthropic else sdk.OpenAI
                self._line = (pid, self._build(kind, http, own=given is None))
            return self._line[1]

    def _async_line(self) -> _Line:
        """One an event loop: connections of a closed loop cannot be used on another."""
        loop = asyncio.get_running_loop()
        known = self._lines.get(loop)
        if known is None:
            with self._lock:
                self._refuse_when_closed()
                for closed in [other for other in self._lines if other.is_closed()]:
                    del self._lines[closed]  # its connections went with it
                sdk = self._sdk
                given = self._http_given(httpx2.AsyncClient)
                http = given or sdk.DefaultAsyncHttpxClient(limits=self._limits())
                kind = sdk.AsyncAnthropic if self._is_anthropic else sdk.AsyncOpenAI
                known = self._lines[loop] = self._build(kind, http, own=given is None)
        return known

    @property
    def _is_anthropic(self) -> bool:
        return self._settings.kind == "anthropic"

    def _http_given(self, kind: type) -> Any:
        return self._http_client if isinstance(self._http_client, kind) else None

    def _limits(self) -> Any:
        size = self._settings.max_connections
        return httpx2.Limits(max_connections=size, max_keepalive_connections=size)

    def _build(self, kind: Any, http: Any, *, own: bool) -> _Line:
        settings = self._settings
        options: dict[str, Any] = {"http_client": http, "max_retries": 0, "base_url": settings.base_url}
        if self._is_anthropic:
            options["open_telemetry"] = False
        key = os.environ.get(settings.key_env, "").strip() if settings.key_env else "none"  # the SDKs want some key
        if not key.isprintable() or not key.isascii():
            raise CredentialsError("holds characters that no header can carry", key=settings.key_env)
        if key:
            options["api_key"] = key
        elif settings.key_env != "ANTHROPIC_API_KEY":
            raise missing_credentials(settings)  # the SDK's own search would find another provider's key
        client = kind(**options)
        if not (client.api_key or client.auth_token or client.credentials):
            raise missing_credentials(settings)
        fixed = bool(client.api_key) or bool(self._is_anthropic and client.auth_token)
        url = httpx2.URL(str(client.base_url).rstrip("/") + wire_of(settings.kind).path)
        return _Line(client, http, own, url, self._headers(client) if fixed else None)

    @staticmethod
    def _headers(client: Any) -> dict[str, str]:
        """What the SDK would send with every request; what it would leave out is no string."""
        headers = {**client.default_headers, **client.auth_headers}
        return {name.lower(): value for name, value in headers.items() if isinstance(value, str)}

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise Failure(ClientClosed, "the client is closed")

    def close(self) -> None:
        """Close the connections of this process."""
        self._closed = True
        if self._line is not None and self._line[0] == os.getpid() and self._line[1].own:
            self._line[1].client.close()
        self._line = None

    async def aclose(self) -> None:
        """Close the connections of the running loop, and of this process."""
        line = self._lines.pop(asyncio.get_running_loop(), None)
        if line is not None and line.own:
            await line.client.close()
        self.close()


def missing_credentials(settings: ProviderSettings) -> CredentialsError:
    """The error that names the variable to set and the offline way."""
    return CredentialsError(
        f'no credentials for {settings.name}: set {settings.key_env}, or work offline with provider="local"',
        key=settings.key_env,
    )
