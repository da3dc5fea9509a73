"""The dates and times of a text, by value: 2024年3月5日, 2024-03-05, March 5, 2024 are one day."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from . import lexicon
from .numerals import DIGIT, parse
from .text import alternatives


class Moment(NamedTuple):
    """A date or a time of day, of which any part may be unsaid.

    `part` is a quarter, half or decade (Q1, H2, 1990s); `clock` a time as HH:MM or HH:MM:SS. `swapped` tells that it
    can be read in another way: day and month of 3/5/2024 the other way round, 2:30 as 14:30. `year_above` is the year
    of the date before it in the text, which a date without a year most likely continues.
    """

    start: int
    end: int
    year: int | None = None
    month: int | None = None
    day: int | None = None
    part: str = ""
    clock: str = ""
    swapped: bool = False
    year_above: int | None = None

    @property
    def canonical(self) -> str:
        """2024-03-05, 2024-03, 2024, --03-05, --03, 2024-Q1, Q1, 1990s or 14:30."""
        return self.clock or _canonical(self.year, self.month, self.day, self.part)

    def readings(self) -> set[str]:
        """What this date may say when it is ambiguous: 3/5/2024 in either order, 2:30 before or after noon."""
        found = {self.canonical}
        if self.swapped and self.clock:
            found.add(f"{int(self.clock[:2]) + 12}{self.clock[2:]}")
        elif self.swapped:
            found.add(_canonical(self.year, self.day, self.month, self.part))
        return found

    def near_keys(self) -> list[str]:
        """Dates that differ from this one in a single part: another year, another day, another quarter."""
        if self.clock or not self.year:
            return []
        if self.part:
            return [self.part] if self.part[-1] != "s" else []
        if self.month and self.day:
            return [_canonical(None, self.month, self.day, ""), _canonical(self.year, self.month, None, "")]
        return [_canonical(None, self.month, None, "")] if self.month else []

    def answers_for(self) -> set[str]:
        """Every date that this one answers for: itself, and each less exact one."""
        if self.clock:
            return {reading[:size] for reading in self.readings() for size in (5, 8)}
        found: set[str] = set()
        days = [(self.month, self.day)] + ([(self.day, self.month)] if self.swapped else [])
        for year in {self.year, self.year or self.year_above, None}:
            for month, day in days:
                found |= {_canonical(year, month, day, self.part), _canonical(year, month, None, "")}
            found.add(_canonical(year, None, None, ""))
        return found - {""}


def _canonical(year: int | None, month: int | None, day: int | None, part: str) -> str:
    if part:
        return f"{year:04d}-{part}" if year and part[-1] != "s" else part
    if month:
        ahead = f"{year:04d}-" if year else "--"
        return f"{ahead}{month:02d}" + (f"-{day:02d}" if day else "")
    return f"{year:04d}" if year else ""


_MONTH_NAMES = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTHS = {name[:size]: number for number, name in enumerate(_MONTH_NAMES, 1) for size in (3, 4, len(name))}
_LONG_NAMES = "|".join(name[:3] + f"(?:{name[3:]})?" for name in _MONTH_NAMES if name != "may")
_MONTH = rf"(?:(?i:{_LONG_NAMES}|may|sept)(?![A-Za-z])\.?)"
_DAY_EN = r"[0-3]?[0-9](?:st|nd|rd|th)?(?![0-9A-Za-z])"
_YEAR_EN = r"[12][0-9]{3}(?![0-9]|[.,][0-9])"
_TWO = rf"(?:[0-9]{{1,2}}|[{DIGIT}十]{{1,3}})"
_YEAR_CN = rf"(?:[12][0-9]{{3}}|[{DIGIT}]{{4}}|[一二两]千[{DIGIT}百十]{{1,6}})"
_S = "[ ]?"

_PATTERNS_DIGIT = tuple(
    map(
        re.compile,
        (
            rf"(?P<year>{_YEAR_CN}){_S}年{_S}(?:第?{_S}(?P<quarter>[一二三四1-4])季度?|(?P<q>Q[1-4]|H[12])(?![A-Za-z0-9])|(?P<half>[上下])半年)",
            r"(?P<year>[12][0-9]{3})[ ]?(?P<half>[上下])半年",
            rf"(?P<year>{_YEAR_CN}){_S}(?:财年|年)(?:代(?P<decade>)|度?)(?:{_S}(?P<month>{_TWO}){_S}月(?:份|(?:{_S}(?P<day>{_TWO}){_S}[日号])?))?",
            rf"(?P<short>[0-9]{{2}})年(?P<month>{_TWO})月(?:(?P<day>{_TWO})[日号])?",
            rf"(?P<month>{_TWO}){_S}月(?:份|{_S}(?P<day>{_TWO}){_S}[日号])?(?![内份])",
            r"20世纪(?P<nineteen>[1-9]0)年代",
            r"第?(?P<quarter>[一二三四1-4])季度",
            r"(?P<year>[12][0-9]{3})(?P<dash>[-/.])(?P<month>[0-9]{1,2})(?P=dash)(?P<day>[0-9]{1,2})(?![0-9]|[-/.][0-9])",
            r"(?P<year>[12][0-9]{3})[-/ ]?(?P<q>Q[1-4]|H[12])(?![A-Za-z0-9])",
            r"(?P<year>[12][0-9]{3})(?:[-/](?P<month>0[1-9]|1[0-2])|/(?P<only>[1-9]))(?![0-9]|[-/.][0-9])",
            r"(?P<a>[0-9]{1,2})/(?P<b>[0-9]{1,2})/(?P<year>[12][0-9]{3})(?![0-9]|/[0-9])",
            rf"(?P<day>{_DAY_EN})[ ](?:of[ ])?(?P<name>{_MONTH})(?:,?[ ](?P<year>{_YEAR_EN}))?",
            r"(?P<hour>[01]?[0-9]|2[0-4]):(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9]))?(?![0-9:])"
            r"(?:[ ]?(?P<noon>(?i:[ap]\.?m\b\.?)))?",
            r"(?P<hour>1[0-2]|[1-9])[ ]?(?P<noon>(?i:[ap]\.?m\b\.?))",
            rf"(?P<hour>{_TWO})(?:时|点)(?:(?P<minute>{_TWO})分|(?P<thirty>半)|整)",
            r"(?P<year>[12][0-9]{3})s(?P<decade>)(?![A-Za-z0-9])",
        ),
    )
)
_PATTERNS_LETTER = tuple(
    map(
        re.compile,
        (
            rf"(?P<name>{_MONTH})[ ](?P<day>{_DAY_EN})(?:,?[ ](?P<year>{_YEAR_EN}))?",
            rf"(?P<name>{_MONTH}),?[ ](?:of[ ])?(?P<year>{_YEAR_EN})",
            r"(?P<q>Q[1-4]|H[12])"
            r"(?:[ ,]{0,2}(?:of[ ])?(?:FY[ ]?)?(?P<year>[12][0-9]{3})(?![0-9A-Za-z]))?(?![0-9A-Za-z])",
            r"FY[ ]?(?P<year>[12][0-9]{3})(?![0-9A-Za-z])",
            r"(?P<word>(?i:first|second|third|fourth))[- ](?i:quarter)"
            r"(?:,?[ ](?:of[ ])?(?P<year>[12][0-9]{3})(?![0-9A-Za-z]))?",
        ),
    )
)
_PATTERNS_HALF = (re.compile(r"(?P<half>[上下])半年"),)
_YEAR_BARE = re.compile(r"(?:19|20)[0-9]{2}(?![0-9A-Za-z%‰]|[.,:/][0-9]|-[0-9])")
# What can begin a date: cheap to search for, and it keeps every pattern anchored.
_TRIGGER = re.compile(
    rf"[0-9{DIGIT}十]|第(?=[一二三四1-4]季)|[上下](?=半年)|(?<![A-Za-z0-9])(?:Q(?=[1-4])|H(?=[12])|FY(?=[ ]?[12])"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)(?=[a-z.]*,?[ ][0-9o])"
    r"|(?:[Ff]irst|[Ss]econd|[Tt]hird|[Ff]ourth)(?=[- ][qQ]))"
)
# What must follow the first digits for any of the patterns to match; most numbers are done with here.
_LEAD = re.compile(
    rf"[0-9{DIGIT}十千百]{{1,8}}"
    r"(?:[ ]?[-年月季时点财上/.:QHsaApPJFMSOND世]|(?:st|nd|rd|th)?[ ](?:of[ ])?[JFMASONDjfmasond])"
)
_DIGIT_RUN = re.compile(rf"[0-9]++|[{DIGIT}十]++")
_AFTERNOON = re.compile(r"(?:下午|晚上|傍晚|夜里)[ ]?\Z")
_WORDS = {"first": 1, "second": 2, "third": 3, "fourth": 4}


def moments(folded: str) -> list[Moment]:
    """Every date and time of a folded text, in order, in time linear in its length."""
    found: list[Moment] = []
    year_above: int | None = None
    position = 0
    while trigger := _TRIGGER.search(folded, position):
        start = trigger.start()
        moment = _at(folded, start)
        if moment is None:
            run = _DIGIT_RUN.match(folded, start)
            position = run.end() if run else trigger.end()
            continue
        moment = moment._replace(year_above=year_above)
        year_above = moment.year or year_above
        found.append(moment)
        position = moment.end
    # The heading of a report often gives the year after its first quarter or day.
    first_year = next((moment.year for moment in found if moment.year), None)
    return [moment if moment.year_above else moment._replace(year_above=first_year) for moment in found]


def _at(folded: str, start: int) -> Moment | None:
    char = folded[start]
    if char in "上下":
        patterns = _PATTERNS_HALF
    elif char.isascii() and char.isalpha():
        patterns = _PATTERNS_LETTER
    else:
        if char.isascii() and not _may_start(folded, start):
            return None
        patterns = _PATTERNS_DIGIT if char == "第" or _LEAD.match(folded, start) else ()
    for pattern in patterns:
        if (match := pattern.match(folded, start)) and (moment := _build(folded, match)):
            return moment
    if (match := _YEAR_BARE.match(folded, start)) and _is_year(folded, start, match.end()):
        return Moment(start, match.end(), year=int(match[0]))
    return None


def _may_start(folded: str, start: int) -> bool:
    """Not inside a word, a longer number, or a version."""
    before = folded[start - 1 : start]
    if not before.isascii() or not before:
        return True
    if before.isalnum() or before == "_":
        return False
    return not (before in ".,:/" and folded[start - 2 : start - 1].isdigit())


def _build(folded: str, match: re.Match[str]) -> Moment | None:
    parts = {key: value for key, value in match.groupdict().items() if value is not None}
    start, end = match.span()
    if "hour" in parts:
        return _clock(folded, start, end, parts)
    year = _number(parts["year"]) if "year" in parts else None
    if "short" in parts:
        year = 2000 + int(parts["short"])
    if "nineteen" in parts:
        return Moment(start, end, part=f"19{parts['nineteen']}s")
    if "decade" in parts:
        return Moment(start, end, part=f"{year}s") if year and year % 10 == 0 else None
    part = _part(parts)
    if part:
        return Moment(start, end, year=year, part=part)
    if "a" in parts:
        month, day = int(parts["a"]), int(parts["b"])
        swapped = month <= 12 and day <= 12 and month != day
        month, day = (month, day) if month <= 12 else (day, month)
    else:
        swapped = False
        month = (
            _MONTHS[parts["name"].rstrip(".").lower()]
            if "name" in parts
            else _number(parts.get("month") or parts.get("only", ""))
        )
        day = _number(parts.get("day", "").rstrip("stndrh"))
    if ("month" in parts or "only" in parts or "name" in parts or "a" in parts) and not (month and 1 <= month <= 12):
        return None
    if ("day" in parts or "a" in parts) and not (day and 1 <= day <= 31):
        return None
    if "year" in parts and not (year and 1000 <= year <= 2999):
        return None
    return Moment(start, end, year, month, day, swapped=swapped) if year or month else None


def _part(parts: dict[str, str]) -> str:
    if "quarter" in parts:
        return f"Q{_number(parts['quarter'])}"
    if "word" in parts:
        return f"Q{_WORDS[parts['word'].lower()]}"
    if "half" in parts:
        return "H1" if parts["half"] == "上" else "H2"
    return parts.get("q", "")


def _clock(folded: str, start: int, end: int, parts: dict[str, str]) -> Moment | None:
    hour = _number(parts["hour"])
    minute = 30 if "thirty" in parts else _number(parts.get("minute", "")) or 0
    if hour is None or hour > 24 or minute > 59:
        return None
    noon = parts.get("noon", "").lower()
    if hour < 12 and (noon.startswith("p") or _AFTERNOON.search(folded, max(0, start - 3), start)):
        hour += 12
    elif hour == 12 and noon.startswith("a"):
        hour = 0
    second = f":{int(parts['second']):02d}" if "second" in parts else ""
    unsaid = 0 < hour < 12 and not noon and len(parts["hour"]) == 1
    return Moment(start, end, clock=f"{hour:02d}:{minute:02d}{second}", swapped=unsaid)


def _number(run: str) -> int | None:
    if run.isascii():
        return int(run) if run.isdigit() else None
    numeral = parse(run)
    if numeral is None or numeral.value != numeral.value.to_integral_value():
        return None
    return int(numeral.value)


@cache
def _before_year() -> re.Pattern[str]:
    return re.compile(alternatives(lexicon.words().before_year) + r"[ ]\Z", re.I)


def _is_year(folded: str, start: int, end: int) -> bool:
    """Whether a bare 2024 is a year: after a word that says so, and with no unit behind it."""
    if not _may_start(folded, start) or lexicon.units().find(folded, end + (folded[end : end + 1] == " ")):
        return False
    return _before_year().search(folded, max(0, start - 9), start) is not None
