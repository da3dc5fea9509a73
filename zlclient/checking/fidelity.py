"""Numbers, dates and proper nouns of an answer against the text it was drawn from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Literal

from .claims import is_claim, no_claims
from .dates import Moment, moments
from .index import SourceIndex
from .labels import label_after, label_before
from .matching import comparable, is_misrounding, is_rounding, same_amount, search_width
from .names import Name, proper_nouns
from .numbers import Quantity, english_quantities, quantities
from .numerals import EXACT
from .surroundings import bound, direction
from .text import fold, lower, share_of_cjk

Kind = Literal["number", "date", "name"]
Verdict = Literal["present", "absent", "altered"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One number, date or name of an answer; `answer[start:end] == text`.

    `value` is its plain form: 35000000, -3.2, 2024-03-05, 2024-Q1, --03-05, 14:30, or a name in lower case. `unit` is
    recorded for numbers (%, pp, km, CNY). `source_start` and `source_end` give the matching place of the source, or of
    the fact it is a distorted copy of; `nearest` is that place's text where the verdict is "altered". `rounded` tells
    that the source has a more exact number, of which this is the rounding.
    """

    kind: Kind
    text: str
    value: str
    start: int
    end: int
    verdict: Verdict
    unit: str | None = None
    rounded: bool = False
    source_start: int | None = None
    source_end: int | None = None
    nearest: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """A dict that json can write."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class FidelityReport:
    """All facts of an answer in order. `names_compared` is False where answer and source differ in script.

    Then a name has another spelling (特斯拉, Tesla), and only numbers, dates and names that carry digits are compared.
    """

    facts: tuple[Fact, ...]
    names_compared: bool = True

    def count(self, verdict: Verdict, kind: Kind | None = None) -> int:
        """How many facts have `verdict`, of one kind or of all."""
        return sum(fact.verdict == verdict and kind in (None, fact.kind) for fact in self.facts)

    @property
    def present(self) -> int:
        """How many facts the source has, rounded ones included."""
        return self.count("present")

    @property
    def absent(self) -> int:
        """How many facts have nothing like them in the source."""
        return self.count("absent")

    @property
    def altered(self) -> int:
        """How many facts are a distorted copy of one in the source."""
        return self.count("altered")

    @property
    def ok(self) -> bool:
        """Whether the source has every fact."""
        return all(fact.verdict == "present" for fact in self.facts)

    def as_dict(self) -> dict[str, Any]:
        """A dict that json can write, counts included."""
        return {
            "ok": self.ok,
            "present": self.present,
            "absent": self.absent,
            "altered": self.altered,
            "names_compared": self.names_compared,
            "facts": [fact.as_dict() for fact in self.facts],
        }


def check_fidelity(answer: str, source: str | SourceIndex) -> FidelityReport:
    """Compare every number, date and proper noun of `answer` with `source`, by value. Never raises on any text.

    - present: the source has it, in whatever script, format or unit (3500万 = 三千五百万 = 35 million; 5 km = 5,000 m);
      a partial date is present in a fuller one; a number rounded at its own last place is present and `rounded`.
    - altered: the source has the same label, digits, or the rest of the date with another value; or the same value with
      another unit (8.5% and 8.5 percentage points), sign or direction (a rise for a fall).
    - absent: nothing like it. That includes sums, differences and percentages derived from the source: none is
      computed.

    Amounts are never converted between currencies. Pass a `SourceIndex` to check many answers against one source.
    """
    index = source if isinstance(source, SourceIndex) else SourceIndex(source)
    folded = fold(answer)
    answer_share, source_share = share_of_cjk(folded), index.cjk_share
    crossed = answer_share is not None and source_share is not None and abs(answer_share - source_share) > _OTHER_SCRIPT
    checker = _Checker(answer, folded, index)
    facts = sorted(checker.facts(names_crossed=crossed), key=lambda fact: fact.start)
    return FidelityReport(tuple(facts), names_compared=not crossed)


_OTHER_SCRIPT = 0.6


class _Checker:
    """One answer against one index."""

    def __init__(self, answer: str, folded: str, index: SourceIndex) -> None:
        self.answer, self.folded, self.index = answer, folded, index
        self.lowered = lower(folded)

    def facts(self, *, names_crossed: bool) -> Iterator[Fact]:
        mask = no_claims(self.folded)
        for moment in moments(self.folded):
            if not mask[moment.start]:
                yield self.date(moment)
            _set(mask, moment)
        for name in proper_nouns(self.folded):
            if mask[name.start] or mask[name.end - 1]:
                continue
            text = self.folded[name.start : name.end]
            has_digit = any(char.isdigit() for char in text)
            if not names_crossed or has_digit:
                yield self.name(name)
            if has_digit and name.form == "latin":
                _set(mask, name)
        written = [*quantities(self.folded, mask), *english_quantities(self.lowered)]
        for quantity in written:
            if is_claim(self.folded, quantity, mask):
                yield self.number(quantity)

    def fact(self, kind: Kind, span: Moment | Quantity | Name, value: str, found: _Found) -> Fact:
        unit = span.unit.name if isinstance(span, Quantity) and span.unit else None
        nearest = self.index.text[found.start : found.end] if found.verdict == "altered" else None
        place = (found.start, found.end) if found.verdict != "absent" else (None, None)
        text = self.answer[span.start : span.end]
        return Fact(kind, text, value, span.start, span.end, found.verdict, unit, found.rounded, *place, nearest)

    # Numbers

    def number(self, quantity: Quantity) -> Fact:
        return self.fact("number", quantity, quantity.canonical, self._find_number(quantity))

    def _find_number(self, ours: Quantity) -> _Found:
        index = self.index
        if ours.code:
            theirs = index.code(ours.code)
            return _present(theirs) if theirs else self._verbatim(ours) or _ABSENT
        conflicting: Quantity | None = None
        for theirs in index.with_value(ours.value, ours.base):
            if same_amount(ours, theirs) and self._same_way(ours, theirs):
                return _present(theirs)
            conflicting = conflicting or theirs
        if other := self._elsewhere(ours):
            return other
        if rounded := self._find_rounding(ours):
            return _Found("present", rounded.start, rounded.end, rounded=True)
        if conflicting is not None and (_telling(ours) or self._shares_label(ours, conflicting)):
            return _altered(conflicting)
        return self._distorted_number(ours) or _ABSENT

    def _elsewhere(self, ours: Quantity) -> _Found | None:
        """The value as an English word, a day or year of a date, or a bare number under a table's declared scale."""
        for theirs in self.index.spelled(ours.value):
            if same_amount(ours, theirs) and self._same_way(ours, theirs):
                return _present(theirs)
        if ours.value == ours.value.to_integral_value() and ours.value < _YEARS_END:
            number = int(ours.value)
            word = self.folded[ours.end - 1]
            key = f"---{number:02d}" if word in "日号" and ours.unit else f"{number:04d}" if ours.unit is None else ""
            if key and (moment := self.index.date(key)):
                return _present(moment)
        for scale in self.index.scales if ours.value else ():
            for theirs in self.index.with_value(EXACT.divide(ours.value, scale)):
                if theirs.unit is None and self._same_way(ours, theirs):
                    return _present(theirs)
        return self._verbatim(ours) if self.folded[ours.start].isalpha() else None

    def _verbatim(self, ours: Quantity) -> _Found | None:
        at = self.index.name(self.lowered[ours.start : ours.end])
        return _Found("present", *at) if at else None

    def _same_way(self, ours: Quantity, theirs: Quantity) -> bool:
        """No sign against none, and no rise against a fall. (1,234) may be an accountant's minus."""
        minus = (ours.sign == "-", theirs.sign == "-")
        ways = direction(self.folded, ours), direction(self.index.text, theirs)
        if ways[0] * ways[1] < 0:
            return False
        if any(minus) and ways[0] != ways[1]:
            text = self.index.text
            return (
                minus[0] and text[theirs.start - 1 : theirs.start] == "(" and text[theirs.end : theirs.end + 1] == ")"
            )
        return True

    def _find_rounding(self, ours: Quantity) -> Quantity | None:
        hedge = bound(self.folded, ours)
        width = search_width(ours, hedge)
        factor = ours.unit.factor if ours.unit else Decimal(1)
        for value, reach in dict.fromkeys(((ours.value, width), (ours.base, EXACT.multiply(width, factor)))):
            for theirs in self.index.near(value, reach):
                if is_rounding(ours, theirs, hedge) and self._same_way(ours, theirs):
                    return theirs
        return None

    def _shares_label(self, ours: Quantity, theirs: Quantity) -> bool:
        label = label_before(self.lowered, ours.start)
        return bool(label) and label_before(self.index.lowered, theirs.start)[-2:] == label[-2:]

    def _distorted_number(self, ours: Quantity) -> _Found | None:
        for theirs in self._labelled(ours, "number"):
            if isinstance(theirs, Quantity) and not theirs.code and any(True for _ in comparable(ours, theirs)):
                return _altered(theirs)
        shifted = self.index.with_digits(ours.value)
        if shifted and _alike(ours, shifted):
            return _altered(shifted)
        # Cut off instead of rounded (56.6% from 56.68%), or rounded wrongly: one step away.
        near = (theirs for theirs in self.index.near(ours.value, ours.step) if is_misrounding(ours, theirs))
        return next(map(_altered, near), None)

    def _labelled(self, span: Quantity | Moment, kind: str) -> Iterator[Quantity | Moment]:
        """Facts of the source beside the words that stand beside this one, longest label first."""
        for label in label_before(self.lowered, span.start).shorter():
            yield from self.index.after_label(label, kind)
        for label in label_after(self.lowered, span.end).shorter():
            yield from self.index.before_label(label, kind)

    # Dates

    def date(self, moment: Moment) -> Fact:
        return self.fact("date", moment, moment.canonical, self._find_date(moment))

    def _find_date(self, ours: Moment) -> _Found:
        if theirs := self.index.date(*ours.readings()):
            return _present(theirs)
        if ours.year and not (ours.month or ours.part):
            for number in self.index.with_value(Decimal(ours.year)):
                return _present(number)
        for key in ours.near_keys():
            if theirs := self.index.date(key):
                return _altered(theirs)
        for theirs in self._labelled(ours, "date"):
            if isinstance(theirs, Moment) and bool(theirs.clock) == bool(ours.clock):
                return _altered(theirs)
        return _ABSENT

    # Names

    def name(self, name: Name) -> Fact:
        """Chinese and sentence-initial names may carry words at their left that are not theirs; those are cut off."""
        for lost in range(name.may_lose + 1) if name.form != "latin" else sorted({0, name.may_lose}):
            start = name.start + lost
            if at := self.index.name(self.lowered[start : name.end]):
                name = name._replace(start=start)
                return self.fact("name", name, self.lowered[start : name.end], _Found("present", *at))
        like = self.index.like(self.lowered[name.start : name.end], name.form)
        return self.fact("name", name, self.lowered[name.start : name.end], _altered(like) if like else _ABSENT)


@dataclass(frozen=True, slots=True)
class _Found:
    verdict: Verdict
    start: int = 0
    end: int = 0
    rounded: bool = False


_ABSENT = _Found("absent")
_YEARS_END = 3000


def _telling(quantity: Quantity) -> bool:
    """Two significant digits; one with another unit is most likely a coincidence."""
    return len(quantity.value.normalize(EXACT).as_tuple().digits) > 1


def _alike(ours: Quantity, shifted: Quantity) -> bool:
    """Two digits are too few to recognise a number by, unless its unit is the same."""
    if not any(True for _ in comparable(ours, shifted)):
        return False
    same_unit = ours.unit is not None and shifted.unit is not None and ours.unit.dimension != "count"
    return same_unit or len(ours.value.normalize(EXACT).as_tuple().digits) > 2


def _present(span: Quantity | Moment) -> _Found:
    return _Found("present", span.start, span.end)


def _altered(span: Quantity | Moment | Name) -> _Found:
    return _Found("altered", span.start, span.end)


def _set(mask: bytearray, span: Quantity | Moment | Name) -> None:
    mask[span.start : span.end] = b"\x01" * (span.end - span.start)
