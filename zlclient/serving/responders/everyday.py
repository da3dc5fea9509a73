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
    r"\b(?:all|every|each|list|mention\w*|appear\w*|named)\b|所有|全部|列[出一举]|出现|提[到及]|涉及|提取|找出|有哪些",
    re.IGNORECASE,
)
# `How many cars pass each day?` wants one value.
_ONE = re.compile(
    r"^\s*(?:how|when|where|why|what|who)\b(?!.*\b(?:mention|named|list|appear|all\b))|多少|什么时候|何时",
    re.IGNORECASE | re.DOTALL,
)
_SHORT = 80  # characters of a request that can hardly be about more than the form
_LONGEST_REQUEST = 300  # characters; what is longer holds a text of its own
# Verbs that ask for the same text in another form, even where its points are spoken of, unless it is to be condensed.
_RECAST = re.compile(
    r"^(?!.*(?:总结|概括|提炼|归纳|summar)).*(?:拆|改成|转成|转换|\bturn\b|\bconvert\b|\brewrite\b|\bsplit\b)",
    re.IGNORECASE | re.DOTALL,
)
_EACH = re.compile(
    r"\b(?:each|every|all)\b(?! line)|\bper (?!line|sentence|step)|每(?![项句行条步点])|各|所有|分别|全部",
    re.IGNORECASE,
)


def settled(reading: Reading, form: Form) -> str | None:
    """The answer to a request that needs no model; None where it wants a question answered, a summary or fields."""
    asked, passage, language = reading.request, reading.passage, reading.language
    if not passage:
        short = len(asked) <= _LONGEST_REQUEST and not form.fields
        said = (small_talk(asked, language) or refusal(asked, language)) if short else None
        return said or without_text(language)
    rewrites = form.kind != "plain" and not _WONDERS.search(asked)
    if form.fields or not asked or (reading.wants_summary and not (rewrites and _RECAST.search(asked))):
        return None
    lists = _ALL.search(asked) and not _ONE.search(asked)
    kind = kind_listed(asked) if lists else None
    if kind:
        values = list(dict.fromkeys(span.text for span in found(kind, passage)))
        listed = form if form.kind != "plain" else Form("bullets")
        return listed.lay_out(values, "") if values else NOT_STATED[language]
    if rewrites and (len(asked) <= _SHORT or _REWRITE.search(asked)):
        return rewritten(form, passage, asked)
    return refusal(asked, language, question=bool(_WONDERS.search(asked)) or asked.rstrip()[-1:] in "?？吗")


def fields_read(form: Form, reading: Reading, otherwise: Callable[[str], str | None]) -> str:
    """The form's fields in its layout, a row for each thing where the text tells of several.

    `otherwise` reads a field that the text does not plainly state; None: it does not state it at all.
    """
    several = form.kind == "table" or _EACH.search(reading.request)
    if several and (rows := records(form.fields, reading.passage)):
        return form.lay_out_records(rows, reading.language)
    values: list[str | None] = []
    for name in form.fields:
        value = stated_value(name, reading.passage, form.fields)
        values.append(otherwise(name) if value is None or value in values else value)
    if form.kind == "table" and sum(value is None for value in values) > len(values) / 2:
        return rewritten(Form("table"), reading.passage)  # columns that could not be told apart: nothing is left out
    return form.lay_out_fields(values, reading.language)
