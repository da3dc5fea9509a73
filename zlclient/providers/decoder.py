"""What the decoders of both wires share: bytes to events, and the state of one answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from ..errors import BadAnswer, status_error
from ..reply import StreamEvent, TextDelta, ThinkingDelta, Usage
from .failure import Failure
from .sse import SseParser
from .surrogates import Joiner, mended, mended_value

Json = Mapping[str, Any]
_lenient = json.JSONDecoder(strict=False)  # models put raw control characters into strings
_UNKNOWN_SHAPE = (LookupError, TypeError, AttributeError, ValueError, RecursionError)


class StreamDecoder:
    """Reads one answer without building the SDK's snapshots; a wire's decoder says what each of its events means."""

    __slots__ = ("_parser", "_text", "_texts", "_thought", "complete", "id", "model", "stop_reason", "usage")

    def __init__(self) -> None:
        self._parser = SseParser()
        self._text, self._thought = Joiner(), Joiner()
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
                event = _lenient.decode(data.decode())
            except (ValueError, RecursionError):
                raise Failure(BadAnswer, "an event of the stream is not JSON") from None
            found.extend(self.feed_event(event))
        return found

    def feed_event(self, event: Json) -> list[StreamEvent]:
        """The events of one parsed wire event. Raises Failure for an error event, and for what is no event."""
        try:
            return self._event(event)
        except _UNKNOWN_SHAPE:
            raise Failure(BadAnswer, "an event of the stream has an unknown shape") from None

    def feed_whole(self, body: Json) -> list[StreamEvent]:
        """The events of an answer that came in one piece, as some gateways send it. Raises Failure."""
        try:
            return self._whole(mended_value(body))
        except _UNKNOWN_SHAPE:
            raise Failure(BadAnswer, "the JSON body has an unknown shape") from None

    def end(self) -> list[StreamEvent]:
        """The body ended, or said it is done: the events that only this completes."""
        return []

    def _event(self, event: Json) -> list[StreamEvent]:
        """A wire's reading of one event."""
        raise NotImplementedError

    def _whole(self, body: Json) -> list[StreamEvent]:
        """A wire's reading of a whole answer."""
        raise NotImplementedError

    def _said(self, piece: str) -> list[StreamEvent]:
        """A piece of the answer's text."""
        return self._told(self._text.add(piece))

    def _reasoned(self, piece: str) -> list[StreamEvent]:
        """A piece of the model's visible reasoning."""
        thought = self._thought.add(piece)
        return [ThinkingDelta(thought)] if thought else []

    def _told(self, text: str) -> list[StreamEvent]:
        """A piece of the answer's text that holds whole characters."""
        if not text:
            return []
        self._texts.append(text)
        return [TextDelta(text)]

    def _rest(self) -> list[StreamEvent]:
        """The text and the reasoning ended: what was held back of them."""
        thought = self._thought.end()
        thoughts: list[StreamEvent] = [ThinkingDelta(thought)] if thought else []
        return thoughts + self._told(self._text.end())

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._texts)


def event_failure(error: Any, statuses: Mapping[str, int]) -> Failure:
    """The failure that an error event means: an error within a stream stands for the status it came too late to set.

    Args:
        error: the event's error object, or a text.
        statuses: the status that each of the provider's own words for an error goes with; any other word is a 500.
    """
    told = cast("Json", error) if isinstance(error, Mapping) else {"message": error}
    code, kind = told.get("code"), told.get("type")
    status = _status(code, statuses) or _status(kind, statuses) or 500
    word = str(kind or code or "error")
    message = mended(f"{word}: {told.get('message') or 'no message'}")[:500]
    return Failure(status_error(status), message, status=status, error_type=word, param=told.get("param"))


def _status(word: Any, statuses: Mapping[str, int]) -> int | None:
    """vLLM and gateways give the HTTP status itself as the code."""
    if isinstance(word, int) or (isinstance(word, str) and word.isdecimal()):
        return int(word) if 400 <= int(word) <= 599 else None
    return statuses.get(word) if isinstance(word, str) else None
