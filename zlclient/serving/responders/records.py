"""Several things with the same fields in one text: orders, people, appointments, a row each.

records(("fruit", "price"), "Apples cost $2; pears cost $3.")  # [["Apples", "$2"], ["pears", "$3"]]
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..field_values import spoken
from ..value_kinds import found, kind_of
from .forms import Row
from .reading import sentences
from .stated import stated_value

_SEPARATORS = (r"[|\t]", r"\s[-–—/]\s", r"[，,]", r"、", r"\s+")  # of the cells of one part, tried in turn
_ENOUGH = 0.6  # the share of fields that a part must state to count as a record
_HEAD = re.compile(r"^[^:：;；。.\n]{1,12}[:：](?=[^:：]*$)")  # 采购单：打印纸30包；签字笔200支
_EDGES = " \t,，、;；.。:：|!！?？\"'“”()（）-–—"
_LEADING = re.compile(
    r"^(?:(?:and|then|at|on|by|from|with|for|to|of|the|a|is|are|was|costs?|comes? to|gives?)\s+|[在于由和与为是的每])+",
    re.IGNORECASE,
)
_COUNTED = r"\s+([A-Za-z][\w'-]*(?: (?!and\b)[\w'-]+){0,3}?)\s+(?:at|for|of|costs?)\b"  # (14) desk lamps at
_SUBJECT = re.compile(
    r"^[^\d，,：:；;。|]+?(?=每|的|为|是|售价|单价|价格|：|:|，|,|\s(?:is|are|costs?|was|at|for|-)\s|\d|$)"
)


def records(fields: Sequence[str], text: str) -> list[Row]:
    """A row of values for each thing that `text` tells of; empty where it tells of fewer than two."""
    for parts in _partitions(text):
        rows = [row for part in parts if (row := _record(fields, part))]
        if len(rows) > 1:
            return rows
    return []


def _partitions(text: str) -> list[list[str]]:
    """The ways to cut a text into what may be records: by lines, by semicolons, by sentences."""
    text = _HEAD.sub("", text)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    told = sentences(text)
    listed = [part for sentence in told for part in re.split(r",\s+(?:and\s+)?|\s+and\s+|[，、]", sentence)]
    return [lines, [part.partition("。")[0] for part in re.split(r"[；;]", text) if part.strip(_EDGES)], told, listed]


def _record(fields: Sequence[str], part: str) -> Row | None:
    """The fields' values in one part; None where it has too few of them."""
    for separator in _SEPARATORS:
        cells = [cell.strip(_EDGES) for cell in re.split(separator, part.strip(_EDGES))]
        if len(cells) == len(fields) and all(map(_suits, fields, cells)):
            return [_unlabelled(field, cell) for field, cell in zip(fields, cells, strict=True)]
    row: list[str | None] = []
    for field in fields:
        value = stated_value(field, part, fields)
        value = None if value in row else value
        kind = kind_of(field)
        if value is None and kind is not None:
            spans = found(kind, part) or (found("time", part) if kind == "date" else [])
            value = next((span.text for span in spans if span.text not in row), None)
        row.append(value)
    if sum(value is not None for value in row) < _ENOUGH * len(fields):
        return None
    return _completed(fields, row, part)


def _suits(field: str, cell: str) -> bool:
    """Whether a cell may hold the field: it has a value of its kind, or is a word or two where that can't be told."""
    kind = kind_of(field)
    return bool(cell) and (kind in (None, "person", "organisation", "address", "department") or bool(found(kind, cell)))


def _completed(fields: Sequence[str], row: list[str | None], part: str) -> Row:
    """`row` with what is left of the part in the one place that is still empty: the subject first, else the rest."""
    empty = [at for at, value in enumerate(row) if value is None]
    if len(empty) != 1:
        return row
    counts = [value for field, value in zip(fields, row, strict=True) if value and kind_of(field) == "quantity"]
    if counts and (thing := re.search(re.escape(counts[0]) + _COUNTED, part)):
        row[empty[0]] = thing[1]  # 14 desk lamps at $32.50
        return row
    if empty[0] == 0 and (subject := _SUBJECT.match(part.strip(_EDGES))):
        row[0] = subject[0].strip(_EDGES) or None
        return row
    rest = part
    for value in row:
        rest = rest.replace(value or "", " ", 1)
    for field in fields:
        rest = re.sub(re.escape(spoken(field)), " ", rest, count=1, flags=re.IGNORECASE)
    rest = _LEADING.sub("", re.sub(r"\s+", " ", rest).strip(_EDGES)).strip(_EDGES + "是在于为由")
    row[empty[0]] = rest or None
    return row


def _unlabelled(field: str, cell: str) -> str:
    """A cell without the field's name at its beginning."""
    name = re.escape(spoken(field))
    return re.sub(rf"^(?:{name}|{re.escape(field)})\s*(?:[:：=]|为|是)?\s*(?=\S)", "", cell, flags=re.IGNORECASE)
