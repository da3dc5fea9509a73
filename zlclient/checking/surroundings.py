"""What the words right beside a number say of it: a rise or a fall, a bound, a rounding."""

from __future__ import annotations

import re
from functools import cache

from . import lexicon
from .numbers import Quantity
from .text import alternatives


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    words = lexicon.words()
    small = alternatives(("by", "of", "about", "nearly", "over", "some", "around", "a", "an"))
    between = rf"(?:[ ]|了|约|近|超过?|逾|至少|幅度为|{small})*+"
    after = r"[ ]?(?:year-on-year |sequential |annual )?"
    return {
        "falls": re.compile(rf"{alternatives(words.falls)}{between}\Z", re.I),
        "rises": re.compile(rf"{alternatives(words.rises)}{between}\Z", re.I),
        "falls_after": re.compile(after + alternatives(words.falls_after), re.I),
        "rises_after": re.compile(after + alternatives(words.rises_after), re.I),
        "about": re.compile(alternatives(words.about) + r"[ ]?\Z", re.I),
        "over": re.compile(alternatives(words.over) + r"[ ]?\Z", re.I),
        "under": re.compile(alternatives(words.under) + r"[ ]?\Z", re.I),
    }


def direction(folded: str, quantity: Quantity) -> int:
    """1 for a rise, -1 for a fall, 0 where neither the sign nor the words right beside the number say."""
    if quantity.sign:
        return -1 if quantity.sign == "-" else 1
    patterns = _patterns()
    before = folded[max(0, quantity.start - 24) : quantity.start]
    behind = folded[quantity.end : quantity.end + 32]
    for name, way in (("falls", -1), ("rises", 1)):
        if patterns[name].search(before) or patterns[name + "_after"].match(behind):
            return way
    return 0


def bound(folded: str, quantity: Quantity) -> str:
    """`about`, `over` or `under` where a word beside the number says that it is no exact one; else empty."""
    patterns = _patterns()
    before = folded[max(0, quantity.start - 16) : quantity.start]
    inside = folded[quantity.start : quantity.end]
    if "余" in inside or "多" in inside or "+" in inside[1:] or folded.startswith(("以上", "余", "多"), quantity.end):
        return "over"
    if folded.startswith("左右", quantity.end):
        return "about"
    return next((name for name in ("over", "under", "about") if patterns[name].search(before)), "")
