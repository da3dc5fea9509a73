"""The engine as a responder of the local server: models `auto` and `legacy`, from what the request itself holds.

It answers a question over a passage and a summary of one. What it cannot do (no passage, a tool's result, a schema to
fill) it leaves to the next responder.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ...engine.answering import LONGEST_SENTENCE, Answer, answer
from ...engine.config import Generation
from ...engine.domains import domain_of
from ...engine.request import Outcome, Piece
from ...engine.runner import Engine
from ...engine.sampler import Sampling
from ...engine.scheduler import PromptTooLong, QueueFull
from ...engine.tokenizer import Tokenizer
from ..errors import WireError
from ..logprobs import asked_logprobs
from .base import Ask, Chosen, Event, Head, Responder, Text, Thinking, Token
from .offline import NOT_STATED, asked_count
from .reading import Reading, read, sentences

THOUGHT = {"zh": "引擎在文中找最能回答问题的句子。", "en": "The engine looks for the sentence that answers."}
LARGEST = 200_000  # characters of a passage; a longer one is the next responder's, which is quicker
MODELS = {f"{prefix}{name}": name for prefix in ("", "local:") for name in ("auto", "legacy")}


class EngineResponder(Responder):
    """Answers asks for `generation`'s model; the checkpoint is loaded when the first one comes."""

    blocking = True

    def __init__(self, generation: Generation, engine: Engine | None = None) -> None:
        self.generation: Generation = generation
        self.name = f"engine-{generation}"
        self.models = tuple(model for model, name in MODELS.items() if name == generation)
        self._engine = engine

    @property
    def engine(self) -> Engine:
        """The engine that answers; loaded when first asked for, once a process."""
        return self._engine or Engine.shipped(self.generation)

    def respond(self, ask: Ask) -> Iterable[Event] | None:
        """Text as it is generated; None where the ask is another model's or holds no passage."""
        if MODELS.get(ask.model) != self.generation or ask.tool_results or ask.output_schema or ask.tools:
            return None
        reading = read(ask)
        if len(reading.passage) > LARGEST or not sentences(reading.passage):
            return None
        return self._events(ask, reading)

    def _events(self, ask: Ask, reading: Reading) -> Iterator[Event]:
        heard = _Heard(self.engine, asked_logprobs(ask.body) if ask.wire == "chat" else None)
        told = sentences(reading.passage)
        domain, tag = domain_of("\n".join((ask.system, *(turn.text for turn in ask.turns))))
        summary = reading.wants_summary or not reading.question
        count = min(asked_count(reading.question), len(told)) if summary else 1
        texts = answer(
            heard, told, reading.question, domain=domain, tag=tag, sampling=_sampling(ask), result=Answer(),
            count=count, max_tokens=2 * LONGEST_SENTENCE * count,
        )  # fmt: skip
        with admission():
            first = next(texts, None)
        yield Head({"x-zl-generation": self.generation, "x-zl-cached-tokens": str(heard.outcome.cached_tokens)})
        if ask.thinking:
            yield Thinking(THOUGHT[reading.language])
        if first is None:
            yield Text(NOT_STATED[reading.language])
            return
        yield Text(first, heard.tokens())
        for text in texts:
            yield Text(text, heard.tokens())


class _Heard(Engine):
    """An engine whose stream is overheard, for one answer: what was read from the cache, and the tokens it chose."""

    def __init__(self, engine: Engine, logprobs: int | None) -> None:
        self.model, self.cache, self.metrics, self.scheduler = (
            engine.model, engine.cache, engine.metrics, engine.scheduler
        )  # fmt: skip
        self.outcome = Outcome()
        self._logprobs = logprobs
        self._pieces: list[Piece] = []

    def stream(
        self, tokens: Sequence[int], *, sampling: Sampling | None = None, outcome: Outcome | None = None, **options: Any
    ) -> Iterator[Piece]:
        """As the engine's own."""
        self.outcome, self._pieces = outcome or Outcome(), []
        asked = replace(sampling or Sampling(), logprobs=self._logprobs)
        for piece in super().stream(tokens, sampling=asked, outcome=self.outcome, **options):
            if piece.logprob is not None:
                self._pieces.append(piece)
            yield piece

    def tokens(self) -> tuple[Chosen, ...]:
        """The tokens since the last call, where log probabilities were asked for."""
        pieces, self._pieces = self._pieces, []
        return tuple(_chosen(self.tokenizer, piece) for piece in pieces)


def _chosen(tokenizer: Tokenizer, piece: Piece) -> Chosen:
    # Its bytes are what it added to the text; one alone may differ, in a capital or in the first word's space.
    text = piece.text or _token(tokenizer, piece.token, 0.0).text
    top = tuple(_token(tokenizer, token, logprob) for token, logprob in piece.top)
    return Chosen(text, piece.text.encode(), piece.logprob or 0.0, top)


def _token(tokenizer: Tokenizer, token: int, logprob: float) -> Token:
    data = tokenizer.raw([token])
    names = (name for name, index in tokenizer.controls.items() if index == token)
    return Token(data.decode("utf-8", "replace") if data else next(names, ""), data, logprob)


@contextmanager
def admission() -> Generator[None]:
    """The engine's refusals as the errors of the wires.

    Raises:
        WireError: 429 when too many requests wait, 413 when the prompt is too long.
    """
    try:
        yield
    except QueueFull as error:
        raise WireError(429, f"The engine is busy: {error}.", headers={"retry-after": "1"}) from None
    except PromptTooLong as error:
        raise WireError(413, f"prompt is too long: {error}") from None


def _sampling(ask: Ask) -> Sampling:
    """The ask's sampling within what the engine takes; without a seed the same ask gives the same answer."""
    top_p = ask.top_p if ask.top_p and 0 < ask.top_p <= 1 else 1.0
    return Sampling(min(max(ask.temperature or 0.0, 0.0), 2.0), top_p, ask.seed or 0)
