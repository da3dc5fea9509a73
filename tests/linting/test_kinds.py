"""What counts as an instruction, and the word lists and their gates."""

import re
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zlclient.errors import ConfigError
from zlclient.linting.block import Block
from zlclient.linting.kinds import MASK
from zlclient.linting.lexicon import lexicon, lowered, matches, parse_lexicon
from zlclient.linting.texts import parse_texts
from zlclient.prompts.source import parse_source


def block(text, path="a.md"):
    return Block(parse_source(text, path).parts[0], 0)


@pytest.mark.parametrize(
    ("text", "kept", "masked"),
    [
        ('Say `try` or "try" now.', ["Say", "now"], ["try"]),
        ("用「尽量」和“最好”造句，不用《书》。", ["造句"], ["尽量", "最好", "书"]),
        ("It's the user's don't list.", ["It's the user's don't list."], []),
        ("A\n```\ncode\n```\nB", ["A", "B"], ["code"]),
        ("A\n```\nno end\nB", ["no end", "B"], []),
        ("# Examples\nshown\n## Part\nshown too\n# Rules\ntold", ["told"], ["shown", "shown too"]),
        ("For example:\nshown\n\ntold", ["told"], ["shown"]),
        ("例如：\n示范\n\n规则", ["规则"], ["示范"]),
        ("Example 1\nInput: shown\nOutput: shown\n\ntold", ["told"], ["shown"]),
        ("<example>shown</example> told <document>data</document>", ["told"], ["shown", "data"]),
        ("> quoted\ntold", ["told"], ["quoted"]),
        ("| a | cell |\n|---|---|\n| b | cell |\ntold", ["told"], ["cell"]),
        ('{\n  "key": "value",\n}\ntold', ["told"], ["value"]),
        ("user: hello\nassistant: hi\nuser: bye\n\ntold", ["told"], ["hello", "hi", "bye"]),
        ("See https://x.example/try now (e.g. shown) told.", ["told"], ["try", "shown"]),
        ("A <!-- hidden --> B", ["A", "B"], ["hidden"]),
        ("Hello {{ name }} {# note #} there", ["Hello", "there"], ["name", "note"]),
    ],
)
def test_kinds(text, kept, masked):
    part = block(text, "a.j2" if "{" in text and "{{" in text else "a.md")
    assert len(part.prose) == len(part.text)
    for word in kept:
        assert word in part.prose
    for word in masked:
        assert word not in part.prose


@given(st.text(st.sampled_from("ab \n`\"'“”<>/|#-例如：:.{}123*~")))
@settings(max_examples=200, deadline=None)
def test_masks_keep_length_and_lines(text):
    for part in parse_source(text, "a.j2").parts:
        piece = Block(part, 0)
        for view in (piece.prose, piece.markup, piece.shown):
            assert len(view) == len(part.text)
            assert all(a in (b, MASK) for a, b in zip(view, part.text, strict=True))
            assert view.count("\n") == part.text.count("\n")
        runs = piece.kinds.runs()
        assert "".join(part.text[start:end] for _, start, end in runs) == part.text
        for sentence in piece.sentences:
            assert piece.prose[sentence.start : sentence.end] == sentence.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("请用一句话回答。", {"zh"}),
        ("Answer the question in one sentence.", {"en"}),
        ("请用 JSON 回答 the question of the user.", {"zh", "en"}),
        ("请用 JSON 格式回答用户提出的每一个问题。", {"zh"}),
        ("Zu kleine Schrift behindert das Lesen und ist nicht gut.", set()),
        ("La respuesta es una frase para el usuario.", set()),
        ("日本語で答えてください。", set()),
    ],
)
def test_languages(text, expected):
    assert block(text).languages == expected


LISTS = [(language, name) for language in ("en", "zh") for name in lexicon(language).lists]


@pytest.mark.parametrize(("language", "name"), LISTS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_no_gate_hides_a_match(language, name, data):
    entry = data.draw(st.sampled_from(lexicon(language).lists[name]))
    text = data.draw(st.from_regex(entry.pattern, alphabet=st.characters(codec="utf-8")))
    low = lowered(text)
    start = r"(?<!\w)" if language == "en" else ""
    if re.search(f"{start}(?:{entry.pattern.pattern})", low):
        assert lexicon(language).possible(name, low)
        assert list(matches(name, text, frozenset((language,))))


@given(st.text())
def test_lowered_keeps_offsets(text):
    assert len(lowered(text)) == len(text)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_bundled_lists_compile(language):
    text = (files("zlclient.linting") / "lexicons" / f"{language}.toml").read_text("utf-8")
    assert parse_lexicon(text, language, "bundled").lists.keys() == lexicon(language).lists.keys()


def test_languages_have_the_same_lists():
    english, chinese = set(lexicon("en").lists), set(lexicon("zh").lists)
    assert english ^ chinese == {"factual"}


@pytest.mark.parametrize(
    ("text", "line"),
    [("a = ['x']\nb = ['(']", 2), ("a = 'x'", 1), ("\na = []", 2), ("a = [\n", 2), ("a = ['x', 1]", 1)],
)
def test_a_broken_lexicon_names_the_line(text, line):
    with pytest.raises(ConfigError) as caught:
        parse_lexicon(text, "zh", "my.toml")
    assert (caught.value.file, caught.value.line) == ("my.toml", line)


def test_a_broken_rule_text_names_the_line():
    for text, words in (
        ("[ZL1]\nwhat = 'a'", "missing"),
        ("\n[ZL1]\nwhat='a'\nwhy='b'\nexample='c'\ninstead='d'\nsource='e'\nx='f'", "unknown: x"),
    ):
        with pytest.raises(ConfigError, match=words) as caught:
            parse_texts(text, "t.toml")
        assert caught.value.line == text[: text.index("[")].count("\n") + 1
