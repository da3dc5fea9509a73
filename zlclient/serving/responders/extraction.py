"""The engine reading fields out of a passage: structured output, tool calls, and lists or tables of named fields.

The schema makes everything but the values, so the answer is always valid; each value is what the text plainly states of
it, or a part of a sentence that the model chose, turned into the schema's type. Where a request holds no passage, the
structured responder draws the values from the question.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Literal

from ...engine.answering import Answer, excerpt
from ...engine.runner import Engine
from ..field_values import number_in
from .base import Event, Head, Text
from .engine_answers import Task, admission
from .everyday import fields_read
from .reading import language_of
from .stated import stated_value
from .structured import prescribed
from .terms import terms_of


def extracted(engine: Engine, task: Task) -> tuple[Event, ...] | None:
    """One ToolCall, or one Text: JSON or the fields asked for; None where the ask wants none.

    Raises:
        WireError: nothing satisfies the schema (400), or the engine has no room (429) or never will (413).
    """
    ask, form, told = task.ask, task.form, task.told
    if not (ask.output_schema or ask.tools or form.fields):
        return None
    head = Head({"x-zl-generation": engine.model.config.generation})

    @cache
    def modelled(kind: Literal["string", "number"], wanted: str) -> str | None:
        question = wanted if language_of(wanted) == "zh" else f"What is the {wanted}?"
        found = Answer()
        value = excerpt(engine, told, question, domain=task.domain, tag=task.tag, number=kind == "number", result=found)
        if value is None or not found.sentences:
            return None
        # A bare name says little: the sentence has to share a word with it, or one that means the same.
        return value if set(terms_of(wanted)) & set(terms_of(told[found.sentences[0]])) else None

    def field(kind: Literal["string", "number"], name: str, about: str) -> str | None:
        plain = stated_value(name, task.reading.passage)
        if plain is None or (kind == "number" and number_in(plain) is None):
            return modelled(kind, f"{name} {about}".strip())
        return plain

    with admission():
        if form.fields:
            return (head, Text(fields_read(form, task.reading, partial(modelled, "string"))))
        found = prescribed(ask, field)
    return None if found is None else (head, *found)
