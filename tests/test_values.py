"""Checks of single values: what is accepted, and that no error repeats a long text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlclient import values


@given(st.floats(allow_nan=True) | st.integers() | st.booleans() | st.text() | st.none())
def test_number_accepts_exactly_its_range(value):
    check = values.number(0, 10)
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 10
    if good:
        assert check(value) == value
    else:
        with pytest.raises(ValueError, match="must be a number from 0 to 10"):
            check(value)


@given(st.integers(0, 10), st.floats(0, 10))
def test_text_from_the_environment_reads_as_what_it_is(whole, real):
    assert values.from_text(values.number(0, 10, whole=True))(str(whole)) == whole
    assert values.from_text(values.number(0, 10))(repr(real)) == real
    assert values.from_text(values.texts)("a, b") == ("a", "b")
    assert values.from_text(values.flag)("yes") is True
    assert values.from_text(values.text)("7") == "7"
    assert values.from_text(values.number(0, off="off"))("off") == "off"


@given(st.text(min_size=41) | st.binary(min_size=41) | st.lists(st.text(min_size=41), min_size=1))
def test_a_long_value_is_never_shown(value):
    shown = values.shown(value)
    assert len(shown) < 40
    assert str(value) not in shown


@given(st.text("ab:@/?#", max_size=12), st.sampled_from(["http", "https", "redis", "postgresql+psycopg"]))
def test_no_password_of_an_address_is_shown(rest, scheme):
    shown = values.shown_url(f"{scheme}://user:secret@{rest}")
    assert "secret" not in shown
    assert shown.startswith(f"{scheme}://***@")


@pytest.mark.parametrize(
    "good", ["http://u", "https://u:8000/v1/", "http://a:b@[::1]:80/x", "http://127.0.0.1", "local:"]
)
def test_an_address(good):
    assert values.base_url(good) == good
    assert values.from_text(values.base_url)(good) == good


@pytest.mark.parametrize(
    "bad", ["", "u", "ftp://u", "http://[bad", "http://u:99999", "http://u/v1?key=x", "http://", 5]
)
def test_no_address(bad):
    with pytest.raises(ValueError, match="must be an address"):
        values.base_url(bad)


tokens = st.text("abc-_X1", min_size=1, max_size=9)
lines = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=9)


@given(st.dictionaries(tokens, lines, max_size=3))
def test_headers_are_what_http_can_carry(table):
    assert values.headers(table) == table


@given(tokens, st.text(max_size=3), st.sampled_from(["\r", "\n", "\0", "é", "中", "\x7f"]))
def test_a_header_that_http_cannot_carry_is_refused_without_its_value(name, rest, bad):
    for table in ({name: f"secret{bad}{rest}"}, {f"{name}{bad}": "secret"}, {name: "secret", "n": 5}, {"": "secret"}):
        with pytest.raises(ValueError, match="must") as caught:
            values.headers(table)
        assert "secret" not in str(caught.value)
