"""Estimated cost of any span of a text, by prefix sums kept for a few windows at a time."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import cast

from . import tokens

_WINDOW = 1 << 18  # characters a window
_KEPT = 64  # windows kept, 64 MiB of sums at most, however long the text
Surcharges = Callable[[str], "list[tuple[int, int]]"]


class TokenIndex:
    """Costs of spans of `text` in hundredths of a token, long runs and `surcharges` included.

    `surcharges` returns (position, hundredths) for characters that cost more than they show, because they will be
    escaped. The cost of a span is at least what `tokens.weigh` says of it. Not thread-safe: one index an iteration.
    """

    def __init__(self, text: str, family: tokens.Family, surcharges: Surcharges | None = None) -> None:
        self._text, self._surcharges = text, surcharges
        self._family: tokens.Family = family
        self._bases = [0]
        self._sums: dict[int, memoryview[int]] = {}

    def at(self, position: int) -> int:
        """Return the cost of everything before `position`."""
        window, offset = divmod(position, _WINDOW)
        if offset == 0:
            self._ensure_base(window)
            return self._bases[window]
        sums = self._sums.get(window)
        if sums is None:
            sums = self._window(window)
        return self._bases[window] + sums[offset - 1]

    def at_all(self, positions: Sequence[int]) -> list[int]:
        """Return `at` of each of the growing `positions`."""
        found: list[int] = []
        i = 0
        while i < len(positions):
            window, offset = divmod(positions[i], _WINDOW)
            if offset == 0:
                found.append(self.at(positions[i]))
                i += 1
                continue
            sums = self._window(window)
            base, shift = self._bases[window], window * _WINDOW + 1
            stop = bisect_left(positions, (window + 1) * _WINDOW, i)
            found += [base + sums[position - shift] for position in positions[i:stop]]
            i = stop
        return found

    def cost(self, start: int, end: int) -> int:
        """Return the cost of the span."""
        return self.at(end) - self.at(start)

    def reach(self, start: int, units: int) -> int:
        """Return the largest end whose span from `start` costs at most `units`."""
        target = self.at(start) + units
        window = start // _WINDOW
        while (window + 1) * _WINDOW <= len(self._text):
            self._ensure_base(window + 1)
            if self._bases[window + 1] > target:
                break
            window += 1
        if window * _WINDOW >= len(self._text):
            return len(self._text)
        sums = self._window(window)
        return window * _WINDOW + bisect_right(sums, target - self._bases[window])

    def _ensure_base(self, window: int) -> None:
        while len(self._bases) <= window:
            self._window(len(self._bases) - 1)

    def _window(self, window: int) -> memoryview[int]:
        if window in self._sums:
            return self._sums[window]
        if window >= len(self._bases):
            self._ensure_base(window)
        sums = self._summed(self._text[window * _WINDOW : (window + 1) * _WINDOW])
        if window == len(self._bases) - 1:
            self._bases.append(self._bases[window] + (sums[-1] if len(sums) else 0))
        if len(self._sums) >= _KEPT:
            del self._sums[next(iter(self._sums))]
        self._sums[window] = sums
        return sums

    def _summed(self, piece: str) -> memoryview[int]:
        each = tokens.weigh_each(piece, self._family)
        for start, end in tokens.runs(piece.encode("ascii", "replace")):
            each[start:end] = array("H", [tokens.UNIT]) * (end - start)
        dearer = self._surcharges(piece) if self._surcharges is not None else []
        if dearer and not isinstance(each, array):
            each = each.astype("uint32")
        for position, units in dearer:
            each[position] += min(0xF000, units)
        # A memory view hands out plain integers, several times as fast as numpy's scalars.
        if isinstance(each, array):
            return memoryview(array("q", accumulate(cast("array[int]", each))))
        return memoryview(each.cumsum(dtype="int32"))
