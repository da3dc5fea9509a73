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
