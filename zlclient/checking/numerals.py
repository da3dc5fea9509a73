"""The value of a numeral: Arabic, Chinese, or both mixed (386,810 · 三千五百万 · 1.5万亿 · 3亿5000万 · 二〇二四)."""

from __future__ import annotations

import re
from decimal import Context, Decimal
from typing import NamedTuple

DIGITS = {
    **{char: value for value, char in enumerate("零一二三四五六七八九")},
    **{char: value for value, char in enumerate("零壹贰叁肆伍陆柒捌玖")},
    "〇": 0, "○": 0, "两": 2, "兩": 2, "貳": 2, "參": 3, "陸": 6,
}  # fmt: skip
SMALL = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1_000, "仟": 1_000}
LARGE = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8, "兆": 10**12}

DIGIT = "".join(DIGITS)
# 千克, 千瓦 and 百分之 begin with a unit of measure, not with a place of the number.
PLACE = r"(?:[十拾佰仟万萬亿億兆]|千(?![克瓦米卡帕赫伏])|百(?!分))"
# Possessive and bounded so that no run of digits makes the scan backtrack. U+2009 and U+202F are thin spaces.
ARABIC = r"(?:[0-9]{1,3}(?:[,\u2009\u202f][0-9]{3})+(?![0-9])|[0-9]++)(?:\.[0-9]++)?"
CHINESE = rf"(?:[{DIGIT}]|{PLACE})(?:[{DIGIT}]|{PLACE}|[点點](?=[{DIGIT}]))*+"
MIXED = rf"{ARABIC}(?:{PLACE}++(?:{ARABIC}(?:{PLACE})*+)*+)?"

# More digits than any quantity has: an identifier, kept as a string. Also keeps Decimal exact.
MOST_DIGITS = 40

_TOKEN = re.compile(rf"[{DIGIT}]++|[点點][{DIGIT}]++|[0-9.,\u2009\u202f]++|.")
# Never the caller's context: its precision and traps are theirs to change. Flags are not read, so sharing is safe.
EXACT = Context(prec=60, traps=[])
_ONE = Decimal(1)


class Numeral(NamedTuple):
    """A value and the size of one step in its last written place: 38.7万 is 387000 in steps of 1000."""

    value: Decimal
    step: Decimal


def parse(run: str) -> Numeral | None:
    """The value of a run matched by `MIXED` or `CHINESE`; None where it is no single number (七八, 万千, 十百)."""
    if len(run) > MOST_DIGITS:
        return None
    if run.isascii():
        return _arabic(run)
    return _Places(run).read()


def _arabic(literal: str) -> Numeral:
    value = Decimal(literal.replace(",", "").replace("\u2009", "").replace("\u202f", ""))
    return Numeral(value, _step(value))


def _step(value: Decimal) -> Decimal:
    exponent = value.as_tuple().exponent
    return _ONE.scaleb(exponent, EXACT) if isinstance(exponent, int) and exponent else _ONE


class _Places:
    """Adds up literals times places: `section` is below 万, `total` above; both grow left to right."""

    def __init__(self, run: str) -> None:
        self.tokens = _TOKEN.findall(run)
        self.positional = not any(token in SMALL or token in LARGE for token in self.tokens)
        self.total = self.section = Decimal(0)
        self.literal: Decimal | None = None
        self.step = _ONE
        self.small = self.large = 10**16  # the last place used: the next small one must be smaller
        self.last_place = 0

    def read(self) -> Numeral | None:
        for place, token in enumerate(self.tokens):
            known = self._place(token) if token in SMALL or token in LARGE else self._literal(token, place)
            if not known:
                return None
        if self.literal is not None:
            self._add_tail(self.literal)
        return Numeral(EXACT.add(self.total, self.section), self.step)

    def _literal(self, token: str, place: int) -> bool:
        if token[0] in "点點":
            fraction = "".join(str(DIGITS[char]) for char in token[1:])
            self.literal = EXACT.add(self.literal or Decimal(0), Decimal(f"0.{fraction}"))
            self.step = _ONE.scaleb(-len(fraction), EXACT)
            return True
        if self.literal is not None:
            return False
        if token[0] in DIGITS:
            digits = "".join(str(DIGITS[char]) for char in token)
            # 七八 and 五六 after a place are "seven or eight"; 一二三 and 二四 with a zero are read digit by digit.
            significant = len(digits.lstrip("0"))
            if significant > 1 and not (self.positional and (len(digits) > 2 or "0" in digits)):
                return False
            self.literal, self.step = Decimal(digits), _ONE
        else:
            self.literal, self.step = _arabic(token.rstrip(".,"))
        if place == 0 or self.last_place == 0:
            return True
        return self.literal < self.last_place

    def _place(self, token: str) -> bool:
        if token in SMALL:
            place = SMALL[token]
            if self.literal is None and (place != 10 or self.section != 0):
                return False
            if place >= self.small:
                return False
            self.section = EXACT.add(self.section, EXACT.multiply(self.literal or _ONE, place))
            self.small = self.last_place = place
        else:
            place = LARGE[token]
            if self.literal is not None:
                self.section = EXACT.add(self.section, self.literal)
            if self.section == 0 and self.total == 0:
                return False
            if place > self.large or self.section == 0:
                self.total, self.section = EXACT.multiply(EXACT.add(self.total, self.section), place), Decimal(0)
            else:
                self.total, self.section = EXACT.add(self.total, EXACT.multiply(self.section, place)), Decimal(0)
            self.large, self.small, self.last_place = place, 10**16, place
            # Only 万 and above coarsen a number: 三千五百 is written as exactly as 3500 is, 三千五百万 as 3500万.
            self.step = EXACT.multiply(self.step, place)
        self.literal = None
        return True

    def _add_tail(self, literal: Decimal) -> None:
        # 三万五 is 35,000 and 一百二 is 120: a lone last digit counts in tenths of the place before it.
        last = self.tokens[-1]
        lone = len(last) == 1 and self.last_place >= 100 and literal != 0
        if lone:
            self.step = EXACT.divide(Decimal(self.last_place), 10)
            literal = EXACT.multiply(literal, self.step)
        self.section = EXACT.add(self.section, literal)


_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
ENGLISH_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_ENGLISH = {
    **{word: value for value, word in enumerate(_ONES)},
    **{word: 20 + 10 * value for value, word in enumerate(_TENS)},
}
_WORD = "(?:" + "|".join(sorted([*_ENGLISH, "hundred", *ENGLISH_SCALES], key=len, reverse=True)) + ")"
ENGLISH_RUN = re.compile(rf"\b{_WORD}(?:(?:[ -]|[ ]and[ ]){_WORD})*+\b")


def parse_english(run: str) -> int | None:
    """The value of a run matched by `ENGLISH_RUN` in lower case; None where it is no single number ("two three")."""
    if run.startswith(("hundred", *ENGLISH_SCALES)):
        return None  # 4.2 million is read with its digits
    total = section = 0
    last = 10**4
    for word in re.split(r"[ -]", run):
        if word == "and":
            continue
        if word in ENGLISH_SCALES:
            total, section, last = total + (section or 1) * ENGLISH_SCALES[word], 0, 10**4
        elif word == "hundred":
            if not 0 < section < 100:
                return None
            section, last = section * 100, 100
        else:
            value = _ENGLISH[word]
            if value >= last:
                return None
            section, last = section + value, 0 if value < 20 else 10
    return total + section


def spell_english(value: int) -> str | None:
    """A regular expression for `value` in English words, where it has at most three significant digits."""
    for word, scale in reversed(ENGLISH_SCALES.items()):
        if value >= scale:
            return (
                f"{_spell_below_1000(value // scale)}[ ]{word}"
                if value % scale == 0 and value // scale < 1000
                else None
            )
    return _spell_below_1000(value) if value >= 0 else None


def _spell_below_1000(value: int) -> str:
    if value < 20:
        return _ONES[value]
    if value < 100:
        return _TENS[value // 10 - 2] + (f"[ -]{_ONES[value % 10]}" if value % 10 else "")
    rest = f"(?:[ ]and)?[ ]{_spell_below_1000(value % 100)}" if value % 100 else ""
    return f"{_ONES[value // 100]}[ ]hundred{rest}"
