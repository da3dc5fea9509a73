"""A network backend that keeps a total deadline for synchronous clients, without threads (see `limit`).

httpx2 gives no public way to set the backend of a transport, so `clamp` reaches for the pool of the transports of a
client once, at construction; tests/providers/test_clamp.py pins the two attributes it needs. Everything else about the
client (proxies from the environment, TLS settings, socket options) stays what its maker chose.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import httpcore2

from .limit import CURRENT

if TYPE_CHECKING:
    import ssl

    import httpx2


def clamp(client: httpx2.Client) -> httpx2.Client:
    """`client`, with every transport of its own obeying the limit in force."""
    found: Any = client
    for transport in {found._transport, *found._mounts.values()}:
        pool = getattr(transport, "_pool", None)
        if pool is not None:
            pool._network_backend = ClampedBackend()
    return client


def _left(timeout: float | None, expired: type[Exception]) -> float | None:
    limit = CURRENT.get()
    left = limit.left() if limit is not None else None
    if left is None:
        return timeout
    if left <= 0:
        raise expired("the time bound of this exchange has passed")
    return left if timeout is None else min(timeout, left)


class ClampedStream(httpcore2.NetworkStream):
    """A stream whose every read and write is cut to the time left."""

    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read within the time left."""
        return self._stream.read(max_bytes, _left(timeout, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write within the time left."""
        self._stream.write(buffer, _left(timeout, httpcore2.WriteTimeout))

    def close(self) -> None:
        """Close the socket."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        """Shake hands within the time left."""
        left = _left(timeout, httpcore2.ConnectTimeout)
        return ClampedStream(self._stream.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        """What the socket says of itself."""
        return self._stream.get_extra_info(info)


class ClampedBackend(httpcore2.NetworkBackend):
    """Opens clamped streams."""

    def __init__(self) -> None:
        self._backend = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """Connect within the time left."""
        left = _left(timeout, httpcore2.ConnectTimeout)
        return ClampedStream(self._backend.connect_tcp(host, port, left, local_address, socket_options))

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.NetworkStream:
        """Connect within the time left."""
        left = _left(timeout, httpcore2.ConnectTimeout)
        return ClampedStream(self._backend.connect_unix_socket(path, left, socket_options))

    def sleep(self, seconds: float) -> None:
        """Sleep."""
        self._backend.sleep(seconds)
