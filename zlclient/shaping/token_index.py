"""Estimated cost of any span of a text, by sums kept for some windows at a time."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, cast

from . import tokens

_WINDOW = 1 << 18  # characters a window
_KEPT = 64  # windows kept, 32 MiB at most, however long the text
_STEP = 64  # characters between two sums
_DENSE = 512  # positions in a window from which on every character's sum is worth having
Surcharges = Callable[[str], "list[tuple[int, int]]"]


class _Window(NamedTuple):
    """A window's weights, character by character, and the sum of what comes before every 64th of them."""

    each: memoryview[int]
    sums: list[int]

    def before(self, offset: int) -> int:
        step = offset // _STEP
        return self.sums[step] + sum(self.each[step * _STEP : offset])

    def reach(self, units: int) -> int:
        """Return how many characters cost at most `units`."""
        step = bisect_right(self.sums, units) - 1
        total, offset = self.sums[step], step * _STEP
        for weight in self.each[offset : offset + _STEP]:
            total += weight
            if total > units:
                break
            offset += 1
        return offset


class TokenIndex:
    """Costs of spans of `text` in hundredths of a token, long runs and `surcharges` included.

    `surcharges` returns (position, hundredths) for characters that cost more than they show, because they will be
    escaped. The cost of a span is at least what `tokens.weigh` says of it. Not thread-safe: one index an iteration.
    """

    def __init__(self, text: str, family: tokens.Family, surcharges: Surcharges | None = None) -> None:
        self._text, self._surcharges = text, surcharges
        self._family: tokens.Family = family
        self._bases = [0]
        self._windows: dict[int, _Window] = {}

    def at(self, position: int) -> int:
        """Return the cost of everything before `position`."""
        number, offset = divmod(position, _WINDOW)
        if offset == 0:
            return self._base(number)
        window = self._window(number)
        return self._bases[number] + window.before(offset)

    def at_all(self, positions: Sequence[int]) -> list[int]:
        """Return `at` of each of the growing `positions`."""
        found: list[int] = []
        while len(found) < len(positions):
            first = len(found)
            number = positions[first] // _WINDOW
            stop = bisect_left(positions, (number + 1) * _WINDOW, first)
            start = number * _WINDOW
            if stop - first < _DENSE or positions[first] == start:
                found += map(self.at, positions[first : first + 1 if positions[first] == start else stop])
                continue
            base, through = self._base(number), _running(self._window(number).each)
            found += [base + through[position - start - 1] for position in positions[first:stop]]
        return found

    def cost(self, start: int, end: int) -> int:
        """Return the cost of the span."""
        return self.at(end) - self.at(start)

    def reach(self, start: int, units: int) -> int:
        """Return the largest end whose span from `start` costs at most `units`."""
        target = self.at(start) + units
        number = start // _WINDOW
        while (number + 1) * _WINDOW <= len(self._text) and self._base(number + 1) <= target:
            number += 1
        if number * _WINDOW >= len(self._text):
            return len(self._text)
        window = self._window(number)
        return number * _WINDOW + window.reach(target - self._bases[number])

    def _base(self, number: int) -> int:
        """Return the cost of all windows before window `number`."""
        while len(self._bases) <= number:
            last = len(self._bases) - 1
            window = self._window(last)
            self._bases.append(self._bases[last] + window.before(len(window.each)))
        return self._bases[number]

    def _window(self, number: int) -> _Window:
        window = self._windows.get(number)
        if window is None:
            self._base(number)
            if len(self._windows) >= _KEPT:
                del self._windows[next(iter(self._windows))]
            window = self._weighed(self._text[number * _WINDOW : (number + 1) * _WINDOW])
            self._windows[number] = window
        return window

    def _weighed(self, piece: str) -> _Window:
        each = tokens.weigh_each(piece, self._family)
        for start, end in tokens.runs(piece.encode("ascii", "replace")):
            each[start:end] = array(each.typecode if isinstance(each, array) else "H", [tokens.UNIT]) * (end - start)
        dearer = self._surcharges(piece) if self._surcharges is not None else []
        if dearer and each.itemsize < 4:
            each = array("I", cast("array[int]", each)) if isinstance(each, array) else each.astype("uint32")
        for position, units in dearer:
            each[position] += units
        whole = len(piece) // _STEP * _STEP
        if isinstance(each, array):
            weights = cast("array[int]", each)
            return _Window(memoryview(weights), _sums(sum(weights[i : i + _STEP]) for i in range(0, whole, _STEP)))
        steps: Any = each[:whole].reshape(-1, _STEP).sum(axis=1, dtype="uint32")
        return _Window(memoryview(each), _sums(steps.tolist()))


def _sums(steps: Iterable[int]) -> list[int]:
    return [0, *accumulate(steps)]


def _running(each: memoryview[int]) -> Sequence[int]:
    """Return the running sums of all weights, each included, by numpy where it made them."""
    made: Any = each.obj
    return list(accumulate(each)) if isinstance(made, array) else memoryview(made.cumsum(dtype="int32"))
