"""The lists, tables and fenced blocks of a Markdown text, as far as a format check needs them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

_BULLET = re.compile(r"(?P<indent>[ \t]*)[-*•+·●][ \t]+\S")
_NUMBERED = re.compile(
    r"(?P<indent>[ \t]*)(?:[0-9]{1,3}[.)、](?![0-9])|[（(][0-9]{1,3}[）)]|[一二三四五六七八九十]{1,3}、|[①-⑳])[ \t]*\S"
)
_DELIMITER = re.compile(r"[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|)*[ \t]*:?-+:?[ \t]*\|?[ \t]*")
_FENCE = re.compile(r"[ ]{0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)")
_CELL_END = re.compile(r"(?<!\\)\|")


class Line(NamedTuple):
    """A line with its kind and its offset."""

    kind: Literal["prose", "bullet", "numbered", "heading", "table", "fence", "blank"]
    text: str
    start: int
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Cells of a table: its header, and its rows below the delimiter."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def lines(text: str) -> list[Line]:
    """Every line with its kind; the fence lines and what they enclose are "fence"."""
    found: list[Line] = []
    fence = ""
    offset = 0
    raw = text.splitlines(keepends=True)
    tables = _table_lines(raw)
    for number, line in enumerate(raw):
        match = _FENCE.match(line)
        if fence:
            found.append(Line("fence", line, offset))
            if match and match["mark"].startswith(fence) and not match["info"].strip():
                fence = ""
        elif match:
            fence = match["mark"]
            found.append(Line("fence", line, offset))
        else:
            found.append(_plain_line(line, offset, number in tables))
        offset += len(line)
    return found


def _plain_line(line: str, offset: int, in_table: bool) -> Line:
    if not line.strip():
        return Line("blank", line, offset)
    if in_table:
        return Line("table", line, offset)
    if re.match(r"[ ]{0,3}#{1,6}[ \t]", line):
        return Line("heading", line, offset)
    for kind, pattern in (("bullet", _BULLET), ("numbered", _NUMBERED)):
        if match := pattern.match(line):
            return Line("bullet" if kind == "bullet" else "numbered", line, offset, len(match["indent"].expandtabs(4)))
    return Line("prose", line, offset)


def _is_delimiter(line: str) -> bool:
    # The length bound keeps the pattern from being tried on hostile lines of a million dashes.
    return "-" in line and "|" in line and len(line) < 10_000 and _DELIMITER.fullmatch(line.rstrip("\r\n")) is not None


def _table_lines(raw: list[str]) -> set[int]:
    found: set[int] = set()
    for number in range(1, len(raw)):
        if number in found or "|" not in raw[number - 1] or not _is_delimiter(raw[number]):
            continue
        found |= {number - 1, number}
        below = number + 1
        while below < len(raw) and "|" in raw[below]:
            found.add(below)
            below += 1
    return found


def tables(parsed: list[Line]) -> list[Table]:
    """The tables, each a header, a delimiter and rows. Rows shorter than the header are not filled up."""
    found: list[Table] = []
    block: list[Line] = []
    for line in [*parsed, Line("blank", "", 0)]:
        if line.kind == "table":
            block.append(line)
        elif block:
            header, _, *rows = (_cells(row.text) for row in block)
            found.append(Table(header, tuple(rows)))
            block = []
    return found


def _cells(line: str) -> tuple[str, ...]:
    body = line.strip()
    body = body[1:] if body.startswith("|") else body
    body = body[:-1] if body.endswith("|") and not body.endswith("\\|") else body
    return tuple(cell.strip().replace("\\|", "|") for cell in _CELL_END.split(body))


def fenced_blocks(parsed: list[Line]) -> list[str]:
    """What each fenced block encloses; one that is never closed reaches to the end."""
    found: list[str] = []
    mark, body = "", ""
    for line in parsed:
        if line.kind != "fence":
            continue
        fence = _FENCE.match(line.text)
        if not mark and fence:
            mark, body = fence["mark"], ""
        elif fence and fence["mark"].startswith(mark) and not fence["info"].strip():
            found.append(body)
            mark = ""
        else:
            body += line.text
    return [*found, body] if mark else found
