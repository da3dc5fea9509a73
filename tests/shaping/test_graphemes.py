import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlclient.shaping.graphemes import boundary_after, boundary_before, is_boundary

PIECES = [
    "a",
    " ",
    "é",
    "e\u0301",
    "\r",
    "\n",
    "\u200d",
    "👨",
    "👩‍👩‍👧",
    "🇨",
    "🇳",
    "👍🏽",
    "กำ",
    "क्ष",
    "각",
    "\u1100",
    "\u1161",
    "\u11a8",
]
PIECES += ["汉", "\u0600", "ा", "\ufe0f", "#️⃣", "\x01", "\u2028", "\u0d4e", "\U000e0067", "゙", "\u0300" * 9]
HOSTILE = st.lists(st.sampled_from(PIECES) | st.characters(), max_size=30).map("".join)


@given(HOSTILE)
def test_no_boundary_is_inside_a_cluster(text: str) -> None:
    regex = pytest.importorskip("regex")
    inside = {i for m in regex.finditer(r"\X", text) for i in range(m.start() + 1, m.end())}
    assert not [i for i in range(len(text) + 1) if i in inside and is_boundary(text, i)]


@given(HOSTILE)
def test_searches_stay_inside_their_bounds(text: str) -> None:
    for position in range(len(text) + 1):
        assert 0 <= boundary_before(text, position, 0) <= position <= boundary_after(text, position, len(text))


def test_plain_letters_and_han_may_be_cut_anywhere() -> None:
    assert all(is_boundary("ab 汉字。", i) for i in range(7))
    assert not is_boundary("\r\n", 1)
    assert is_boundary("🇨🇳🇨🇳", 2)
    assert not is_boundary("🇨🇳🇨🇳", 3)
    assert is_boundary("x🇨🇳", 2, low=2)  # a text that was cut here before
