"""The engine as a responder of the local server: models `auto` and `legacy`, from what the request itself holds.

It answers a question over a passage and a summary of one. What it cannot do (no passage, a tool's result, a schema to
fill) it leaves to the next responder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...engine.answering import Answer, answer
from ...engine.config import Generation
from ...engine.domains import domain_of
from ...engine.runner import Engine
from ...engine.sampler import Sampling
from .base import Ask, Event, Responder, Text, Thinking
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
        self._engine = engine

    def respond(self, ask: Ask) -> Iterable[Event] | None:
        """Text as it is generated; None where the ask is another model's or holds no passage."""
        if MODELS.get(ask.model) != self.generation or ask.tool_results or ask.output_schema or ask.tools:
            return None
        reading = read(ask)
        if len(reading.passage) > LARGEST or not sentences(reading.passage):
            return None
        return self._events(ask, reading)

    def _events(self, ask: Ask, reading: Reading) -> Iterator[Event]:
        if ask.thinking:
            yield Thinking(THOUGHT[reading.language])
        engine = self._engine or Engine.shipped(self.generation)
        told = sentences(reading.passage)
        domain, tag = domain_of("\n".join((ask.system, *(turn.text for turn in ask.turns))))
        summary = reading.wants_summary or not reading.question
        found = Answer()
        said = False
        for text in answer(
            engine, told, reading.question, domain=domain, tag=tag, sampling=_sampling(ask), result=found,
            count=min(asked_count(reading.question), len(told)) if summary else 1,
        ):  # fmt: skip
            said = True
            yield Text(text)
        if not said:
            yield Text(NOT_STATED[reading.language])


def _sampling(ask: Ask) -> Sampling:
    """The ask's sampling within what the engine takes; without a seed the same ask gives the same answer."""
    top_p = ask.top_p if ask.top_p and 0 < ask.top_p <= 1 else 1.0
    return Sampling(min(max(ask.temperature or 0.0, 0.0), 2.0), top_p, ask.seed or 0)
