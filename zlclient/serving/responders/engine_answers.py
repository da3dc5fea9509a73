"""What the engine answers: a question over a passage, or a summary of one, as events."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ...engine.answering import Answer, answer, summary
from ...engine.domains import domain_of
from ...engine.request import Piece
from ...engine.runner import Engine
from ...engine.sampler import Sampling
from ...engine.scheduler import PromptTooLong, QueueFull
from ...engine.tokenizer import Tokenizer
from ..errors import WireError
from ..logprobs import asked_logprobs
from .base import Ask, Chosen, Event, Head, Text, Thinking, Token
from .everyday import NOT_STATED
from .forms import Form
from .offline import asked_count
from .reading import Reading, language_of, questions_of, sentences

THOUGHT = {"zh": "引擎在文中找最能回答问题的句子。", "en": "The engine looks for the sentence that answers."}
SURE = 0.995  # the probability of a sentence from which on an engine that yields answers itself


@dataclass(frozen=True, slots=True)
class Task:
    """What an ask wants of the engine: the passage in sentences, its domain and tag, the question and its form."""

    ask: Ask
    reading: Reading
    told: list[str]
    domain: str
    tag: str
    form: Form

    @classmethod
    def of(cls, ask: Ask, reading: Reading, told: list[str], form: Form) -> Task:
        """The task of `ask`, which was read as `reading`, to be answered in `form`."""
        domain, tag = domain_of("\n".join((ask.system, *(turn.text for turn in ask.turns))))
        return cls(ask, reading, told, domain, tag, form)

    @property
    def summary(self) -> bool:
        """Whether a summary is wanted rather than a fact."""
        return self.reading.wants_summary or not self.reading.question


def answered(engine: Engine, task: Task, *, yields: bool) -> Iterator[Event] | None:
    """The events of an answer, its text as it is generated; None where it is left to the next responder.

    Left are, with `yields`, several questions, what the engine is not sure of, and summaries: the offline responder's
    met 60 of 63 everyday requests, the engine's 54.

    Raises:
        WireError: the engine has no room (429) or never will (413).
    """
    if yields and (task.summary or len(questions_of(task.reading.question)) > 1):
        return None
    result = Answer()
    texts = _texts(engine, task, result)
    if task.summary and task.form.kind != "plain":
        texts = _laid_out(task.form, texts)
    with admission():
        first = next(texts, None)
    if yields and not _sure(result):
        texts.close()
        return None
    return _events(engine, task, result, first, texts)


def _events(engine: Engine, task: Task, result: Answer, first: str | None, texts: Iterator[str]) -> Iterator[Event]:
    cached = str(result.outcome.cached_tokens)
    yield Head({"x-zl-generation": engine.model.config.generation, "x-zl-cached-tokens": cached})
    if task.ask.thinking:
        yield Thinking(THOUGHT[task.reading.language])
    if first is None:
        yield Text(NOT_STATED[task.reading.language])
        return
    said = 0
    for text in itertools.chain((first,), texts):
        fresh, said = result.pieces[said:], len(result.pieces)
        yield Text(text, tuple(_chosen(engine.tokenizer, piece) for piece in fresh if piece.logprob is not None))


def _sure(result: Answer) -> bool:
    """Whether it was decided with SURE."""
    return result.decision is not None and result.decision.snapshot.probability >= SURE


def _laid_out(form: Form, texts: Iterator[str]) -> Generator[str]:
    """A summary as a list or a table, once all its sentences are there."""
    found = "".join(texts)
    yield form.lay_out(sentences(found), "" if language_of(found) == "zh" else " ")


def _texts(engine: Engine, task: Task, result: Answer) -> Generator[str]:
    """The answer as it is generated; closing it ends the work."""
    question, told, sampling = task.reading.question, task.told, _sampling(task.ask)
    options: dict[str, Any] = {"domain": task.domain, "tag": task.tag, "sampling": sampling, "result": result}
    if task.summary:
        yield from summary(engine, told, question, min(asked_count(question), len(told)), **options)
        return
    joint = "" if language_of(task.reading.passage) == "zh" else " "
    for one in questions_of(question):
        lead = joint if result.stated else ""
        for text in answer(engine, told, one, **options):
            yield lead + text
            lead = ""


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
    logprobs = asked_logprobs(ask.body) if ask.wire == "chat" else None
    return Sampling(min(max(ask.temperature or 0.0, 0.0), 2.0), top_p, ask.seed or 0, logprobs=logprobs)
