"""What a provider is: a wire (pure: how a request is written, how a stream is read) and a way to open an exchange.

An adapter knows a wire and no policy: no retry, no routing, no shaping. It raises Failure, nothing else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ..prepared import Prepared, Tuned
    from ..reply import Adjustment, StreamEvent, Usage

Json = Mapping[str, Any]


class Decoder(Protocol):
    """Reads one answer: bytes in, events out, and the whole answer at the end."""

    id: str | None
    model: str | None
    usage: Usage
    stop_reason: str | None
    complete: bool

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        """The events that `chunk` completes. Raises Failure for an error event or malformed data."""
        ...

    def feed_whole(self, body: Json) -> list[StreamEvent]:
        """The events of an answer that came in one piece. Raises Failure."""
        ...

    def feed_event(self, event: Json) -> list[StreamEvent]:
        """The events of one wire event that was already parsed. Raises Failure."""
        ...

    def end(self) -> list[StreamEvent]:
        """The body ended: the events that only its end completes. `complete` then says whether the answer is whole."""
        ...

    @property
    def text(self) -> str:
        """The text so far."""
        ...

    def content(self) -> tuple[Json, ...]:
        """The blocks so far, in the neutral form."""
        ...


class Wire(Protocol):
    """One provider's way of writing a request and reading an answer. Pure."""

    path: str
    auth_header: str

    def headers(self, tuned: Tuned) -> dict[str, str]:
        """Headers apart from credentials."""
        ...

    def body(self, tuned: Tuned) -> Json:
        """The request body, tools and system first, messages last.

        Raises InputError for what this wire cannot carry and cannot leave out without changing what is asked.
        """
        ...

    def dropped(self, tuned: Tuned) -> tuple[Adjustment, ...]:
        """A note of each thing that `body` leaves out because this wire has no field for it."""
        ...

    def decoder(self) -> Decoder:
        """A fresh decoder."""
        ...


class Exchange(Protocol):
    """An open response: headers at once, then chunks of bytes, or whole wire events where the SDK must decode them."""

    status: int
    headers: Mapping[str, str]

    def __iter__(self) -> Iterator[bytes | Json]: ...

    def close(self) -> None:
        """Give the connection back. May be called twice."""
        ...

    def abandon(self) -> None:
        """Give the connection back without waiting, from wherever the owner goes away."""
        ...


class AsyncExchange(Protocol):
    """The same for asyncio."""

    status: int
    headers: Mapping[str, str]

    def __aiter__(self) -> AsyncIterator[bytes | Json]: ...

    async def aclose(self) -> None:
        """Give the connection back. May be called twice."""
        ...

    def abandon(self) -> None:
        """Give the connection back without waiting, from wherever the owner goes away."""
        ...


class Provider(Protocol):
    """Opens exchanges."""

    name: str

    def open(self, prepared: Prepared, timeout: float | None) -> Exchange:
        """Send and return once the headers are there. `timeout` bounds each read where no deadline is in force."""
        ...

    async def aopen(self, prepared: Prepared, timeout: float | None) -> AsyncExchange:
        """The same for asyncio."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...

    async def aclose(self) -> None:
        """Close all connections of the running loop."""
        ...
