"""The numbers of a text, by value: 3500万元, 35,000,000 yuan and 三千五百万元 are one amount."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

from . import lexicon
from .lexicon import Unit
from .numerals import CHINESE, DIGIT, ENGLISH_RUN, EXACT, MIXED, MOST_DIGITS, parse, parse_english


class Quantity(NamedTuple):
    """A number with its sign and unit. `value` is absolute and in the unit as written; `step` is its last place.

    A `code` (telephone, version, identifier) has no value and is compared as a string without its separators.
    """

    start: int
    end: int
    value: Decimal
    step: Decimal
    unit: Unit | None = None
    sign: str = ""
    code: str | None = None

    @property
    def base(self) -> Decimal:
        """The value in the base of its unit's dimension, so that 5 km equals 5,000 m and 12.5% equals 0.125."""
        return EXACT.multiply(self.value, self.unit.factor) if self.unit else self.value

    @property
    def canonical(self) -> str:
        """The value as a plain decimal with its sign, or the code."""
        return self.code or ("-" if self.sign == "-" else "") + plain(self.value)


def plain(value: Decimal) -> str:
    """A decimal without exponent, trailing zeros or thousands separators."""
    return format(value.normalize(EXACT), "f")


_TRIGGER = re.compile(f"[0-9{DIGIT}十拾百千万]")
_NUMERAL = rf"(?:{MIXED}|{CHINESE})"
_TOKEN = re.compile(
    rf"(?P<per>[百千万]分之)(?P<share>百(?!分)|{_NUMERAL})"
    r"|(?P<code>[0-9]++(?:(?:-[0-9]++){2,}+|(?:\.[0-9]++){2,}+)|0[0-9]{2,3}-[0-9]{7,8}(?![0-9])"
    r"|(?<=\+)[0-9]{1,3}(?:[- ][0-9]{2,11}){1,4}(?![0-9])|1[3-9][0-9](?:[0-9]{8}|[ ][0-9]{4}[ ][0-9]{4})(?![0-9.,]))"
    rf"|(?P<number>{MIXED}|{CHINESE})(?:分之(?P<of>{_NUMERAL})|/(?P<over>[1-9][0-9]{{0,3}})(?![0-9/]))?"
)
_SCALES = {
    "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12, "mn": 10**6, "mln": 10**6, "bn": 10**9, "tn": 10**12,
    "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
}  # fmt: skip
_SCALE = re.compile(r"(?:[ -]?(?i:thousand|million|billion|trillion|mn|mln|bn|tn)|[kKMBmbtT])(?![A-Za-z0-9])")
_SCALE_STARTS = frozenset(" -kKmMbBtT")
# 5m may be metres, and 20b or 3T a name; with a currency in front they are millions, billions and trillions.
_ONLY_MONEY = frozenset("mbtT")
_RANGE = re.compile(r"[ ]?(?:[-~–—至到]|to)[ ]?\Z")
_PER = {"百": Decimal(100), "千": Decimal(1000), "万": Decimal(10000)}
_ONE = Decimal(1)


def quantities(folded: str, taken: bytes | bytearray = b"") -> list[Quantity]:
    """Every number of a folded text, in order, but for those that begin where `taken` is set (inside a date).

    Linear in the length of the text. Vague numbers (数十, 十几, 七八) and digits that are part of a word (GPT-4, 5G)
    are left out.
    """
    found: list[Quantity] = []
    scale_before = 1
    position = 0
    while trigger := _TRIGGER.search(folded, position):
        start = trigger.start()
        token = _TOKEN.match(folded, start)
        if token is None:
            position = start + 1
            continue
        position = token.end()
        if (taken and taken[start]) or _inside_word(folded, start):
            continue
        previous_end = found[-1].end if found else -1
        quantity, scale = _read(folded, token, previous_end)
        if quantity is None:
            continue
        _share_unit_of_range(folded, found, quantity, scale_before, scale)
        found.append(quantity)
        scale_before, position = scale, quantity.end
    return found


def _inside_word(folded: str, start: int) -> bool:
    before = folded[start - 1 : start]
    if not before.isascii():
        # 数十, 几百 and 上千 are no numbers; 十 after 第 or any other character is.
        return before in "数几" and folded[start] in "十拾百千万"
    if before.isalpha() or before == "_":
        # A currency such as RMB or US may touch its amount.
        return not _has_sign_before(folded, start)
    return (
        before in ("-", ".", "/")
        and folded[start - 2 : start - 1].isascii()
        and folded[start - 2 : start - 1].isalpha()
    )


def _has_sign_before(folded: str, start: int) -> bool:
    return lexicon.units().sign_pattern.search(folded, max(0, start - 4), start) is not None


def _read(folded: str, token: re.Match[str], previous_end: int) -> tuple[Quantity | None, int]:
    """The quantity of one token and the scale it was written with (万, million), which a range passes on."""
    start, end = token.span()
    kind = token.lastgroup
    if kind == "code" and not _is_amount(folded, token):
        return Quantity(start, end, _ONE, _ONE, code=re.sub(r"[- ]", "", token["code"])), 1
    begin, currency = _currency_before(folded, start)
    begin, sign = _sign_before(folded, begin, previous_end)
    if kind == "share":
        return _percentage(begin, token, sign), 1
    run = token["number"] or token["code"]
    if _is_code(run):
        return Quantity(start, end, _ONE, _ONE, code=run), 1
    if kind in ("of", "over"):
        if fraction := _fraction(begin, end, sign, run, token):
            return fraction, 1
        end = token.end("number")  # a blood pressure of 160/95 is two numbers
    return _amount(folded, begin, end, run, sign, currency)


def _amount(
    folded: str, begin: int, end: int, run: str, sign: str, currency: Unit | None
) -> tuple[Quantity | None, int]:
    numeral = parse(run)
    if numeral is None or folded[end : end + 1] == "几":
        return None, 1
    value, step = numeral
    arabic = run.isascii()
    end, scale = _scale_after(folded, end, currency) if arabic else (end, 1)
    end, unit = unit_after(folded, end, currency)
    if unit is None and folded[end : end + 1].isascii() and folded[end : end + 1].isalpha():
        return None, 1  # 5G, 3D, 110105X
    if scale != 1:
        value, step = EXACT.multiply(value, scale), EXACT.multiply(step, scale)
    return Quantity(begin, end, value, step, unit, sign), scale if arabic else _trailing_scale(run)


def _percentage(begin: int, token: re.Match[str], sign: str) -> Quantity | None:
    """百分之五, 千分之三 and 百分之百, all in per cent."""
    numeral = parse(token["share"] if token["share"] != "百" else "一百")
    if numeral is None:
        return None
    factor = EXACT.divide(_PER["百"], _PER[token["per"][0]])
    value, step = EXACT.multiply(numeral.value, factor), EXACT.multiply(numeral.step, factor)
    return Quantity(begin, token.end(), value, step, lexicon.units().after["%"], sign)


def _is_amount(folded: str, token: re.Match[str]) -> bool:
    """Eleven digits that look like a mobile number, and are one of something: 13000000000辆."""
    run = token["code"]
    return run.isdigit() and (run.endswith("000000") or unit_after(folded, token.end())[1] is not None)


def _is_code(run: str) -> bool:
    """Leading zeros, or more digits than a quantity written without separators has."""
    if not (run.isdigit() and run.isascii()):
        return len(run) > MOST_DIGITS
    return len(run) > 15 or (len(run) > 1 and run[0] == "0")


def _fraction(begin: int, end: int, sign: str, run: str, token: re.Match[str]) -> Quantity | None:
    """三分之一 and 1/3; the step is that of a fraction no one rounds."""
    lower, upper = (parse(run), parse(token["of"])) if token["of"] else (parse(token["over"]), parse(run))
    if lower is None or upper is None or not upper.value < lower.value:
        return None
    # Twenty-eight places, so that both spellings of a fraction meet at one value.
    value = EXACT.divide(upper.value, lower.value).quantize(Decimal(1).scaleb(-28), context=EXACT)
    return None if value.is_nan() else Quantity(begin, end, value.normalize(EXACT), Decimal(0), None, sign)


def _currency_before(folded: str, start: int) -> tuple[int, Unit | None]:
    if folded[start - 1 : start] not in _CURRENCY_ENDS or start == 0:
        return start, None
    if match := lexicon.units().sign_pattern.search(folded, max(0, start - 4), start):
        return match.start(), lexicon.units().before[match[0].rstrip()]
    return start, None


_CURRENCY_ENDS = frozenset("$¥€£ BDYRP币")


def _sign_before(folded: str, start: int, previous_end: int) -> tuple[int, str]:
    before = folded[start - 1 : start] if start else ""
    if before not in _SIGN_ENDS:
        return start, ""
    if before == "负" or (before == "+" and start > 0):
        return start - 1, "-" if before == "负" else "+"
    if before == "下" and folded[start - 2 : start] == "零下":
        return start - 2, "-"
    if before == " " and (match := _MINUS_WORD.search(folded, max(0, start - 9), start)):
        return match.start(), "-"
    if before == "-" and start - 1 != previous_end:
        ahead = folded[start - 2 : start - 1] if start > 1 else ""
        # A hyphen after a letter, digit or closing mark joins; after Chinese, a space or nothing it is a minus.
        if not (ahead.isascii() and ahead.isalnum()) and ahead not in _JOINED and not ahead.isnumeric():
            return start - 1, "-"
    return start, ""


_SIGN_ENDS = frozenset("负+下 -")
_MINUS_WORD = re.compile(r"(?i:\b(?:minus|negative))[ ]\Z")
_JOINED = frozenset(")%]}'\"”’」-年月日号元万亿千百")


def _scale_after(folded: str, end: int, currency: Unit | None) -> tuple[int, int]:
    if folded[end : end + 1] not in _SCALE_STARTS or not (match := _SCALE.match(folded, end)):
        return end, 1
    word = match[0].lstrip(" -")
    if word in _ONLY_MONEY and currency is None:
        return end, 1
    return match.end(), _SCALES[word.lower()]


def unit_after(folded: str, end: int, currency: Unit | None = None) -> tuple[int, Unit | None]:
    """Where the unit behind a number ends, and the unit; a currency in front of it stays, whatever follows."""
    units = lexicon.units()
    at = end + 1 if folded[end : end + 1] in ("余", "多", "来", "+") else end
    gap = folded[at : at + 1]
    if gap == " " or (gap == "-" and folded[at + 1 : at + 2].isalpha()):
        at += 1
    counted = folded[at : at + 1] == "个"
    found = units.find(folded, at + counted)
    if counted and (found is None or found[0].dimension in (None, "count")):
        found = units.after["个"], at + 1
    elif found and folded[found[1] - 1] == "月" and not counted:
        found = None  # 3月 is a date, 3个月 a span
    if currency is not None:
        return (found[1] if found and found[0].codes else end), currency
    return (found[1], found[0]) if found else (end, None)


def _trailing_scale(run: str) -> int:
    return {"万": 10**4, "亿": 10**8}.get(run[-1], 1)


def _share_unit_of_range(folded: str, found: list[Quantity], upper: Quantity, scale_before: int, scale: int) -> None:
    """In 3-5% and 300至500万元 the first number takes the unit and the scale of the second."""
    if not found or found[-1].code or upper.code or upper.start - found[-1].end > 4:
        return
    lower = found[-1]
    if lower.unit is not None or not _RANGE.match(folded[lower.end : upper.start]):
        return
    factor = scale if scale_before == 1 and lower.value < scale else 1
    value, step = EXACT.multiply(lower.value, factor), EXACT.multiply(lower.step, factor)
    found[-1] = lower._replace(value=value, step=step, unit=upper.unit)


def english_quantities(lowered: str) -> list[Quantity]:
    """Numbers in English words, for a short text: ten and above, or any with a scale or a unit ("three percent").

    "one of", "two reasons" and other small counts are left out: they are rarely facts.
    """
    found: list[Quantity] = []
    for match in ENGLISH_RUN.finditer(lowered):
        value = parse_english(match[0])
        if value is None:
            continue
        end, unit = unit_after(lowered, match.end())
        if value >= 10 or (unit is not None and unit.dimension not in (None, "count")):
            step = next((Decimal(scale) for word, scale in _SCALES.items() if match[0].endswith(" " + word)), _ONE)
            found.append(Quantity(match.start(), end, Decimal(value), step, unit))
    return found
