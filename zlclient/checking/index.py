"""A source text, read once, to be checked against many times."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from functools import cached_property
from itertools import islice

from .dates import Moment, moments
from .names import Name, proper_nouns
from .numbers import Quantity, quantities, unit_after
from .numerals import EXACT, spell_english
from .text import fold, lower, share_of_cjk

# How many of the places where one value occurs are looked at; beyond, a text is no prose.
_MOST_PLACES = 256
_MOST_LIKE = 200

_SCALE_NOTE = re.compile(
    r"单位[: ]{0,2}(?:人民币)?(?P<cn>百万|千万|亿|万|千)"
    r"|(?i:\bin[ ](?:US\$|\$|RMB|USD|CNY|€|£)?[ ]?(?P<en>thousands|millions|billions))"
)
_SCALES = {
    "千": 10**3, "万": 10**4, "百万": 10**6, "千万": 10**7, "亿": 10**8,
    "thousands": 10**3, "millions": 10**6, "billions": 10**9,
}  # fmt: skip
_PIECE = re.compile(r"[a-z]+|[0-9]+|[^a-z0-9\s·‑_-]+")
_BETWEEN = r"[\s·‑_-]*"
_CLAUSE_END = re.compile(r"[。！？!?；;\n]")


class SourceIndex:
    """Numbers, dates and names of `source`, by value, for `check_fidelity(answer, index)` on many answers.

    Building it is linear in the length. What only a missing fact needs is computed at the first one. Threads may
    share an index.
    """

    def __init__(self, source: str) -> None:
        self.text = fold(source)
        self.lowered = lower(self.text)
        self.moments = moments(self.text)
        self.quantities = quantities(self.text, self._dated())
        self.cjk_share = share_of_cjk(self.text)
        self._by_value: dict[Decimal, list[int]] = {}
        self._codes: dict[str, int] = {}
        self._by_date: dict[str, list[int]] = {}
        self._fill()

    def _dated(self) -> bytearray:
        """Set where a date stands; a bare year also counts as a number, so it stays unset."""
        mask = bytearray(len(self.text))
        for moment in self.moments:
            if not _bare_year(self.text, moment):
                mask[moment.start : moment.end] = b"\x01" * (moment.end - moment.start)
        return mask

    def _fill(self) -> None:
        for place, quantity in enumerate(self.quantities):
            if quantity.code:
                self._codes.setdefault(quantity.code, place)
                continue
            self._by_value.setdefault(quantity.value, []).append(place)
            if quantity.unit and quantity.unit.factor != 1:
                self._by_value.setdefault(quantity.base, []).append(place)
        for place, moment in enumerate(self.moments):
            for key in moment.answers_for():
                self._by_date.setdefault(key, []).append(place)
            if moment.day:
                self._by_date.setdefault(f"---{moment.day:02d}", []).append(place)

    # Looking up

    def code(self, code: str) -> Quantity | None:
        """The telephone number, version or identifier that is exactly `code`."""
        place = self._codes.get(code)
        return None if place is None else self.quantities[place]

    def with_value(self, *values: Decimal) -> Iterator[Quantity]:
        """Numbers that have one of `values` as written or in their unit's base."""
        for value in dict.fromkeys(values):
            for place in self._by_value.get(value, ())[:_MOST_PLACES]:
                yield self.quantities[place]

    def near(self, value: Decimal, width: Decimal) -> Iterator[Quantity]:
        """Numbers within `width` of `value`, nearest first."""
        values, places = self._ladder
        low, high = float(EXACT.subtract(value, width)), float(EXACT.add(value, width))
        first = bisect_left(values, low - abs(low) * 1e-9)
        last = bisect_left(values, high + abs(high) * 1e-9, first)
        middle = bisect_left(values, float(value), first, last)
        first, last = max(first, middle - _MOST_PLACES), min(last, middle + _MOST_PLACES)
        for place in sorted(range(first, last), key=lambda place: abs(values[place] - float(value))):
            yield self.quantities[places[place]]

    @cached_property
    def _ladder(self) -> tuple[list[float], list[int]]:
        pairs = sorted((float(value), place) for value, places in self._by_value.items() for place in places)
        return [value for value, _ in pairs], [place for _, place in pairs]

    def spelled(self, value: Decimal) -> Iterator[Quantity]:
        """Places where `value` stands in English words, such as "twenty-five"."""
        if value == value.to_integral_value() and value < 10**15 and (pattern := spell_english(int(value))):
            for start, end in islice(self._whole_words(pattern), _MOST_PLACES):
                unit_end, unit = unit_after(self.text, end)
                yield Quantity(start, unit_end, value, Decimal(1), unit)

    def _whole_words(self, pattern: str) -> Iterator[tuple[int, int]]:
        # Boundaries are looked at after a hit: a pattern that begins with a literal is searched much faster.
        for match in re.finditer(pattern, self.lowered):
            start, end = match.span()
            if not (_joins(self.lowered, start - 1, match[0][0]) or _joins(self.lowered, end, match[0][-1])):
                yield start, end

    @cached_property
    def scales(self) -> tuple[int, ...]:
        """Scales that a table declares for its bare numbers: 单位：万元, "in millions"."""
        return tuple({_SCALES[(match["cn"] or match["en"]).lower()] for match in _SCALE_NOTE.finditer(self.text)})

    def date(self, *keys: str) -> Moment | None:
        """The first date that answers for one of `keys`."""
        places = [found[0] for key in keys if (found := self._by_date.get(key))]
        return self.moments[min(places)] if places else None

    def name(self, lowered_name: str) -> tuple[int, int] | None:
        """Where a name stands, whatever its case, width, spaces and hyphens."""
        pieces = _PIECE.findall(lowered_name)
        if not pieces:
            return None
        if len(pieces) == 1 and not pieces[0].isascii():
            at = self.lowered.find(pieces[0])
            return None if at < 0 else (at, at + len(pieces[0]))
        return next(self._whole_words(_BETWEEN.join(map(re.escape, pieces))), None)

    # What a distorted fact may have been

    def after_label(self, label: str, kind: str, gap: int = 14) -> Iterator[Quantity | Moment]:
        """Facts of one kind that follow `label` in the same clause."""
        facts, starts = self._facts(kind)
        for at in self._places(label):
            end = at + len(label)
            place = bisect_left(starts, end)
            near = place < len(facts) and facts[place].start - end <= gap
            if near and not _CLAUSE_END.search(self.text, end, facts[place].start):
                yield facts[place]

    def before_label(self, label: str, kind: str) -> Iterator[Quantity | Moment]:
        """Facts of one kind that `label` follows directly."""
        facts, starts = self._facts(kind)
        for at in self._places(label):
            place = bisect_left(starts, at) - 1
            near = place >= 0 and 0 <= at - facts[place].end <= 2
            if near and not _CLAUSE_END.search(self.text, facts[place].end, at):
                yield facts[place]

    def _places(self, label: str) -> Iterator[int]:
        at = -1
        for _ in range(20):
            at = self.lowered.find(label, at + 1)
            if at < 0:
                return
            yield at

    def _facts(self, kind: str) -> tuple[list[Quantity] | list[Moment], list[int]]:
        return (self.quantities, self._number_starts) if kind == "number" else (self.moments, self._date_starts)

    @cached_property
    def _number_starts(self) -> list[int]:
        return [quantity.start for quantity in self.quantities]

    @cached_property
    def _date_starts(self) -> list[int]:
        return [moment.start for moment in self.moments]

    @cached_property
    def _by_digits(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for place, quantity in enumerate(self.quantities):
            if not quantity.code:
                for key in digit_keys(quantity.value):
                    found.setdefault(key, place)
        return found

    def with_digits(self, value: Decimal) -> Quantity | None:
        """A number with the same digits in another order, or with the point elsewhere."""
        for key in digit_keys(value):
            place = self._by_digits.get(key)
            if place is not None and self.quantities[place].value != value:
                return self.quantities[place]
        return None

    @cached_property
    def _grams(self) -> tuple[list[Name], list[int], dict[str, list[int]]]:
        names = {lower(self.text[name.start : name.end]): name for name in reversed(proper_nouns(self.text))}
        postings: dict[str, list[int]] = {}
        sizes: list[int] = []
        for place, text in enumerate(names):
            grams = name_grams(text)
            sizes.append(len(grams))
            for gram in grams:
                postings.setdefault(gram, []).append(place)
        return list(names.values()), sizes, postings

    def like(self, lowered_name: str, form: str) -> Name | None:
        """The name of the source that shares the most of its writing, where that is at least half.

        A person's name is too short for that: there the one with the same family name counts.
        """
        names, sizes, postings = self._grams
        if form == "person":
            family = (place for place in postings.get(lowered_name[0], ()) if names[place].form == form)
            return next((names[place] for place in family if self.text[names[place].start] == lowered_name[0]), None)
        grams = name_grams(lowered_name)
        shared: Counter[int] = Counter()
        for gram in grams:
            shared.update(postings.get(gram, ())[:_MOST_LIKE])
        best = max(shared, key=lambda place: (2 * shared[place] / (len(grams) + sizes[place]), -place), default=None)
        if best is None or 2 * shared[best] < 0.5 * (len(grams) + sizes[best]):
            return None
        return names[best]


def digit_keys(value: Decimal) -> tuple[str, ...]:
    """Keys under which a number meets its shifted copies (two digits or more) and transposed ones (three)."""
    digits = "".join(map(str, value.normalize(EXACT).as_tuple().digits))
    if len(digits) < 3:
        return (digits,) if len(digits) == 2 else ()
    return digits, f"{value.adjusted()}:{''.join(sorted(digits))}"


def name_grams(lowered_name: str) -> set[str]:
    """Pairs of neighbouring characters, and for Chinese, whose names are short, the characters as well."""
    padded = lowered_name if not lowered_name.isascii() else f" {lowered_name} "
    grams = {padded[at : at + 2] for at in range(len(padded) - 1)}
    return grams | {char for char in lowered_name if not char.isascii()}


def _joins(text: str, at: int, char: str) -> bool:
    """Whether the character at `at` and its neighbour `char` are of one Latin word or number."""
    if not 0 <= at < len(text) or not (char.isascii() and char.isalnum()):
        return False
    other = text[at]
    return other.isascii() and other.isalnum() and (char.isdigit() == other.isdigit() or other.isalpha())


def _bare_year(text: str, moment: Moment) -> bool:
    return moment.end - moment.start == 4 and text[moment.start : moment.end].isdigit()
