"""Cuts a document into segments that fit a token budget, each under an anchor that says where it stands.

Everything is done on positions: a segment is a span of the source, so the spans joined are the source again. Blocks
(a heading and its body up to the next heading) are gathered greedily: a heading waits for its first body, small units
such as articles join their siblings, and a block that does not fit is cut into numbered parts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple

from . import tokens
from .blocks import Blocks
from .cuts import best_cut, overlap_start
from .page_marks import PageMark
from .segment_anchors import AnchorStyle, Place
from .segment_budget import Budget
from .segment_names import Naming
from .structure import Heading
from .token_index import TokenIndex

Pack = Literal["units", "sections"]


@dataclass(frozen=True, slots=True)
class Segment:
    """One span of the source and what is sent for it.

    `source[start:end] == text`. `path` holds the labels of the divisions it stands in, the last a range such as
    第一条至第五条 where several were packed. `part` is (2, 7) for the second of seven parts of a division too long for
    one segment, else None. `overlap` repeats the source right before `start`. `omitted` are the page marks inside the
    span that `rendered` leaves out.
    """

    index: int
    anchor: str
    text: str
    start: int
    end: int
    path: tuple[str, ...]
    part: tuple[int, int] | None
    overlap: str
    omitted: tuple[PageMark, ...]
    style: AnchorStyle = field(repr=False)
    model: str | None = field(repr=False)

    @property
    def rendered(self) -> str:
        """What is sent: anchor, overlap and text, forged anchors escaped, omitted page marks left out."""
        body = self.overlap + self.text
        first = self.start - len(self.overlap)
        for mark in reversed(self.omitted):
            before, after = body[: mark.start - first], body[mark.end - first :]
            joint = "" if not before or before[-1].isspace() else "\n"  # words on either side stay apart
            body = before + joint + after
        return f"{self.anchor}\n{self.style.escape(body)}{self.style.suffix}"

    @property
    def tokens(self) -> int:
        """The tokens of `rendered` for the model, counted where a tokenizer is installed, else estimated."""
        return tokens.count_tokens(self.rendered, self.model).n


@dataclass(frozen=True, slots=True)
class Rest:
    """What a text that is not finished leaves over: where, under which headings, and the next segment's index."""

    start: int
    stack: tuple[Heading, ...]
    index: int


class Segmenter:
    """Segments one document, fed whole or piece by piece."""

    def __init__(
        self, budget: Budget, naming: Naming, *, pack: Pack = "units", omit: bool = False, model: str | None = None
    ) -> None:
        self._budget, self._naming, self._pack, self._omit, self._model = budget, naming, pack, omit, model

    def run(
        self,
        text: str,
        headings: Sequence[Heading],
        marks: Sequence[PageMark] = (),
        *,
        rest: Rest | None = None,
        base: int = 0,
        final: bool = True,
    ) -> Generator[Segment, None, Rest]:
        """Yield the segments of `text`, whose first character is character `base` of the document.

        Headings and marks are positioned in `text`. Unless `final`, the last block and what it could join are kept
        back and described by the returned Rest, whose start is a position in `text`.
        """
        rest = rest or Rest(0, (), 1)
        costs = TokenIndex(text, self._budget.family, self._naming.style.surcharges)
        blocks = Blocks(text, headings, rest.stack, costs)
        writer = _Writer(text, base, costs, self._budget, self._naming, marks if self._omit else (), self._model)
        writer.index = rest.index
        at = 0
        while at < len(blocks):
            first, stop = blocks.group(at, sections=self._pack == "sections")
            if not final and stop == len(blocks):
                return Rest(blocks.starts[at], blocks.stack(at - 1) if at else rest.stack, writer.index)
            end, named = self._fitting(blocks, at, first, stop, writer)
            yield from writer.emit(blocks, at, end, named)
            at = end
        return Rest(len(text), blocks.stack(at - 1) if at else rest.stack, writer.index)

    def _fitting(self, blocks: Blocks, at: int, first: int, stop: int, writer: _Writer) -> tuple[int, _Named]:
        """Return how far, up to `stop`, the group that starts at block `at` fits under its own anchor; past `first`."""
        units, allowed = blocks.units, blocks.units[at] + self._budget.units
        end = max(first + 1, bisect_right(units, allowed, first, stop + 1) - 1)
        if self._pack == "sections" and end < stop:
            end = max(first + 1, blocks.last_whole(at, end))
        while True:
            named = writer.named(blocks, first, end)
            if end == first + 1 or units[end] + named.units <= allowed:
                return end, named
            end -= 1


class _Named(NamedTuple):
    """What a group is called while it is one segment: its path, the place its anchor shows, and what that costs."""

    path: tuple[str, ...]
    place: Place
    units: int


class _Writer:
    """Writes the segments of one run."""

    def __init__(
        self,
        text: str,
        base: int,
        costs: TokenIndex,
        budget: Budget,
        naming: Naming,
        marks: Sequence[PageMark],
        model: str | None,
    ) -> None:
        self._text, self._base, self._costs = text, base, costs
        self._budget, self._naming, self._model = budget, naming, model
        self._marks, self._mark_ends = marks, [mark.end for mark in marks]
        self.index = 1

    def named(self, blocks: Blocks, first: int, end: int) -> _Named:
        """Name blocks `first` to `end` as the next segment."""
        path, names = self._naming.of(blocks.stack(first), blocks.stack(end - 1))
        return _Named(path, *self._naming.fit(Place(self.index, path, names)))

    def emit(self, blocks: Blocks, at: int, end: int, named: _Named) -> list[Segment]:
        """Return blocks `at` to `end` as one segment, or as numbered parts, smaller until an exact count agrees."""
        start, stop = blocks.starts[at], blocks.starts[end]
        units = blocks.units[end] - blocks.units[at] + named.units
        allowed = self._budget.units
        while True:
            if units <= allowed:
                made = [self._segment(named.path, named.place, start, start, stop)]
            else:
                made = self._parts(start, stop, named, allowed)
            if self._budget.keeps(made) or len(made) >= stop - start:
                break
            allowed = allowed * 4 // 5
        self.index += len(made)
        return made

    def _parts(self, start: int, stop: int, named: _Named, allowed: int) -> list[Segment]:
        """Return a span as parts that cost at most `allowed` each; their anchor is longer the more parts there are."""
        digits = len(str(1 + 3 * self._costs.cost(start, stop) // (2 * allowed)))
        while True:
            most = 10**digits - 1
            place, units = self._naming.fit(named.place._replace(ordinal=self.index + most, part=(most, most)))
            cuts = self._cuts(start, stop, allowed - units - self._budget.overlap_units, most)
            if cuts[-1] == stop:
                break
            digits += 1
        made: list[Segment] = []
        lead = start
        for number, (begin, end) in enumerate(pairwise(cuts), 1):
            here = place._replace(ordinal=self.index + number - 1, part=(number, len(cuts) - 1))
            made.append(self._segment(named.path, here, lead, begin, end))
            lead = overlap_start(self._text, begin, end, self._costs, self._budget.overlap_units)
        return made

    def _cuts(self, start: int, stop: int, room: int, most: int) -> list[int]:
        """Return where parts that cost at most `room` begin and end, stopping after `most` parts."""
        cuts = [start]
        while (begin := cuts[-1]) < stop and len(cuts) <= most:
            limit = min(stop, max(begin + 1, self._costs.reach(begin, room)))
            cuts.append(limit if limit == stop else best_cut(self._text, begin, limit))
        return cuts

    def _segment(self, path: tuple[str, ...], place: Place, lead: int, start: int, end: int) -> Segment:
        style = self._naming.style
        return Segment(
            place.ordinal,
            style.write(place),
            self._text[start:end],
            self._base + start,
            self._base + end,
            path,
            place.part,
            self._text[lead:start],
            self._marks_in(lead, end) if self._marks else (),
            style,
            self._model,
        )

    def _marks_in(self, start: int, end: int) -> tuple[PageMark, ...]:
        """Return the page marks that touch the span, cut to it and placed in the document."""
        found: list[PageMark] = []
        for mark in self._marks[bisect_right(self._mark_ends, start) :]:
            if mark.start >= end:
                break
            first, last = max(start, mark.start), min(end, mark.end)
            found.append(PageMark(mark.kind, self._base + first, self._base + last))
        return tuple(found)
