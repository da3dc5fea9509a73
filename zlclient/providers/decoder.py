"""What the decoders of both wires share: bytes to events, and the state of one answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..errors import BadAnswer
from ..reply import StreamEvent, Usage
from .failure import Failure
from .sse import SseParser

Json = Mapping[str, Any]
_lenient = json.JSONDecoder(strict=False)  # models put raw control characters into strings


class StreamDecoder:
    """Reads one answer without building the SDK's snapshots; a wire's decoder says what each of its events means."""

    __slots__ = ("_parser", "_texts", "complete", "id", "model", "stop_reason", "usage")

    def __init__(self) -> None:
        self._parser = SseParser()
        self._texts: list[str] = []
        self.id: str | None = None
        self.model: str | None = None
        self.usage = Usage()
        self.stop_reason: str | None = None
        self.complete = False

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        """The events that `chunk` completes. Raises Failure for an error event, and for what is no event."""
        found: list[StreamEvent] = []
        for data in self._parser.feed(chunk):
            if data == b"[DONE]":
                found.extend(self.end())
                continue
            try:
                found.extend(self.feed_event(_lenient.decode(data.decode())))
            except ValueError:
                raise Failure(BadAnswer, "an event of the stream is not JSON") from None
            except (KeyError, TypeError, AttributeError):
                raise Failure(BadAnswer, "an event of the stream has an unknown shape") from None
        return found

    def feed_event(self, event: Json) -> list[StreamEvent]:
        """The events of one parsed wire event."""
        raise NotImplementedError

    def end(self) -> list[StreamEvent]:
        """The body ended, or said it is done: the events that only this completes."""
        return []

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._texts)
