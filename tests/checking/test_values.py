"""Values survive every way of writing them."""

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zlclient.checking import check_fidelity, lexicon
from zlclient.checking.dates import moments
from zlclient.checking.numbers import plain, quantities
from zlclient.checking.numerals import parse, parse_english
from zlclient.checking.text import fold, lower
from zlclient.errors import ConfigError

DIGITS = "零一二三四五六七八九"
ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def chinese_below_10000(value: int) -> str:
    text, gap = "", False
    for place, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit, value = divmod(value, place)
        if digit:
            text += ("零" if gap and text else "") + DIGITS[digit] + name
            gap = False
        else:
            gap = True
    return text


def chinese(value: int) -> str:
    """An independent writer of Chinese numerals up to 10^16."""
    if value == 0:
        return "零"
    groups = []
    while value:
        value, group = divmod(value, 10_000)
        groups.append(group)
    text = ""
    for power in reversed(range(len(groups))):
        group = groups[power]
        if group == 0:
            continue
        zero = "零" if text and group < 1000 else ""
        # The upper groups share one 亿: 一万五千亿, not 一万亿五千亿.
        name = "万" if power == 3 and groups[2] else ("", "万", "亿", "万亿")[power]
        text += zero + chinese_below_10000(group) + name
    return text


def english(value: int) -> str:
    if value < 20:
        return ONES[value]
    if value < 100:
        return TENS[value // 10] + (f"-{ONES[value % 10]}" if value % 10 else "")
    if value < 1000:
        return f"{ONES[value // 100]} hundred" + (f" and {english(value % 100)}" if value % 100 else "")
    for word, scale in (("billion", 10**9), ("million", 10**6), ("thousand", 1000)):
        if value >= scale:
            return f"{english(value // scale)} {word}" + (f" {english(value % scale)}" if value % scale else "")
    raise AssertionError


@given(st.one_of(st.integers(0, 10**5), st.integers(0, 10**16 - 1)))
@settings(max_examples=600)
def test_chinese_numerals(value):
    numeral = parse(chinese(value))
    assert numeral is not None
    assert numeral.value == value


@given(st.integers(0, 10**12 - 1))
def test_english_numerals(value):
    assert parse_english(english(value)) == value


@pytest.mark.parametrize("run", ["七八", "三四十", "二十五六", "万", "千万", "十百", "百十", "一万二千三万"])
def test_what_is_no_single_number(run):
    assert parse(run) is None or run == "一万二千三万"


@given(st.integers(0, 10**14), st.sampled_from([0, 1, 2, 3]))
@settings(max_examples=300)
def test_every_spelling_of_a_decimal_has_one_value(digits, places):
    value = Decimal(digits).scaleb(-places)
    written = f"{value:f}"
    grouped = f"{value:,f}"
    wide = grouped.translate({ord(char): chr(ord(char) + 0xFEE0) for char in "0123456789.,"})
    spellings = [written, grouped, wide] if len(written.replace(".", "")) <= 15 else [grouped, wide]
    for text in spellings:
        (found,) = quantities(fold(f"共{text}辆"))
        assert found.value == value, text
        assert found.canonical == plain(value)


@given(
    st.integers(1, 9999),
    st.sampled_from([("万", 10**4), ("亿", 10**8), (" million", 10**6), ("bn", 10**9), ("k", 1000)]),
)
def test_scales(number, scale):
    word, factor = scale
    (found,) = quantities(f"({number}{word})")
    assert found.value == number * factor


@given(st.integers(1, 9999), st.integers(1, 9))
def test_percents(whole, tenth):
    spellings = (
        f"{whole}.{tenth}%",
        f"百分之{chinese(whole)}点{DIGITS[tenth]}",
        f"{whole}.{tenth} percent",
        f"{whole}.{tenth}个百分点",
    )
    values = [quantities(text)[0] for text in spellings]
    assert len({found.value for found in values}) == 1
    assert [found.unit.name for found in values if found.unit] == ["%", "%", "%", "pp"]


FORMATS = [
    lambda day: f"{day.year}年{day.month}月{day.day}日",
    lambda day: f"{day.year}-{day.month:02d}-{day.day:02d}",
    lambda day: f"{day.year}/{day.month}/{day.day}",
    lambda day: f"{day:%B} {day.day}, {day.year}",
    lambda day: f"{day.day} {day:%b} {day.year}",
    lambda day: f"{day.day}th of {day:%B} {day.year}",
    lambda day: (
        "".join("〇一二三四五六七八九"[int(char)] for char in str(day.year))
        + f"年{chinese_day(day.month)}月{chinese_day(day.day)}日"
    ),
    lambda day: f"{day.year}年{day.month}月{day.day}日".translate(
        {ord(char): chr(ord(char) + 0xFEE0) for char in "0123456789"}
    ),
]


def chinese_day(value: int) -> str:
    return chinese(value).removeprefix("一") if 10 <= value < 20 else chinese(value)


dates = st.dates(dt.date(1800, 1, 1), dt.date(2199, 12, 31))


@given(dates, st.sampled_from(FORMATS), st.sampled_from(FORMATS))
@settings(max_examples=300)
def test_every_spelling_of_a_date_has_one_value(day, ours, theirs):
    (found,) = moments(fold(f"于{ours(day)}。"))
    assert found.canonical == day.isoformat()
    assert check_fidelity(f"（{ours(day)}）", f"（{theirs(day)}）").ok
    assert check_fidelity(f"{day.year}年{day.month}月", theirs(day)).ok


@given(dates, dates, st.sampled_from(FORMATS), st.sampled_from(FORMATS))
def test_another_date_is_never_present(day, other, ours, theirs):
    if day != other:
        assert not check_fidelity(ours(day), theirs(other)).ok


@given(st.integers(1000, 10**9), st.integers(1000, 10**9))
def test_another_number_is_never_present(one, other):
    if one != other:
        assert not check_fidelity(f"共{one:,}辆", f"共{other:,}辆").ok


@given(st.text())
def test_folding_keeps_offsets(text):
    assert len(fold(text)) == len(text) == len(lower(fold(text)))


def test_a_wrong_lexicon_names_file_line_and_key():
    with pytest.raises(ConfigError, match=r"mine\.toml:2"):
        lexicon.parse_toml("idioms = []\nfalls = = []", "mine.toml")
    with pytest.raises(ConfigError, match=r"mine\.toml:2: fals: unknown list"):
        lexicon.word_lists(lexicon.Words, "idioms = []\nfals = []", {"idioms": [], "fals": []}, "mine.toml")
    text = '[[unit]]\nname = "km"\nfactor = "far"\nwords = ["km"]\n'
    with pytest.raises(ConfigError, match=r"mine\.toml:2: km"):
        lexicon.units_from(text, lexicon.parse_toml(text, "mine.toml"), "mine.toml")
