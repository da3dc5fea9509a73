"""SmolLM2-135M-Instruct as a responder: any conversation in text, answered by a real small model.

What needs a schema filled or a tool called it leaves to the responder that makes such values. Its counts are the
model's own tokens. Where the weights are not there the answer is an error that says how to fetch them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ...engine.smollm2.store import NotFetched, is_fetched
from ...errors import ConfigError, InputError
from ..errors import WireError
from .base import Alive, Ask, Event, Finish, Measured, Responder, StopReason, Text, Turn, Usage, text_of
from .structured import chosen_tool

if TYPE_CHECKING:
    from ...engine.sampler import Sampling
    from ...engine.smollm2.assistant import Assistant
    from ...engine.smollm2.chat import Role

MODELS = ("smollm2", "local:smollm2")
DEFAULT_MAX_TOKENS = 1024
# What a turn's text may come from; "thinking" is the wire's own, and a tool's call has no words.
_READ = frozenset(("text", "document", "tool_result"))
_PASSED_OVER = frozenset(("thinking", "redacted_thinking", "tool_use"))
_REASONS: dict[str, StopReason] = {"end": "end_turn", "stop": "stop_sequence", "length": "max_tokens"}


class SmolLM2Responder(Responder):
    """Answers asks for the model `smollm2`; the weights are loaded when the first one comes, once a process."""

    name = "engine-smollm2"
    models = MODELS

    def __init__(self, assistant: Assistant | None = None) -> None:
        self._assistant = assistant

    @property
    def blocking(self) -> bool:  # type: ignore[override]
        """Only where there is a model to run: without one, the answer is an error, and quick."""
        return self._assistant is not None or is_fetched()

    @property
    def assistant(self) -> Assistant | None:
        """The model, where it has been loaded."""
        return self._assistant

    def respond(self, ask: Ask) -> Iterable[Event] | None:
        """Text as it is generated; None where the ask is another model's, or wants a tool's call or a schema's values.

        Raises:
            WireError: 404 where the weights are not there, 500 where they cannot be loaded, 400 for a conversation that
                is too long or is not text; when first iterated, 429 where too many requests wait already.
        """
        if ask.model not in MODELS or ask.output_schema is not None or chosen_tool(ask) is not None:
            return None
        said: list[tuple[Role, str]] = [(turn.role, _text(turn, at)) for at, turn in enumerate(ask.turns)]
        assistant = self._assistant = self._assistant or _fetched()
        try:
            prompt = assistant.prompt([(role, text) for role, text in said if text], ask.system)
        except InputError as error:
            raise WireError(400, f"messages: {error}") from None
        return _events(assistant, prompt, ask)


def _events(assistant: Assistant, prompt: list[int], ask: Ask) -> Iterator[Event]:
    from ...engine.scheduler import QueueFull
    from ...engine.smollm2.assistant import Outcome

    outcome = Outcome()
    texts = assistant.go_on(
        prompt, sampling=_sampling(ask), max_tokens=ask.max_tokens or DEFAULT_MAX_TOKENS, stop=ask.stop, outcome=outcome
    )
    try:
        next(texts)  # empty, once the request waits for its turn
    except QueueFull as error:
        raise WireError(429, f"The engine is busy: {error}.", headers={"retry-after": "1"}) from None
    yield Measured()
    for text in texts:
        yield Text(text) if text else Alive()
    read, cached = outcome.prompt_tokens, outcome.cached_tokens
    if ask.wire == "anthropic":
        read -= cached  # that wire counts what was cached apart
    usage = Usage(read, len(outcome.tokens), cached, cache_write_tokens=0)
    yield Finish(_REASONS.get(outcome.finish), usage, outcome.stop)


def _fetched() -> Assistant:
    try:
        from ...engine.smollm2.assistant import Assistant

        return Assistant.fetched()
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise _refusal(500, "smollm2 needs numpy: pip install 'zlclient[engine]'") from None
    except NotFetched as error:
        raise _refusal(404, str(error)) from None
    except ConfigError as error:
        raise _refusal(500, f"smollm2 cannot be loaded: {error}") from None


def _refusal(status: int, problem: str) -> WireError:
    """An error that sending the request again does not help."""
    return WireError(status, problem, headers={"x-should-retry": "false", "x-zl-responder": SmolLM2Responder.name})


def _text(turn: Turn, at: int) -> str:
    for block in turn.blocks:
        kind = block.get("type")
        if kind not in _READ | _PASSED_OVER:
            raise WireError(400, f"messages.{at}.content: smollm2 reads text only, not {kind!r}")
    return "\n\n".join(text_of(block) for block in turn.blocks if block.get("type") in _READ)


def _sampling(ask: Ask) -> Sampling:
    """The ask's sampling within what the engine takes; without a seed the same ask gives the same answer."""
    from ...engine.sampler import Sampling

    top_p = ask.top_p if ask.top_p and 0 < ask.top_p <= 1 else 1.0
    return Sampling(min(max(ask.temperature or 0.0, 0.0), 2.0), top_p, ask.seed or 0)
