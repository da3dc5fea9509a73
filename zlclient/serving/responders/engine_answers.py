"""What the engine answers: a question over a passage, or a summary of one, as events."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ...engine.answering import LONGEST_SENTENCE, Answer, answer
from ...engine.domains import domain_of
from ...engine.request import Outcome, Piece
from ...engine.runner import Engine
from ...engine.sampler import Sampling
from ...engine.scheduler import PromptTooLong, QueueFull
from ...engine.tokenizer import Tokenizer
from ..errors import WireError
from ..logprobs import asked_logprobs
from .base import Ask, Chosen, Event, Head, Text, Thinking, Token
from .forms import Form, form_of
from .offline import NOT_STATED, asked_count
from .reading import Reading, language_of, sentences

THOUGHT = {"zh": "引擎在文中找最能回答问题的句子。", "en": "The engine looks for the sentence that answers."}
SURE = 0.9  # the probability of a sentence from which on an engine that yields answers itself


def answered(engine: Engine, ask: Ask, reading: Reading, *, yields: bool) -> Iterator[Event] | None:
    """The events of an answer, its text as it is generated; None where the engine is not sure, and `yields`.

    Raises:
        WireError: the engine has no room (429) or never will (413).
    """
    heard = _Heard(engine, asked_logprobs(ask.body) if ask.wire == "chat" else None)
    summary = reading.wants_summary or not reading.question
    form = form_of(reading.question)
    texts = _texts(heard, ask, reading, summary=summary)
    if summary and form.kind != "plain":
        texts = _laid_out(form, texts)
    with admission():
        first = next(texts, None)
    if yields and not summary and not heard.sure:
        texts.close()
        return None
    return _events(ask, reading, heard, first, texts)


def _events(ask: Ask, reading: Reading, heard: _Heard, first: str | None, texts: Iterator[str]) -> Iterator[Event]:
    yield Head(
        {"x-zl-generation": heard.model.config.generation, "x-zl-cached-tokens": str(heard.outcome.cached_tokens)}
    )
    if ask.thinking:
        yield Thinking(THOUGHT[reading.language])
    if first is None:
        yield Text(NOT_STATED[reading.language])
        return
    yield Text(first, heard.tokens())
    for text in texts:
        yield Text(text, heard.tokens())


def _laid_out(form: Form, texts: Iterator[str]) -> Generator[str]:
    """A summary as a list or a table, once all its sentences are there."""
    found = "".join(texts)
    yield form.lay_out(sentences(found), "" if language_of(found) == "zh" else " ")


def _texts(heard: _Heard, ask: Ask, reading: Reading, *, summary: bool) -> Generator[str]:
    """The answer as it is generated; closing it ends the work."""
    told = sentences(reading.passage)
    domain, tag = domain_of("\n".join((ask.system, *(turn.text for turn in ask.turns))))
    count = min(asked_count(reading.question), len(told)) if summary else 1
    yield from answer(
        heard, told, reading.question, domain=domain, tag=tag, sampling=_sampling(ask), result=Answer(),
        count=count, max_tokens=2 * LONGEST_SENTENCE * count,
    )  # fmt: skip


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

    @property
    def sure(self) -> bool:
        """Whether the sentence that it chose first was chosen with SURE."""
        return bool(self.outcome.snapshots) and self.outcome.snapshots[0].probability >= SURE

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
