"""Any text comes back exactly, streamed or not, and words meet whatever their capitals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlclient.engine.text_stream import TextStream
from zlclient.engine.tokenizer import Tokenizer
from zlclient.engine.training.vocabulary import build_tokenizer

FULL = build_tokenizer()
WORDS = st.sampled_from(
    [
        "The cat",
        " the",
        "  ",
        "CEO",
        "iPhone",
        "McDonald's",
        "A",
        " B",
        "猫在",
        "3.5%",
        "é",
        "😀",
        "\n",
        "\x00",
        "Ünder",
    ]
)
TEXTS = st.one_of(st.text(max_size=40), st.lists(WORDS, max_size=12).map("".join))


@given(TEXTS)
def test_any_text_comes_back(text: str):
    assert FULL.decode(FULL.encode(text)) == text


@given(TEXTS)
def test_a_small_vocabulary_falls_back_on_bytes(text: str):
    tiny = Tokenizer(["a", " the"])
    assert tiny.decode(tiny.encode(text)) == text


@given(TEXTS)
def test_text_makes_no_control_tokens_but_capitals(text: str):
    tokens = FULL.encode(text)
    assert all(token >= FULL.first_byte or FULL.is_capital(token) for token in tokens)


@given(TEXTS)
def test_a_stream_gives_what_decode_gives(text: str):
    stream = TextStream(FULL)
    pieces = [stream.push(token) for token in FULL.encode(text)]
    assert "".join(pieces) + stream.flush() == text


@given(TEXTS, st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=3))
def test_a_stream_ends_at_the_first_stop_sequence(text: str, stop: list[str]):
    stream = TextStream(FULL, stop)
    out = "".join(stream.push(token) for token in FULL.encode(text)) + stream.flush()
    found = [text.find(mark) for mark in stop if mark in text]
    assert out == (text[: min(found)] if found else text)
    assert (stream.stopped is not None) == bool(found)


def test_words_meet_whatever_their_capitals():
    plain = FULL.encode("the main span")
    assert FULL.encode("The main span")[1:] == plain
    assert [token for token in FULL.encode("THE MAIN SPAN") if not FULL.is_capital(token)] == plain


def test_invalid_bytes_become_replacement_characters():
    assert FULL.decode([FULL.first_byte + 0xFF, *FULL.encode(".")]) == "\ufffd."


def test_markers_are_told_from_other_tokens():
    assert FULL.marked(FULL.marker(7)) == 7
    assert FULL.marked(FULL.answer) is None
    assert FULL.marked(FULL.first_byte) is None


def test_a_saved_tokenizer_is_the_same(tmp_path, tokenizer):
    tokenizer.save(tmp_path / "tokenizer.json")
    assert Tokenizer.load(tmp_path / "tokenizer.json").pieces == tokenizer.pieces


@pytest.mark.parametrize("text", ["[]", "{}", '{"pieces": 3, "markers": 64}', '{"pieces": ["a"], "markers": 3}', "x"])
def test_what_is_no_tokenizer_is_refused(tmp_path, text):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(ValueError):
        Tokenizer.load(tmp_path / "t.json")
