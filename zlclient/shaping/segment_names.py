"""What a segment is called: its path, and the names in its anchor."""

from __future__ import annotations

import re

from ..errors import InputError
from . import tokens
from .segment_anchors import AnchorStyle, Place
from .segment_budget import Budget
from .structure import Heading

_HAN = re.compile(r"[\u3400-\u9fff]")
_MOST_PARTS = 99_999
_LEAST_BODY = 8 * tokens.UNIT  # a budget that leaves less than this for text is refused


class Naming:
    """Names segments in one style within one budget; `whole` names text that stands under no heading."""

    def __init__(self, style: AnchorStyle, budget: Budget, whole: str) -> None:
        self.style = style
        self._family: tokens.Family = budget.family
        self._whole = whole
        self._around = "\n" + style.suffix
        bare = self._cost(style.write(Place(_MOST_PARTS, (), (), (_MOST_PARTS, _MOST_PARTS))))
        least = bare + budget.overlap_units + _LEAST_BODY
        if budget.units < least:
            needed = -(-least * budget.max_tokens // max(1, budget.units))
            raise InputError(
                f"{budget.max_tokens} is too small for an anchor, the overlap and a few words: use {needed} or more",
                where="max_tokens",
            )
        self._cap = max(bare, (budget.units - budget.overlap_units) // 3)

    def fit(self, place: Place) -> tuple[Place, int]:
        """Shorten the place's names until its anchor takes at most a third of the budget.

        Return it with what the anchor, its line end and the style's suffix cost.
        """
        while True:
            units = self._cost(self.style.write(place))
            if units <= self._cap or not (place.names or place.path):
                return place, units
            place = _shortened(place)

    def _cost(self, anchor: str) -> int:
        return tokens.weigh(anchor + self._around, self._family)

    def of(self, first: tuple[Heading, ...], last: tuple[Heading, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the path and the anchor's names for a segment from one heading stack to another."""
        common = 0
        for a, b in zip(first, last, strict=False):
            if a is not b:
                break
            common += 1
        if common == len(last):  # one block, or a division and nothing below it
            return tuple([h.label for h in last]), self._names(last)
        above = last[:common]
        begins = first[common] if common < len(first) else last[common]
        ends = last[common]
        span = begins.label if begins is ends else _range(_short(begins), _short(ends))
        return (*[h.label for h in above], span), (*self._titled(above), span)

    def _names(self, stack: tuple[Heading, ...]) -> tuple[str, ...]:
        if not stack:
            return (self._whole,)
        inner = stack[-1]
        if inner.title:
            return (inner.number, inner.title) if inner.number else (inner.title,)
        return (*self._titled(stack[:-1]), inner.number)

    def _titled(self, stack: tuple[Heading, ...]) -> tuple[str, ...]:
        """Return number and title of the innermost heading that has a title: 第十三条 alone says too little."""
        for heading in reversed(stack):
            if heading.title:
                return (heading.number, heading.title) if heading.number else (heading.title,)
        return ()


def _shortened(place: Place) -> Place:
    """Halve the longest name, and leave names out once none can be shorter."""
    longest = max((*place.names, *place.path), key=len)
    if len(longest) <= 2:
        return place._replace(names=(), path=())
    shorter = longest[: len(longest) // 2].rstrip("…") + "…"
    return place._replace(
        names=tuple(shorter if name == longest else name for name in place.names),
        path=tuple(shorter if name == longest else name for name in place.path),
    )


def _short(heading: Heading) -> str:
    return heading.number or heading.title


def _range(begin: str, end: str) -> str:
    return f"{begin}至{end}" if _HAN.search(begin + end) else f"{begin}–{end}"
