"""One call in progress: what both drivers share. Pure but for the clock it is given.

A driver opens an exchange and feeds its chunks; this object reads them, keeps the time bounds, notes every attempt and
turns whatever goes wrong into one of our errors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ..errors import (
    ConnectFailed,
    DeadlineExceeded,
    EmptyAnswer,
    SendError,
    StatusError,
    StreamBroken,
    Timeout,
)
from ..providers.failure import Failure, not_an_answer, request_id_of
from ..providers.limit import Limit
from ..reply import Attempt, BlockDelta, StreamEvent, TextDelta, ThinkingDelta, Timings

if TYPE_CHECKING:
    from ..prepared import Prepared
    from ..providers.base import Decoder, Wire
    from .clock import Clock

Json = Mapping[str, Any]
_CONTENT = (TextDelta, ThinkingDelta, BlockDelta)


class Call:
    """The state of one call over all its attempts. `limit` is the moment that the socket layer obeys."""

    __slots__ = (
        "_attempt_started",
        "_first_content",
        "_last_content",
        "_now",
        "_whole",
        "attempts",
        "content",
        "deadline",
        "decoder",
        "delivered",
        "error",
        "headers",
        "limit",
        "prepared",
        "started",
        "status",
        "wire",
    )

    def __init__(self, clock: Clock, deadline: float | None, started: float) -> None:
        self._now = clock.monotonic
        self.started = started
        self.deadline = None if deadline is None else self.started + deadline
        self.limit = Limit(self._now)
        self.attempts: list[Attempt] = []
        self.content: tuple[Json, ...] = ()
        self.prepared: Prepared
        self.wire: Wire
        self.decoder: Decoder
        self._reset()

    def _reset(self) -> None:
        self.delivered = False
        self.error: SendError | None = None
        self.status: int | None = None
        self.headers: Mapping[str, str] = {}
        self._first_content: float | None = None
        self._last_content: float | None = None
        self._whole: bytes | None = None

    def begin(self, prepared: Prepared, wire: Wire) -> float | None:
        """Start an attempt; returns its first-event bound in seconds, for clients without a clamped backend."""
        self.prepared, self.wire = prepared, wire
        self.decoder = wire.decoder()
        self._reset()
        self._attempt_started = self._now()
        self._bound(prepared.bounds.first_event, self._attempt_started)
        return self.limit.left()

    def _bound(self, seconds: float | None, now: float) -> None:
        moment = None if seconds is None else now + seconds
        if self.deadline is not None and (moment is None or self.deadline < moment):
            moment = self.deadline
        self.limit.at = moment

    def opened(self, status: int, headers: Mapping[str, str]) -> None:
        """The response's head is there. Raises Failure for a success that is no answer."""
        self.status, self.headers = status, headers
        kind = headers.get("content-type", "").lower()
        if kind.startswith("application/json"):
            self._whole = b""  # a gateway that does not stream
        elif not kind.startswith(("text/event-stream", "application/vnd.amazon.eventstream")):
            raise not_an_answer(f"the server answered {status} with {kind or 'no content type'}", status, headers)

    def received(self, chunk: bytes | Json) -> list[StreamEvent]:
        """The events that `chunk` completes. Raises Failure."""
        now = self._now()
        if self.limit.at is not None and now >= self.limit.at and not self.decoder.complete:
            raise Failure(Timeout, "timed out")
        if self._whole is not None and isinstance(chunk, bytes):
            self._whole += chunk
            return []
        events = self.decoder.feed(chunk) if isinstance(chunk, bytes) else self.decoder.feed_event(chunk)
        if events:
            self._seen(events, now)
        elif isinstance(chunk, bytes) and (b"\n\n" in chunk or b"\n\r\n" in chunk):
            self._bound(self.prepared.bounds.silence, now)  # a ping is a sign of life
        return events

    def _seen(self, events: list[StreamEvent], now: float) -> None:
        self._bound(self.prepared.bounds.silence, now)
        for event in events:
            if isinstance(event, _CONTENT):
                self._last_content = now
                if not self.delivered:
                    self.delivered = True
                    self._first_content = now
                return

    def ended(self) -> list[StreamEvent]:
        """The body ended. Raises Failure unless the answer is whole."""
        events = self.decoder.end() if self._whole is None else self._read_whole(self._whole)
        if not self.decoder.complete:
            raise Failure(ConnectFailed, "the stream ended before the answer did")
        return events

    def _read_whole(self, raw: bytes) -> list[StreamEvent]:
        try:
            body: Any = json.loads(raw, strict=False)
        except ValueError:
            raise not_an_answer("the body is not JSON", self.status or 200, self.headers) from None
        if not isinstance(body, dict):
            raise not_an_answer("the JSON body is no answer", self.status or 200, self.headers)
        try:
            events = self.decoder.feed_whole(cast("Json", body))
        except (KeyError, TypeError, AttributeError):
            raise not_an_answer("the JSON body has an unknown shape", self.status or 200, self.headers) from None
        self._seen(events, self._now())
        return events

    def complete(self) -> None:
        """The answer is whole: take its blocks and note the attempt. Raises Failure if it has none, or a broken one."""
        self.content = self.decoder.content()
        if not self.delivered and not self.content:
            raise Failure(EmptyAnswer, f"the answer has no content (stop reason {self.decoder.stop_reason})")
        self._note(None, None)

    def failed(self, failure: Failure) -> SendError:
        """Note the attempt that failed, and give the error it means for the caller."""
        kind, problem = failure.kind, failure.problem
        late = self.deadline is not None and self._now() >= self.deadline
        if issubclass(kind, Timeout) and late:
            kind, problem = DeadlineExceeded, "the deadline passed"
        elif issubclass(kind, Timeout):
            what = "the next event" if self.delivered else "the first event"
            problem = f"{what} did not come within its bound"
        if self.delivered and not issubclass(kind, DeadlineExceeded | EmptyAnswer | StatusError):
            kind, problem = StreamBroken, f"the stream broke after content had begun: {problem}"
        self._note(kind.__name__, failure)
        self.error = self._error(kind, problem, failure)
        return self.error

    def _error(self, kind: type[SendError], problem: str, failure: Failure) -> SendError:
        details = failure.details if kind is failure.kind else {}
        route = self.prepared.route
        return kind(
            problem,
            provider=route.provider.name,
            model=route.model.id,
            route=route.name,
            attempts=tuple(self.attempts),
            status=failure.status or self.status,
            request_id=failure.request_id or self.request_id,
            partial_text=self.decoder.text,
            usage=self.decoder.usage,
            **details,
        )

    @property
    def request_id(self) -> str | None:
        """The provider's id of the latest exchange."""
        return request_id_of(self.headers)

    def _note(self, error: str | None, failure: Failure | None) -> None:
        route = self.prepared.route
        self.attempts.append(
            Attempt(
                provider=route.provider.name,
                model=route.model.id,
                route=route.name,
                status=(failure.status if failure is not None else None) or self.status,
                request_id=(failure.request_id if failure is not None else None) or self.request_id,
                error=error,
                started=self._attempt_started - self.started,
                ended=self._now() - self.started,
                retry_after=failure.retry_after if failure is not None else None,
            )
        )

    def resume(self) -> None:
        """The reader asks for more: its own slowness is no silence of the server's."""
        self._bound(self.prepared.bounds.silence, self._now())

    def grant(self, seconds: float) -> float | None:
        """Allow `seconds` more, within the deadline, for a complete answer's connection to end; what was granted."""
        self._bound(seconds, self._now())
        return self.limit.left()

    def left(self) -> float | None:
        """Seconds until the deadline; None without one."""
        return None if self.deadline is None else self.deadline - self._now()

    def timings(self) -> Timings:
        """TTFT from this attempt's sending, TPOT over the tokens after the first, total over the call."""
        now = self._now()
        ttft = None if self._first_content is None else self._first_content - self._attempt_started
        tokens = self.decoder.usage.output
        tpot = None
        if self._first_content is not None and self._last_content is not None and tokens > 1:
            tpot = (self._last_content - self._first_content) / (tokens - 1)
        return Timings(ttft=ttft, tpot=tpot, total=now - self.started)

    @property
    def finished(self) -> bool:
        """Whether the last event has come."""
        return self.decoder.complete
