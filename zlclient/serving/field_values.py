"""Values as texts state them, in Chinese and English, turned into what a schema wants.

number_in("3.2亿元")  # 320000000.0
date_in("1 March 2024")  # "2024-03-01"
"""

from __future__ import annotations

import re
from datetime import date

_NUMBER = re.compile(
    r"(?P<sign>[-−－])?\s?(?:[$¥€£]\s?)?(?P<digits>\d[\d,]*(?:\.\d+)?)\s?"
    r"(?P<scale>万亿|亿|千万|百万|万|千|thousand\b|million\b|billion\b|trillion\b|bn\b)?",
    re.IGNORECASE,
)
_SCALES = {
    "千": 10**3, "万": 10**4, "百万": 10**6, "千万": 10**7, "亿": 10**8, "万亿": 10**12,
    "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "bn": 10**9,
}  # fmt: skip
_DIGITS = {char: at for at, char in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2}
_UNITS = {"十": 10, "百": 100, "千": 1000}
_WRITTEN = re.compile(r"[〇零一二两三四五六七八九十百千]+(?P<scale>万亿|亿|万)?")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<month>(?:" + "|".join(_MONTHS) + r")[a-z]*)\.?"
_DATES = (
    re.compile(r"(?P<year>\d{4})\s?[年/.-]\s?(?P<number>\d{1,2})\s?[月/.-]\s?(?P<day>\d{1,2})"),
    re.compile(rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+{_MONTH},?\s+(?P<year>\d{{4}})", re.IGNORECASE),
    re.compile(rf"{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year>\d{{4}})", re.IGNORECASE),
)


def spoken(name: str) -> str:
    """A property's name as words: net_income and netIncome are net income."""
    return re.sub(r"[_\W]+", " ", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)).strip()


def number_in(text: str) -> float | None:
    """The first number of `text` with its scale (万, million); None where there is none."""
    match = _NUMBER.search(text)
    if match is None:
        return _written(text)
    digits = match["digits"].replace(",", "")
    value = (float(digits) if "." in digits else int(digits)) * _SCALES.get((match["scale"] or "").lower(), 1)
    value = round(value, 6)  # 3.2 times 10^8 is no 320000000.00000006
    return -value if match["sign"] else value


def date_in(text: str) -> str | None:
    """The first whole date of `text` in ISO 8601; None where there is none."""
    for pattern in _DATES:
        match = pattern.search(text)
        if match is None:
            continue
        parts = match.groupdict()
        month = int(parts["number"]) if parts.get("number") else _MONTHS.index(parts["month"][:3].lower()) + 1
        try:
            return date(int(parts["year"]), month, int(parts["day"])).isoformat()
        except ValueError:
            continue
    return None


def _written(text: str) -> float | None:
    """The first number in Chinese characters: 二十七, 八千, 一千八百九十二, and years such as 二〇二四."""
    match = _WRITTEN.search(text)
    if match is None:
        return None
    words = match[0].removesuffix(match["scale"] or "")
    if not any(word in _UNITS for word in words):
        value = int("".join(str(_DIGITS[word]) for word in words))
    else:
        value = digit = 0
        for word in words:
            if word in _UNITS:
                value, digit = value + (digit or int(word == "十")) * _UNITS[word], 0
            else:
                digit = _DIGITS[word]
        value += digit
    return value * _SCALES.get(match["scale"] or "", 1)
