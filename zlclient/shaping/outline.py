"""The tree of a document's headings, flat and in order: what `Document.outline()` returns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .structure import Heading


@dataclass(frozen=True, slots=True)
class Node:
    """One recognised division: `source[start:end]` is its heading, its body and everything below it.

    `kind` is such as "book", "part", "chapter", "section", "article", "clause", "heading" or "question". `path` holds
    the labels ("第二章 自然人") from the outermost division down to this one.
    """

    kind: str
    number: str
    title: str
    start: int
    end: int
    path: tuple[str, ...]
    level: int


class HeadingStack:
    """The divisions that are open at a point of the text, outermost first; levels grow strictly."""

    def __init__(self, headings: tuple[Heading, ...] = ()) -> None:
        self.headings = headings

    def push(self, heading: Heading) -> None:
        """Close what `heading` ends and open it."""
        kept = self.headings
        while kept and kept[-1].level >= heading.level:
            kept = kept[:-1]
        self.headings = (*kept, heading)


def outline(headings: Iterable[Heading], length: int) -> list[Node]:
    """Return a node for each heading of a text of `length` characters."""
    stack = HeadingStack()
    ends: dict[int, int] = {}
    ordered: list[tuple[Heading, tuple[str, ...]]] = []
    for heading in headings:
        before = stack.headings
        stack.push(heading)
        for closed in before[len(stack.headings) - 1 :]:
            ends[closed.start] = heading.start
        ordered.append((heading, tuple(h.label for h in stack.headings)))
    return [Node(h.kind, h.number, h.title, h.start, ends.get(h.start, length), path, h.level) for h, path in ordered]
