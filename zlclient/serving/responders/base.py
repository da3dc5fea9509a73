"""The seam of the local server: a request in, events out.

A wire (`serving/anthropic.py`, `openai_chat.py`, `openai_responses.py`) turns what arrived into an `Ask`; the server
hands it to its responders in order; the first that answers gives events, and the wire writes them in its own shapes:

    class Parrot(Responder):
        name = "parrot"

        def respond(self, ask):
            yield Text(ask.question)

A responder that returns None leaves the ask to the next one. It never sees HTTP, and no wire knows a responder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

Wire = Literal["anthropic", "chat", "responses"]
Block: TypeAlias = Mapping[str, Any]
ChoiceMode = Literal["auto", "any", "tool", "none"]
FaultKind = Literal["status", "drop", "stall", "html", "malformed", "empty"]
StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal", "pause_turn"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: its role and its content as Anthropic blocks (`text`, `image`, `tool_use`, `tool_result`, …)."""

    role: Literal["user", "assistant"]
    blocks: tuple[Block, ...]

    @property
    def text(self) -> str:
        """The text blocks, joined by blank lines."""
        return "\n\n".join(str(block["text"]) for block in self.blocks if block.get("type") == "text")


@dataclass(frozen=True, slots=True)
class Tool:
    """A function the model may call. `schema` is the JSON schema of its input."""

    name: str
    schema: Mapping[str, Any]
    description: str = ""


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """auto, any (must call one), tool (must call `name`), none."""

    mode: ChoiceMode = "auto"
    name: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """What a request asks, in one form for all wires.

    `body` is the decoded request as it came and `headers` are its headers in lower case, so that a matcher can look at
    anything; neither may be changed. `seed` is the request's own seed, or None.
    """

    wire: Wire
    model: str
    turns: tuple[Turn, ...]
    system: str = ""
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    output_schema: Mapping[str, Any] | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    thinking: bool = False
    stream: bool = False
    api_version: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def turn(self) -> int:
        """How many assistant turns came before: 0 for a first question. Agent loops are keyed by it."""
        return sum(turn.role == "assistant" for turn in self.turns)

    @property
    def question(self) -> str:
        """The text of the last user turn that has any, "" when there is none."""
        return next((turn.text for turn in reversed(self.turns) if turn.role == "user" and turn.text), "")

    @property
    def tool_results(self) -> tuple[Block, ...]:
        """The `tool_result` blocks of the last turn."""
        if not self.turns:
            return ()
        return tuple(block for block in self.turns[-1].blocks if block.get("type") == "tool_result")


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts a responder knows better than the wire's estimate; None leaves the estimate."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """A model's token: its text (of a control token its name), its bytes in the answer, and its log probability."""

    text: str
    data: bytes
    logprob: float


@dataclass(frozen=True, slots=True)
class Chosen(Token):
    """A token that a model chose, with the likeliest ones in its place, the best first."""

    top: tuple[Token, ...] = ()


@dataclass(frozen=True, slots=True)
class Text:
    """Text to append; one event may hold any amount, it is streamed in token-sized pieces.

    `tokens` are those it was made of, where the request asked for their log probabilities and the responder has them.
    """

    text: str
    tokens: tuple[Chosen, ...] = ()


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning text, before the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool. `id` is made by the wire when empty."""

    name: str
    input: Mapping[str, Any]
    id: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """Headers of the response; before any content, and of no effect after it."""

    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing for `seconds`; before any content it delays the response's head. The driver sleeps, not the responder."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Pace:
    """From here on, wait `seconds` before every streamed piece (a token's worth of text)."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Alive:
    """Nothing yet, but the work goes on: a stream shows it, so that its reader does not take it for dead."""


@dataclass(frozen=True, slots=True)
class Measured:
    """From here on the responder itself keeps to max_tokens and the stop sequences, in its own model's tokens, and says
    in a `Finish` how it ended and what it used."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something goes wrong here: instead of an answer when it comes before any content, in mid-stream otherwise.

    status      an error status with the provider's body; in mid-stream an error event (always "overloaded" for 529)
    drop        the connection breaks
    stall       nothing more arrives, and the connection stays open
    html        200 with an HTML page
    malformed   200 with a body that is not JSON; in mid-stream, an event whose data is not JSON
    empty       200 with an empty body; in mid-stream, a clean end before the answer is complete
    """

    kind: FaultKind = "status"
    status: int = 500
    message: str = ""
    retry_after: str | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """The end, with a reason or counts other than what follows from the content. Optional; nothing comes after it."""

    stop_reason: StopReason | None = None
    usage: Usage = Usage()
    stop_sequence: str | None = None


Event = Text | Thinking | ToolCall | Head | Pause | Pace | Alive | Measured | Fault | Finish


class Responder:
    """Answers asks. Subclasses set `name` (it is the answer's `x-zl-responder` header) and implement `respond`.

    `models` are model ids of its own, which its server then knows on every wire; one that has any answers no others.
    `blocking` says that `respond` or its iteration takes more than a millisecond or so, and is then driven from a
    worker thread. A responder is called from several threads at once.
    """

    name: str = ""
    blocking: bool = False
    models: tuple[str, ...] = ()

    def respond(self, ask: Ask) -> Iterable[Event] | None:
        """The events that answer `ask`, or None when it is another responder's."""
        raise NotImplementedError

    def explain(self, ask: Ask) -> str:  # noqa: ARG002 - the base has nothing to say
        """Why `respond` returned None, for the error of an ask that nobody answered; "" when there is nothing to
        say."""
        return ""


def text_of(content: object) -> str:
    """The text in a message's `content`: a string, or blocks (nested ones of documents and tool results included)."""
    return "\n\n".join(_texts(content))


def _texts(content: object) -> Iterator[str]:
    if isinstance(content, str):
        if content:
            yield content
    elif isinstance(content, Mapping):
        yield from _block_texts(cast("Block", content))
    elif isinstance(content, (list, tuple)):
        for block in cast("Iterable[object]", content):
            yield from _texts(block)


def _block_texts(block: Block) -> Iterator[str]:
    source = block.get("source")
    if isinstance(block.get("text"), str):
        yield from _texts(block["text"])
    elif isinstance(source, Mapping):
        typed = cast("Block", source)
        yield from _texts(typed.get("data") if typed.get("type") == "text" else typed.get("content"))
    else:
        yield from _texts(block.get("content"))
