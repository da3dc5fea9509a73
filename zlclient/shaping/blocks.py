"""The blocks of a document: a heading with its body, up to the next heading, and which of them belong together."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .structure import Heading
from .token_index import TokenIndex

_NOT_SPACE = re.compile(r"\S")


class Blocks:
    """The blocks of a text in order.

    Block i is `text[starts[i]:starts[i + 1]]` and costs `units[i + 1] - units[i]` hundredths of a token. Text before
    the first heading is a block of its own; `carried` are the headings that were open before the text began.
    """

    def __init__(self, text: str, headings: Sequence[Heading], carried: tuple[Heading, ...], costs: TokenIndex) -> None:
        self._text, self._carried = text, carried
        opening = 1 if text and not (headings and headings[0].start == 0) else 0
        self._headings: list[Heading | None] = [None] * opening
        self._headings += headings
        self.starts = [0] * opening + [h.start for h in headings] + [len(text)]
        self.units = costs.at_all(self.starts)
        self._parents = _parents(self._headings)
        self._stacks: dict[int, tuple[Heading, ...]] = {}
        self._stop = (0, 0, False)  # of the last search: the block it stopped at, the level, whether of units only

    def __len__(self) -> int:
        return len(self._headings)

    def stack(self, block: int) -> tuple[Heading, ...]:
        """Return the headings `block` stands under, outermost first, its own included."""
        heading = self._headings[block] if block >= 0 else None
        if heading is None:
            return self._carried
        parent = self._parents[block]
        if parent < 0:
            return (*(h for h in self._carried if h.level < heading.level), heading)
        above = self._stacks.get(parent)
        if above is None:
            above = self._stacks[parent] = self.stack(parent)
        return (*above, heading)

    def group(self, at: int, *, sections: bool) -> tuple[int, int]:
        """Return (first, stop): blocks `at` to `stop` may share a segment, and `first` is the first named in it.

        Headings without a body wait for the block below them. After it come its siblings and what is below them, as
        far as they are units or, with `sections`, whatever they are.
        """
        first = at
        while first + 1 < len(self) and self._is_bare(first) and self._is_below(first + 1, first):
            first += 1
        if self._headings[first] is None:
            return first, first + 1
        if sections:
            return first, self._run_end(first + 1, self._level(at), sections)
        stop = self._run_end(first + 1, self._level(first), sections)
        if stop > first + 1 and self._parents[first + 1] == first:
            first += 1  # a division's own text is named with the units after it: 第一条至第五条
            stop = self._run_end(first + 1, self._level(first), sections)
        return first, stop

    def last_whole(self, at: int, end: int) -> int:
        """Return the last block up to `end` that is no lower than block `at`, if half is left; else `end`."""
        least = (self.units[at] + self.units[end]) // 2
        level = self._level(at)
        for block in range(end, at, -1):
            if self.units[block] < least:
                break
            if self._level(block) <= level:
                return block
        return end

    def _level(self, block: int) -> int:
        heading = self._headings[block]
        return heading.level if heading is not None else -1

    def _is_bare(self, block: int) -> bool:
        heading = self._headings[block]
        body = heading.end if heading is not None else 0
        return _NOT_SPACE.search(self._text, body, self.starts[block + 1]) is None

    def _is_below(self, block: int, above: int) -> bool:
        return self._level(block) > self._level(above)

    def _run_end(self, block: int, level: int, sections: bool) -> int:
        """Return the first block from `block` on that is higher than `level` or, without `sections`, no unit."""
        stop, known_level, known_sections = self._stop
        if level == known_level and sections == known_sections and block <= stop:
            return stop
        end = block
        while end < len(self._headings):
            heading = self._headings[end]
            if heading is None or heading.level < level or not (heading.unit or sections):
                break
            end += 1
        self._stop = (end, level, sections)
        return end


def _parents(headings: list[Heading | None]) -> list[int]:
    """Return for each block the nearest one before it with a lower level, or -1."""
    parents: list[int] = []
    open_blocks: list[int] = []
    levels: list[int] = []
    for i, heading in enumerate(headings):
        if heading is None:
            parents.append(-1)
            continue
        level = heading.level
        while levels and levels[-1] >= level:
            levels.pop()
            open_blocks.pop()
        parents.append(open_blocks[-1] if open_blocks else -1)
        levels.append(level)
        open_blocks.append(i)
    return parents
