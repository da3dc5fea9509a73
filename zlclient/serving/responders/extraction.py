"""The engine reading fields out of a passage: structured output, tool calls, and lists or tables of named fields.

The schema makes everything but the values, so the answer is always valid; each value is a part of a sentence that the
model chose, turned into the schema's type. Where a request holds no passage, the structured responder draws the values
from the question.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Literal

from ...engine.answering import excerpt
from ...engine.config import Generation
from ...engine.domains import domain_of
from ...engine.runner import Engine
from .base import Ask, Event, Responder, Text
from .engine import LARGEST, MODELS
from .forms import Form, form_of
from .reading import read, sentences
from .structured import prescribed


class ExtractionResponder(Responder):
    """Fills in fields from the passage of an ask for `generation`'s model; the rest is the next responder's."""

    blocking = True

    def __init__(self, generation: Generation, engine: Engine | None = None) -> None:
        self.generation: Generation = generation
        self.name = f"engine-{generation}"
        self._engine = engine

    def respond(self, ask: Ask) -> Iterable[Event] | None:
        """One ToolCall, or one Text: JSON or the fields asked for; None where no fields are, or there is no passage."""
        if MODELS.get(ask.model) != self.generation:
            return None
        reading = read(ask)
        form = Form() if ask.output_schema or ask.tools or ask.tool_results else form_of(reading.question)
        told = sentences(reading.passage)
        if not (ask.output_schema or ask.tools or form.fields) or not told or len(reading.passage) > LARGEST:
            return None
        engine = self._engine or Engine.shipped(self.generation)
        domain, tag = domain_of("\n".join((ask.system, *(turn.text for turn in ask.turns))))

        @cache
        def field(kind: Literal["string", "number"], wanted: str) -> str | None:
            return excerpt(engine, told, wanted, domain=domain, tag=tag, number=kind == "number")

        if not form.fields:
            return prescribed(ask, field)
        values = [field("string", name) for name in form.fields]
        return (Text(form.lay_out_fields(values, reading.language)),)
