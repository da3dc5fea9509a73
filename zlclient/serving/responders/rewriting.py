"""A text in another form, with nothing left out: a list, a numbered list, a table, JSON.

rewritten(Form("bullets"), "We need milk, eggs and bread.")
"""

from __future__ import annotations

import json
import re

from ..value_kinds import found
from .forms import Form, table
from .reading import language_of, sentences

_PAIR = re.compile(r"^[\s\-*•]*(?P<name>[^:：\n]{1,40}?)\s*[:：=]\s*(?P<value>\S.*)$")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)、])\s*")
_ENUMERATION = re.compile(
    r"\s*[、，,；;]\s*(?:and\s+|以及|和)?|\s+and\s+|(?<=[\u4e00-\u9fff])(?:以及|和)(?=[\u4e00-\u9fff])"
)
_LINK = re.compile(r"\s*(?:[:：=]|\b(?:is|are|was|were|costs?|at|for|has|have)\b|为|是|售价|价格)\s*$", re.IGNORECASE)
_LOWER = re.compile(r"lower ?case|小写", re.IGNORECASE)
_VALUES = ("money", "percent", "time", "date", "quantity")
_HEADS = {"zh": ("项目", "内容"), "en": ("Item", "Details")}


def rewritten(form: Form, text: str, asked: str = "") -> str:
    """`text` in the form's kind, each of its sentences, lines or listed things by itself.

    `asked` is the request, which may want keys in lower case.
    """
    pairs = _pairs(text)
    if form.kind == "json" and pairs and len(dict(pairs)) == len(pairs):
        pairs = [(name.lower(), value) for name, value in pairs] if _LOWER.search(asked) else pairs
        return json.dumps(dict(pairs), ensure_ascii=False, indent=2)
    items = items_of(text)
    headed = _headed(text) if form.kind in ("bullets", "numbers") else None
    if headed:
        return f"{headed[0]}\n{form.lay_out(headed[1], '')}"
    if form.kind == "table":
        rows = pairs or [row for item in items if (row := _cut(item))]
        if len(rows) == len(pairs or items) and len(rows) > 1:
            return table(_HEADS[language_of(text)], rows)
    return form.lay_out(items, "" if language_of(text) == "zh" else " ")


def _headed(text: str) -> tuple[str, list[str]] | None:
    """`To bring: a pen, paper and glue.` as what is listed and the things; None where it is no such text."""
    match = re.match(r"^([^:：\n，,。]{1,30}[:：])\s*([^\n]+)$", text.strip())
    if match is None or len(sentences(text)) != 1:
        return None
    items = items_of(match[2])
    return (match[1], items) if len(items) > 1 else None


def items_of(text: str) -> list[str]:
    """The lines of a text that has several, else its sentences, else the things that its one sentence lists."""
    lines = [_BULLET.sub("", line).strip() for line in text.split("\n") if line.strip()]
    if len(lines) > 1:
        return lines
    told = [_BULLET.sub("", sentence) for sentence in sentences(text)]
    told = [sentence for sentence in told if sentence]
    if len(told) > 1:
        return told
    parts = [part.strip(" .。！!") for part in re.split(r"[；;]", text)]
    if len(parts) == 1:
        parts = [part for part in _ENUMERATION.split(text.strip(" .。\n")) if part]
    return parts if len(parts) > 2 or (len(parts) > 1 and re.search(r"[；;]", text)) else told


def _pairs(text: str) -> list[tuple[str, str]]:
    """Names and values of a text that is nothing but `name: value`, by lines or between commas."""
    for parts in (
        [line for line in text.split("\n") if line.strip()],
        re.split(r"[,，;；。]\s*", text.strip(" .。\n")),
    ):
        matches = [_PAIR.match(part) for part in parts if part.strip()]
        if len(matches) > 1 and all(matches):
            return [(match["name"].strip(" *"), match["value"].strip(" *")) for match in matches if match]
    return []


def _cut(item: str) -> tuple[str, str] | None:
    """What an item is about, and what it says of it from its first value on."""
    starts = [spans[0].start for kind in _VALUES if (spans := found(kind, item)) and spans[0].start > 0]
    if not starts:
        return None
    at = min(starts)
    about = _LINK.sub("", item[:at]).strip(" ,，、:：-–—")
    return (about, item[at:].strip(" .。")) if about else None
