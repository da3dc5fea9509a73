"""HTTP as values: what a driver (a socket, an SDK transport, the client's local provider) hands in and gets back.

    response = LocalServer.default().handle(WireRequest("POST", "/v1/messages", headers, body))
    for piece in response.pieces():
        match piece:
            case Pause(seconds): time.sleep(seconds)
            case Drop(): raise ConnectionError
            case bytes(): ...

A stream is lazy: nothing is computed before it is asked for. The head (status and headers) leaves with the first
bytes, so a `Pause` or `Drop` before them delays the head or breaks the connection without one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from .responders.base import Pause


@dataclass(frozen=True, slots=True)
class Drop:
    """The connection breaks here."""


Piece = bytes | Pause | Drop


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request. `path` has no query and is percent-decoded; header names are in lower case; `query` maps to lists."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    query: Mapping[str, list[str]] = field(default_factory=dict[str, list[str]])


def blocks(handler: object, request: WireRequest) -> bool:
    """Whether `handler` says that it may take long over `request`, so that an event loop should not wait for it."""
    asked: Callable[[WireRequest], bool] | None = getattr(handler, "blocks", None)
    return asked is not None and asked(request)


@dataclass(slots=True)
class WireResponse:
    """A response. Close `body` when it is a generator and is not read to its end: `close()` does."""

    status: int
    headers: dict[str, str]
    body: bytes | Iterator[Piece]

    def pieces(self) -> Iterator[Piece]:
        """The body in order, whichever form it has."""
        return iter((self.body,)) if isinstance(self.body, bytes) else self.body

    def close(self) -> None:
        """Give up an unread stream; safe to call twice, and while a worker thread is still computing its next piece."""
        close = getattr(self.body, "close", None)
        if close is not None:
            with suppress(ValueError):  # a generator cannot be closed while it runs; it is collected after
                close()


STALL = Pause(math.inf)
COMMENT = b": alive\n\n"  # of a stream of server-sent events, which its readers pass over
