"""Requests that need no model: small talk, what cannot be done, a text in another form, all values of a kind, fields.

settled(reading) is the answer where one of these is asked for; the engine leaves those to the offline responder. Fields
are common to both: each reads what the text plainly states, and the engine asks its model for the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ..value_kinds import found, kind_listed
from .forms import Form
from .reading import Reading
from .records import records
from .rewriting import rewritten
from .stated import stated_value
from .talk import refusal, small_talk, without_text

NOT_STATED = {"zh": "文中没有提到这一点。", "en": "The text does not state this."}
_REWRITE = re.compile(
    r"改[成为写]|转[成为换化]|整理|变[成为]|[做写排]成|列成|列[出一]|分条|逐条|输出|呈现|表示"
    r"|\b(?:convert|turn|rewrite|re-?format|put|make|format|transform|change|organi[sz]e|arrange|break|split|number|list"
    r"|output|present|show|give|return|as an?)\b",
    re.IGNORECASE,
)
_WONDERS = re.compile(
    r"\b(?:what|which|who|whom|when|where|why|how)\b|谁|什么|哪|多少|为什么|为何|怎么|怎样", re.IGNORECASE
)
_ALL = re.compile(
    r"\b(?:all|every|each|list|mention\w*|appear\w*|contain\w*|occur\w*|extract|find)\b|所有|全部|列[出一举]|出现|提[到及]|涉及|提取|找出|有哪些",
    re.IGNORECASE,
)
_EACH = re.compile(r"\b(?:each|every|all|per)\b|每|各|所有|分别|全部", re.IGNORECASE)


def settled(reading: Reading, form: Form) -> str | None:
    """The answer to a request that needs no model; None where it wants a question answered, a summary or fields."""
    asked, passage, language = reading.question, reading.passage, reading.language
    if not passage:
        return small_talk(asked, language) or refusal(asked, language) or without_text(language)
    if form.fields or reading.wants_summary or not asked:
        return None
    if refused := refusal(asked, language):
        return refused
    kind = kind_listed(asked) if _ALL.search(asked) else None
    if kind:
        values = list(dict.fromkeys(span.text for span in found(kind, passage)))
        listed = form if form.kind != "plain" else Form("bullets")
        return listed.lay_out(values, "") if values else NOT_STATED[language]
    if form.kind != "plain" and _REWRITE.search(asked) and not _WONDERS.search(asked):
        return rewritten(form, passage)
    return None


def fields_read(form: Form, reading: Reading, otherwise: Callable[[str], str | None]) -> str:
    """The form's fields in its layout, a row for each thing where the text tells of several.

    `otherwise` reads a field that the text does not plainly state; None: it does not state it at all.
    """
    several = form.kind == "table" or _EACH.search(reading.question)
    if several and (rows := records(form.fields, reading.passage)):
        return form.lay_out_records(rows, reading.language)
    values = [stated_value(name, reading.passage) or otherwise(name) for name in form.fields]
    return form.lay_out_fields(values, reading.language)
