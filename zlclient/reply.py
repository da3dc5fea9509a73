"""What comes back: a Reply with its usage, cost, times, and a note of every change and every attempt.

reply = zlclient.chat("Summarise …")
print(reply)                      # the text
reply.usage.input, reply.cost     # tokens, US dollars
for note in reply.adjustments: print(note)
zlclient.chat([*reply.messages, {"role": "user", "content": "Shorter, please."}])
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

if TYPE_CHECKING:
    from .answering.citations import Citation
    from .answering.coverage import Coverage
    from .errors import SendError

Json = Mapping[str, Any]
Stage = Literal["sanitise", "anchor", "segment", "route", "tune", "send", "check"]


@dataclass(frozen=True, slots=True)
class Adjustment:
    """One change that a stage made, or one thing it left out. Values are short; they never quote prompt text."""

    stage: Stage
    rule: str
    before: Any
    after: Any
    reason: str

    def __str__(self) -> str:
        change = "" if self.before == self.after else f": {_short(self.before)} → {_short(self.after)}"
        return f"{self.stage}/{self.rule}{change} ({self.reason})"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply. `input` excludes what the provider's prompt cache served or stored."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    @property
    def total_input(self) -> int:
        """All prompt tokens: fresh, read from the cache and written to it."""
        return self.input + self.cache_read + self.cache_write

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Usage)))


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds. `ttft`: request sent to first content; `tpot`: per output token after the first; `total`: the call."""

    ttft: float | None
    tpot: float | None
    total: float


@dataclass(frozen=True, slots=True)
class Attempt:
    """One HTTP exchange. `error` is the error class's name; times are seconds since the call began."""

    provider: str
    model: str
    route: str
    status: int | None
    request_id: str | None
    error: str | None
    started: float
    ended: float
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """The provider took the request."""

    id: str | None
    model: str | None
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """A piece of the model's visible reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class BlockDelta:
    """A piece of any other block: a tool call's arguments, a citation, a signature. `raw` is the wire's own delta."""

    index: int
    raw: Json


@dataclass(frozen=True, slots=True)
class Finish:
    """The answer is complete."""

    stop_reason: str | None
    usage: Usage


StreamEvent = Start | TextDelta | ThinkingDelta | BlockDelta | Finish
Content = TextDelta | ThinkingDelta | BlockDelta


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool the model asks for. `input` is the parsed arguments object."""

    id: str
    name: str
    input: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A checked answer.

    `text` is all text blocks joined; `content` the answer's blocks in the neutral (Anthropic) form; `route` says
    which provider, alias or engine produced it; `attempts` lists every HTTP exchange, `adjustments` every change.
    Over a document, `citations` says for each statement what supports it, and `coverage` which segments were read.
    """

    id: str
    text: str
    model: str
    provider: str
    route: str
    content: tuple[Json, ...]
    stop_reason: str | None
    usage: Usage
    timings: Timings
    adjustments: tuple[Adjustment, ...]
    attempts: tuple[Attempt, ...]
    sent: tuple[Json, ...]
    request_id: str | None = None
    responder: str | None = None
    checks: Mapping[str, Any] = field(default_factory=dict[str, Any])
    parsed: Any = None
    arm: str | None = None
    experiment: str | None = None
    citations: tuple[Citation, ...] = ()
    coverage: Coverage | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def cost(self) -> float | None:
        """US dollars at list price, cache reads and writes included; None where the price is not known."""
        from .models.prices import cost

        return cost(self.provider, self.model, self.usage)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far, as sent, with this answer as its last turn: append a user turn and go on."""
        content: Any = self.text if self._is_plain else [dict(block) for block in self.content]
        return [*(dict(message) for message in self.sent), {"role": "assistant", "content": content}]

    @property
    def _is_plain(self) -> bool:
        return all(block.get("type") == "text" and block.keys() <= {"type", "text"} for block in self.content)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tools the model asks for, in order."""
        return tuple(
            ToolCall(block["id"], block["name"], block["input"])
            for block in self.content
            if block.get("type") == "tool_use"
        )

    def as_dict(self) -> dict[str, Any]:
        """All fields and the cost as plain JSON values."""
        plain = {f.name: as_plain(getattr(self, f.name)) for f in fields(self)}
        return {**plain, "cost": self.cost}

    def to_json(self, **options: Any) -> str:
        """`as_dict()` as JSON text; `options` go to json.dumps."""
        options.setdefault("ensure_ascii", False)
        return json.dumps(self.as_dict(), **options)


def joined(first: Reply, second: Reply, error: SendError) -> Reply:
    """One reply from the two halves of a rate-limited request; `error` holds the attempts before them."""
    note = Adjustment("send", "split", 1, 2, "rate limited: asked in two halves")
    return replace(
        first,
        text=f"{first.text}\n\n{second.text}",
        content=(*first.content, *second.content),
        usage=first.usage + second.usage,
        timings=Timings(first.timings.ttft, first.timings.tpot, first.timings.total + second.timings.total),
        adjustments=(*first.adjustments, note),
        attempts=(*error.attempts, *first.attempts, *second.attempts),
        sent=(*first.sent, *second.sent[-1:]),
    )


def after_half(error: SendError, first: Reply, before: SendError) -> SendError:
    """`error`, which the second half of a split request ended in, with what was there already."""
    error.attempts = (*before.attempts, *first.attempts, *error.attempts)
    error.partial_text = f"{first.text}\n\n{error.partial_text}".rstrip()
    error.usage = first.usage if error.usage is None else first.usage + error.usage
    return error


def as_plain(value: Any) -> Any:
    """`value` as JSON values: dataclasses and pydantic models become dicts, tuples lists, the rest strings."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): as_plain(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_plain(item) for item in cast("list[Any]", value)]
    if hasattr(value, "as_dict"):
        return as_plain(value.as_dict())
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: as_plain(getattr(value, f.name)) for f in fields(value)}
    return str(value)


def _short(value: Any, limit: int = 60) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
