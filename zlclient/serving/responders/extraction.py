"""The engine reading fields out of a passage: structured output, tool calls, and lists or tables of named fields.

The schema makes everything but the values, so the answer is always valid; each value is a part of a sentence that the
model chose, turned into the schema's type. Where a request holds no passage, the structured responder draws the values
from the question.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from ...engine.answering import Answer, excerpt
from ...engine.domains import domain_of
from ...engine.runner import Engine
from .base import Ask, Event, Head, Text
from .engine_answers import admission
from .forms import Form, form_of
from .offline import terms_of
from .reading import Reading, language_of, sentences
from .structured import prescribed


def extracted(engine: Engine, ask: Ask, reading: Reading) -> tuple[Event, ...] | None:
    """One ToolCall, or one Text: JSON or the fields asked for; None where the ask wants none.

    Raises:
        WireError: nothing satisfies the schema (400), or the engine has no room (429) or never will (413).
    """
    prescribing = bool(ask.output_schema or ask.tools)
    form = Form() if prescribing else form_of(reading.question)
    if not prescribing and not form.fields:
        return None
    told = sentences(reading.passage)
    domain, tag = domain_of("\n".join((ask.system, *(turn.text for turn in ask.turns))))
    head = Head({"x-zl-generation": engine.model.config.generation})

    @cache
    def field(kind: Literal["string", "number"], wanted: str) -> str | None:
        question = wanted if language_of(wanted) == "zh" else f"What is the {wanted}?"
        found = Answer()
        value = excerpt(engine, told, question, domain=domain, tag=tag, number=kind == "number", result=found)
        if value is None or not found.sentences:
            return None
        # A bare name says little: the sentence has to share a word with it, or one that means the same.
        return value if set(terms_of(wanted)) & set(terms_of(told[found.sentences[0]])) else None

    with admission():
        if form.fields:
            values = [field("string", name) for name in form.fields]
            return (head, Text(form.lay_out_fields(values, reading.language)))
        found = prescribed(ask, field)
    return None if found is None else (head, *found)
