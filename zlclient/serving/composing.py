"""Between a responder and a wire: its events with max_tokens and stop sequences applied, ending in one `Done`.

The wires see only what they can write: Text in pieces, Thinking, ToolCall with an id, Pause, Alive, Fault, Done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ..engine.stops import StopCutter
from .responders.base import (
    Alive,
    Ask,
    Chosen,
    Event,
    Fault,
    Finish,
    Head,
    Measured,
    Pace,
    Pause,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    Usage,
)
from .tokens import count, count_json, pieces

UNLIMITED = 1 << 60


@dataclass(frozen=True, slots=True)
class Done:
    """The end of an answer: why, at which stop sequence, and what it used."""

    reason: StopReason
    stop_sequence: str | None
    output_tokens: int
    thinking_tokens: int
    usage: Usage


Composed = Text | Thinking | ToolCall | Pause | Alive | Fault | Done


def compose(events: Iterable[Event], ask: Ask, new_id: Callable[[], str]) -> Iterator[Composed]:
    """`events` as a wire writes them; the last one is a Done or a Fault. `new_id` makes ids of tool calls."""
    return _Composer(ask, new_id).run(events)


class _Composer:
    """One answer on its way: what was used so far, and why it will end."""

    def __init__(self, ask: Ask, new_id: Callable[[], str]) -> None:
        self._limit = ask.max_tokens if ask.max_tokens is not None else UNLIMITED
        self._new_id = new_id
        self._cutter = StopCutter(ask.stop)
        self._used = self._thought = 0
        self._reason: StopReason = "end_turn"
        self._full = False
        self._usage = Usage()
        self._stopped: str | None = None
        self._pace = 0.0
        self._tokens: tuple[Chosen, ...] = ()  # not given out yet

    def run(self, events: Iterable[Event]) -> Iterator[Composed]:
        for event in events:
            match event:
                case Text(text):
                    self._tokens += event.tokens
                    yield from self._text(self._cutter.feed(text))
                case Thinking(text):
                    yield from self._thinking(text)
                case ToolCall():
                    yield self._tool_call(event)
                case Pause() | Alive():
                    yield event
                case Pace(seconds):
                    self._pace = seconds
                case Measured():
                    self._limit, self._cutter = UNLIMITED, StopCutter(())
                case Head():
                    pass  # the head has gone
                case Fault():
                    yield event
                    return
                case Finish():
                    self._reason, self._usage = event.stop_reason or self._reason, event.usage
                    self._stopped = event.stop_sequence
                    break
            if self._full or self._cutter.found is not None:
                break
        if not self._full:
            yield from self._text(self._cutter.rest())
        yield self._done()

    def _text(self, text: str) -> Iterator[Composed]:
        for piece in _paced(text, self._pace):
            if piece is None:
                yield Pause(self._pace)
                continue
            cut = pieces(piece)
            left = self._limit - self._used
            if len(cut) <= left:
                self._used += len(cut)
                yield Text(piece, self._told())
                continue
            self._used, self._full = self._limit, True
            if left > 0:
                yield Text("".join(cut[:left]), self._told())
            return

    def _told(self) -> tuple[Chosen, ...]:
        tokens, self._tokens = self._tokens, ()
        return tokens

    def _thinking(self, text: str) -> Iterator[Composed]:
        for piece in _paced(text, self._pace):
            yield Pause(self._pace) if piece is None else Thinking(piece)
        tokens = count(text)
        self._used, self._thought = self._used + tokens, self._thought + tokens

    def _tool_call(self, call: ToolCall) -> ToolCall:
        self._used += count(call.name) + count_json(call.input)
        self._reason = "tool_use"
        return call if call.id else replace(call, id=self._new_id())

    def _done(self) -> Done:
        found = None if self._full else self._cutter.found or self._stopped
        reason = "max_tokens" if self._full else "stop_sequence" if found is not None else self._reason
        return Done(reason, found, self._used, self._thought, self._usage)


def _paced(text: str, pace: float) -> Iterator[str | None]:
    """`text` whole, or with a None (a pause) before each piece."""
    if not pace:
        if text:
            yield text
        return
    for piece in pieces(text):
        yield None
        yield piece
