"""What must hold of any text: stable, encodable, exactly recorded, and the same however it is read."""

import random
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zlclient.shaping.sanitise import apply_changes, sanitize
from zlclient.shaping.sanitising import blocks, code_points, contexts, controls, passes, scan, vectorised, whitespace
from zlclient.shaping.sanitising.edits import Edit, apply_edits, compose

LETTERS = [*"aé中か1 \t\n#*`~\u0301می\u064eकशไលខကཀᠠא١❤👩🏽🏴♀⬛😀🇩ㄱ가\u11a8", "  \n", "\n\n\n", "```\n", "\n```\n"]
HOSTILE = [
    *map(chr, (0, 8, 8, 0x0B, 0x0C, 0x0D, 0x1B, 0x1B, 0x1C, 0x7F, 0x80, 0x81, 0x85, 0x8A, 0x2028, 0x2029)),
    *map(chr, (0xD83D, 0xDE00, 0xDB40, 0xDC67, 0xFFFF, 0xFDD0, 0x1FFFE, 0xFEFF, 0x2060, 0xFFFC, 0x1D173)),
    *"\u200b\u200c\u200d\u200d\u200e\u200f\u061c\ufe0f\ufe0f\ufe0e\ufe00\ufe01\U000e0100\U000e0101",
    *"\U000e0020\U000e0067\U000e007f\U000e0001\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2069\u2069\xad\xad",
    *"\u115f\u1160\u3164\uffa0\u180b\u180e\u180f\u034f\xa0\u202f\u3000\ue000\U000f0000\u2065\u17b4",
    *("\x1b[31m", "\x1b]0;א\x07", "[0m", "\r\n", "\ud83d\ude00", "1\ufe0f\u20e3", "🏳\ufe0f\u200d🌈"),
    *("🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "\U000e0067\U000e0062\U000e0065\U000e006e"),
]
ALPHABET = LETTERS + HOSTILE
MODES = ("standard", "strict", "minimal", "naive")
hostile_texts = st.lists(st.sampled_from(ALPHABET) | st.characters(), max_size=30).map("".join)


def hostile_strings(count: int, seed: int, longest: int = 16):
    rng = random.Random(seed)
    for _ in range(count):
        yield "".join(rng.choices(ALPHABET, k=rng.randint(1, longest)))


def check(text: str, mode) -> str:
    cleaned = sanitize(text, mode)
    clean = cleaned.text
    clean.encode()
    again = sanitize(clean, mode)
    assert again.text is clean, ascii((mode, text))
    assert apply_changes(text, cleaned.changes) == clean, ascii((mode, text))
    assert cleaned.changed == (clean != text)
    assert bool(cleaned.changes) == cleaned.changed
    assert sum(cleaned.summary().values()) == len(cleaned.changes)
    return clean


@pytest.mark.parametrize(
    ("mode", "count"), [("standard", 50_000), ("strict", 10_000), ("minimal", 5_000), ("naive", 5_000)]
)
def test_hostile_strings(mode, count: int) -> None:
    for text in hostile_strings(count, seed=2):
        check(text, mode)


@settings(max_examples=500, deadline=None)
@given(hostile_texts, st.sampled_from(MODES))
def test_any_text(text: str, mode) -> None:
    check(text, mode)


@settings(max_examples=500, deadline=None)
@given(hostile_texts)
def test_a_stricter_mode_accepts_no_more(text: str) -> None:
    strict = sanitize(text, "strict").text
    standard = sanitize(strict).text
    assert standard is strict
    assert sanitize(standard, "minimal").text is standard


@settings(max_examples=500, deadline=None)
@given(hostile_texts)
def test_changes_are_ordered_apart_and_real(text: str) -> None:
    end = 0
    for change in sanitize(text).changes:
        assert change.offset >= end
        end = change.offset + change.length
        assert change.length > 0
        assert change.code == f"U+{ord(text[change.offset]):04X}"
        assert text[change.offset : end] != change.replacement
    assert end <= len(text)


def by_python(text: str, mode: str) -> str:
    policy = code_points.policy(mode)
    text = apply_edits(text, controls.join_pairs(text))
    for make in () if mode == "minimal" else (controls.drop_ansi, controls.drop_overstrikes):
        text = apply_edits(text, make(text))
    return apply_edits(text, contexts.judge(text, scan.suspects(text, policy), policy))


@pytest.mark.parametrize("mode", ["standard", "strict", "minimal"])
@pytest.mark.parametrize("block", [1, 2, 3, 7, 64])
def test_blocks_make_no_difference(mode: str, block: int) -> None:
    pytest.importorskip("numpy")
    policy = code_points.policy(mode)
    sequences = () if mode == "minimal" else (controls.drop_ansi, controls.drop_overstrikes)
    for text in hostile_strings(600, seed=block, longest=24):
        expected = by_python(text, mode)
        clean = vectorised.clean(text, policy, sequences, block)
        assert clean == expected, ascii(text)
        assert (clean is text) == (expected == text)


def test_a_long_text_is_read_alike_with_and_without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    numpy = pytest.importorskip("numpy")
    texts = ["".join(hostile_strings(400, seed=seed)) for seed in range(20)]
    monkeypatch.setattr(scan, "VECTORISED_FROM", 1_000)
    assert scan.worth_vectorising(texts[0])
    fast = [sanitize(text, mode).text for text in texts for mode in MODES]
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert not scan.worth_vectorising(texts[0])
    assert [sanitize(text, mode).text for text in texts for mode in MODES] == fast
    assert numpy is not None


@pytest.mark.parametrize("block", [1, 2, 5, 100])
def test_loose_white_space_is_found_alike(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy")
    monkeypatch.setattr(blocks, "windows", lambda text, windows=blocks.windows: windows(text, block))
    rng = random.Random(block)
    for _ in range(500):
        text = "".join(rng.choices("a中😀 \t\n\n", k=rng.randint(1, 20)))
        ends, blank_lines = scan.loose_whitespace(text)
        assert blocks.loose_whitespace(text) == (ends, "\n\n\n" in text)
        assert blank_lines == ("\n\n\n" in text or text.startswith("\n\n"))


@settings(max_examples=500, deadline=None)
@given(hostile_texts)
def test_tidying_is_the_two_passes(text: str) -> None:
    trimmed = apply_edits(text, whitespace.trim_lines(text))
    tidy = whitespace.tidy(text)
    assert tidy == apply_edits(trimmed, whitespace.drop_blank_lines(trimmed))
    assert whitespace.tidy(tidy) is tidy


@settings(max_examples=300, deadline=None)
@given(hostile_texts, st.sampled_from(["standard", "strict", "minimal"]))
def test_the_short_way_and_the_record_agree(text: str, mode) -> None:
    assert passes.clean(text, mode) == apply_edits(text, passes.record(text, mode))


@st.composite
def edits_of(draw, length: int) -> list[Edit]:
    edits: list[Edit] = []
    at = 0
    while at < length and draw(st.booleans()):
        start = draw(st.integers(at, length - 1))
        end = draw(st.integers(start + 1, min(length, start + 4)))
        new = draw(st.sampled_from(["", "x", "\n\n"])) if end == start + 1 else ""
        edits.append(Edit(start, end, new, "rule"))
        at = end
    return edits


@settings(max_examples=1000, deadline=None)
@given(st.data(), st.text("abcdef", max_size=12))
def test_composed_edits_do_what_both_do(data: st.DataObject, text: str) -> None:
    first = data.draw(edits_of(len(text)))
    middle = apply_edits(text, first)
    second = data.draw(edits_of(len(middle)))
    composed = compose(first, second)
    assert apply_edits(text, composed) == apply_edits(middle, second)
    assert [edit.start for edit in composed] == sorted({edit.start for edit in composed})


@pytest.mark.parametrize(
    "text",
    ["\u200d" * 100_000, "👩\u200d" * 50_000, "א\u2067" * 50_000, "א" + "\u202a" * 50_000 + "\u2069" * 50_000],
    ids=["joiners", "half families", "open isolates", "pops without isolates"],
)
def test_no_text_takes_quadratic_time(text: str) -> None:
    assert sanitize(text).changed  # a second or two at worst; quadratic time would be minutes


@pytest.mark.parametrize(
    "text", ["\x1b]" * 50_000, "\x1b[0" * 50_000, "a" + " " * 200_000 + "b", "\n> " * 50_000 + "```"]
)
def test_no_pattern_takes_quadratic_time(text: str) -> None:
    check(text, "standard")
