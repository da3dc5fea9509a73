"""What a scenario answers: content, delays and faults, as events."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from ..faults import with_fault
from ..tokens import pieces
from .base import Ask, Event, Fault, Finish, Pace, Pause, StopReason, Text, Thinking, ToolCall, Usage


@dataclass(frozen=True, slots=True)
class ScriptedFault:
    """A fault, where in the answer it comes, and which requests get it.

    after  None: instead of the answer; "half": after half of the text; N: after N tokens of it
    times  the same request gets it that many times, then the answer; None: always
    rate   the share of requests that get it, decided by a hash of `seed` and the whole request
    """

    fault: Fault
    after: int | Literal["half"] | None = None
    times: int | None = None
    rate: float = 1.0
    seed: int = 0

    def hits(self, key: str, before: int) -> bool:
        """Whether the request with fingerprint `key` gets the fault, having got it `before` times."""
        if self.times is not None and before >= self.times:
            return False
        if self.rate >= 1:
            return True
        digest = hashlib.sha256(f"{self.seed}:{key}".encode()).digest()
        return int.from_bytes(digest[:8]) / 2**64 < self.rate


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """One answer. `ttft` and `pace` are seconds: before the head, and before each streamed token.

    `make`, given in Python only, makes the reply from the request.
    """

    text: str = ""
    thinking: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    stop_reason: StopReason | None = None
    usage: Usage = Usage()  # noqa: RUF009 - frozen
    ttft: float = 0.0
    pace: float = 0.0
    fault: ScriptedFault | None = None
    make: Callable[[Ask], ScriptedReply] | None = None

    def for_ask(self, ask: Ask) -> ScriptedReply:
        """The reply to `ask`."""
        return self.make(ask) if self.make is not None else self

    def events(self, *, faulty: bool) -> Iterator[Event]:
        """The reply as events, with its fault or without."""
        if self.ttft:
            yield Pause(self.ttft)
        if self.pace:
            yield Pace(self.pace)
        if faulty and self.fault is not None:
            yield from _broken(list(self._content()), self.fault)
            return
        yield from self._content()
        if self.stop_reason is not None or self.usage != Usage():
            yield Finish(self.stop_reason, self.usage)

    def _content(self) -> Iterator[Event]:
        if self.thinking:
            yield Thinking(self.thinking)
        if self.text:
            yield Text(self.text)
        yield from self.tool_calls


def _broken(content: list[Event], scripted: ScriptedFault) -> Iterable[Event]:
    if scripted.after is None:
        return (scripted.fault,)
    if scripted.after == "half":
        return with_fault(content, scripted.fault)
    return _cut(content, scripted.after, scripted.fault)


def _cut(content: list[Event], tokens: int, fault: Fault) -> Iterator[Event]:
    """`content` up to its text's first `tokens` tokens, then the fault."""
    for event in content:
        if isinstance(event, Text):
            yield Text("".join(pieces(event.text)[:tokens]))
            break
        yield event
    yield fault


def fingerprint(ask: Ask) -> str:
    """A hash of the whole request and its turn. Equal for a retry, different for anything else."""
    written = json.dumps([ask.wire, ask.turn, ask.body], sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()
