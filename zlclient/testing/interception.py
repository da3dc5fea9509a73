"""Requests of the SDKs, wherever their clients are made, answered in process.

The official SDKs send through `httpx2.HTTPTransport` and `AsyncHTTPTransport`. While an interception is installed the
two classes hand what is the SDKs' to the server instead of a connection pool, and refuse other hosts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2

from .in_process import Transport
from .network import Guard
from .offline import OWN_HOSTS

if TYPE_CHECKING:
    import pytest

    from .offline import OfflineServer

KEY = "zl-offline-key"
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")
_UNSET = ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE")  # other credentials that the SDKs would look for


class Interception:
    """Sends the SDKs' requests to `server`; `guard` says which hosts are left alone."""

    def __init__(self, server: OfflineServer, guard: Guard) -> None:
        self._server, self._guard = server, guard
        self._transport = Transport(server)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Patch the transports, and give the SDKs keys, until the patch is undone."""
        send, send_async = httpx2.HTTPTransport.handle_request, httpx2.AsyncHTTPTransport.handle_async_request

        def handle_request(transport: httpx2.HTTPTransport, request: httpx2.Request) -> httpx2.Response:
            return self._transport.handle_request(request) if self._takes(request) else send(transport, request)

        async def handle_async_request(
            transport: httpx2.AsyncHTTPTransport, request: httpx2.Request
        ) -> httpx2.Response:
            if self._takes(request):
                return await self._transport.handle_async_request(request)
            return await send_async(transport, request)

        monkeypatch.setattr(httpx2.HTTPTransport, "handle_request", handle_request)
        monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", handle_async_request)
        if not any(self._guard.allows(host) for host in OWN_HOSTS):
            for name in KEYS:
                monkeypatch.setenv(name, KEY)
            for name in _UNSET:
                monkeypatch.delenv(name, raising=False)

    def _takes(self, request: Any) -> bool:
        """Whether a request is an SDK's and for the server; raises NetworkBlocked for other hosts."""
        host, port = request.url.host, request.url.port
        own = urlsplit(self._server.listens_at) if self._server.listens_at else None
        if self._guard.allows(host) or (own and (host, port) == (own.hostname, own.port)):
            return False
        # Every request of either SDK says so in a header, whichever base URL it was given.
        if host in OWN_HOSTS or host.endswith(".api.openai.com") or "x-stainless-lang" in request.headers:
            return True
        self._guard.check(host)
        return False
