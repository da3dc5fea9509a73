"""Form feeds, and the headers and footers that repeat from page to page: what a printed page adds to a text."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

_EDGE_LINES = 2  # how many lines at either end of a page may be its header or footer
_LEAST_PAGES = 3
_LEAST_SHARE = 0.3  # odd and even pages may differ, and chapters change the running title
_LONGEST = 120  # a longer line is text
_NUMBER = re.compile(r"[0-9０-９]+")


@dataclass(frozen=True, slots=True)
class PageMark:
    """`source[start:end]` is a "page-break", a "page-header" or a "page-footer", its line end included."""

    kind: str
    start: int
    end: int


class PageMarks:
    """Knows the lines that repeat at the edges of the pages of one document; pages are divided by form feeds."""

    def __init__(self, text: str) -> None:
        self._repeated: frozenset[tuple[str, str]] = frozenset()
        if "\f" not in text:
            return
        pages = text.split("\f")
        counts = Counter(
            shape
            for number, page in enumerate(pages)
            for shape in {(line.kind, form) for line in _edges(page) for form in _forms(line.text, number)}
        )
        least = max(_LEAST_PAGES, _LEAST_SHARE * len(pages))
        self._repeated = frozenset(shape for shape, n in counts.items() if n >= least)

    def spans(self, text: str, first_page: int = 0) -> list[PageMark]:
        """Return the page marks in `text`, in order; none where the document has no form feed.

        `first_page` is how many form feeds came before `text`, where it is a piece of the document.
        """
        if "\f" not in text and not self._repeated:
            return []
        marks: list[PageMark] = []
        start = 0
        for number, page in enumerate(text.split("\f"), first_page):
            if number > first_page:
                marks.append(PageMark("page-break", start - 1, start))
            for line in _edges(page):
                kind = self._kind(line, number)
                if kind:
                    marks.append(PageMark(f"page-{kind}", start + line.start, start + line.end))
            start += len(page) + 1
        return marks

    def _kind(self, line: _Line, page: int) -> str | None:
        """Return what `line` repeats; the last line of a page of two lines may well be its footer."""
        forms = _forms(line.text, page)
        for kind in (line.kind, "footer" if line.kind == "header" else "header"):
            if any((kind, form) in self._repeated for form in forms):
                return kind
        return None


class _Line(NamedTuple):
    """One of a page's outer lines, "header" or "footer", and where it is in the page."""

    kind: str
    text: str
    start: int
    end: int


def _forms(line: str, page: int) -> list[str]:
    """Return the line, and the line with each number relative to the page's, which repeats if it counts pages."""
    return [line] + [
        f"{line[: m.start()]}\0{int(m[0]) - page}{line[m.end() :]}" for m in _NUMBER.finditer(line) if len(m[0]) <= 5
    ]


def _edges(page: str) -> list[_Line]:
    """Return a page's outer lines in order; white space inside them is made one space."""
    near = _EDGE_LINES * 2 * _LONGEST
    head = _lines("header", page, 0, min(len(page), near))[:_EDGE_LINES]
    foot = _lines("footer", page, max(0, len(page) - near), len(page))[-_EDGE_LINES:]
    taken = head[-1].end if head else 0
    return head + [line for line in foot if line.start >= taken]


def _lines(kind: str, page: str, start: int, stop: int) -> list[_Line]:
    lines: list[_Line] = []
    for line in page[start:stop].splitlines(keepends=True):
        text = " ".join(line.split())
        if text and len(line) <= _LONGEST:
            lines.append(_Line(kind, text, start, start + len(line)))
        start += len(line)
    return lines
