import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlclient.serving.field_values import date_in, number_in, spoken


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3.2亿元", 320_000_000), ("1,250.5 EUR", 1250.5), ("$41 million", 41_000_000), ("-3 °C", -3), ("12万", 120_000),
        ("八千元", 8000), ("一千八百九十二种", 1892), ("二十七年", 27), ("十四天", 14), ("二〇二四年", 2024), ("三万", 30_000),
        ("4 metres", 4), ("7 m wide", 7), ("2.5bn", 2_500_000_000), ("none", None), ("", None),
    ],
)  # fmt: skip
def test_a_number_with_its_scale(text, value):
    assert number_in(text) == (pytest.approx(value) if value is not None else None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024年3月1日", "2024-03-01"), ("on 1 March 2024", "2024-03-01"), ("March 1st, 2024", "2024-03-01"),
        ("2024-03-01", "2024-03-01"), ("2024年13月1日", None), ("2024年", None), ("soon", None),
    ],
)  # fmt: skip
def test_a_whole_date(text, value):
    assert date_in(text) == value


@given(st.integers(-(10**12), 10**12))
def test_any_integer_is_read_back(value):
    assert number_in(f"about {value:,} units") == value


@given(st.dates())
def test_any_date_is_read_back(value):
    assert date_in(f"{value.year:04}年{value.month}月{value.day}日") == value.isoformat()
    assert date_in(f"{value.day} {value:%B} {value.year:04}") == value.isoformat()


def test_names_are_spoken():
    assert [spoken(name) for name in ("net_income", "netIncome", "净利润", "a-b")] == [
        "net income", "net Income", "净利润", "a b",
    ]  # fmt: skip
