"""Fixes: what they keep, that they are idempotent, and that nothing is lost on real prompts."""

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zlclient.linting.engine import lint_text
from zlclient.linting.fixing import fix_text, shape
from zlclient.linting.lint_settings import LintSettings
from zlclient.prompts.source import parse_source

TODAY = date(2026, 11, 30)
EVERYTHING = LintSettings(select=("ALL",), today=TODAY)
DEFAULT = LintSettings(today=TODAY)


def names(text, path):
    source = parse_source(text, path)
    return [(part.role, part.kind) for part in source.parts], set(source.names), source.format


def test_corpus_keeps_variables_and_roles(shared):
    changed = 0
    for file in sorted((shared / "corpus").iterdir()):
        if file.suffix == ".jsonl":
            continue
        text = file.read_bytes().decode("utf-8")
        for options, unsafe in ((DEFAULT, False), (EVERYTHING, True)):
            fixed, _ = fix_text(text, file.name, options, unsafe=unsafe)
            changed += fixed != text
            if not unsafe:
                assert shape(parse_source(fixed, file.name)) == shape(parse_source(text, file.name)), file.name
            # An unsafe rename (a misspelt input) changes a name on purpose; it can only remove an undeclared one.
            before, after = names(text, file.name), names(fixed, file.name)
            assert after[0] == before[0], file.name
            assert after[1] <= before[1], file.name
            assert after[2] == before[2], file.name
            assert fix_text(fixed, file.name, options, unsafe=unsafe) == (fixed, 0), file.name
    assert changed


def test_chinese_lines_survive_safe_fixes(shared):
    for file in sorted((shared / "corpus").iterdir()):
        text = file.read_bytes().decode("utf-8")
        fixed, _ = fix_text(text, file.name, DEFAULT)
        kept = [char for char in text if "\u4e00" <= char <= "\u9fff"]
        assert [char for char in fixed if "\u4e00" <= char <= "\u9fff"] == kept, file.name


PIECES = [
    "请尽量", "ig\u200bnore", " the the ", "MUST NEVER ALWAYS", "```json\n", "{{ x }}", "{% if a %}", "{% endif %}", "\n", "\n\n", "。。", "，，", "谢谢！",
    "<b>", "{", "}", "确保绝对准确。", "system:\n", "user:\n", "---\n", "name: a\n", "\u202eab\u202c", "Take a deep breath.", "“", "'", "{# zl: noqa ZL302 #}",
]  # fmt: skip


@pytest.mark.parametrize("path", ["a.md", "a.prompty", "a.j2", "a.py", "a.prompt.yml", "a.prompt"])
@given(text=st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
@settings(max_examples=60, deadline=None)
def test_fixes_keep_the_parse_and_are_idempotent(path, text):
    for options, unsafe in ((DEFAULT, False), (EVERYTHING, True)):
        fixed, made = fix_text(text, path, options, unsafe=unsafe)
        assert made or fixed == text
        assert names(fixed, path) == names(text, path)
        assert fix_text(fixed, path, options, unsafe=unsafe)[0] == fixed


def test_safe_fixes_leave_unsafe_findings():
    text = "请忽\u200b略。\n确保绝对准确。\n"
    fixed, made = fix_text(text, "a.md", EVERYTHING)
    assert (fixed, made) == ("请忽略。\n确保绝对准确。\n", 1)
    assert fix_text(text, "a.md", EVERYTHING, unsafe=True)[0] == "请忽略。\n"


def test_a_fix_that_would_change_the_parse_is_left_out():
    # Without the zero-width space the line would become a role line, and the message two.
    text = "user:\n你好\n\nsys\u200btem:\n忽略\n"
    fixed, made = fix_text(text, "a.prompty", DEFAULT)
    assert (fixed, made) == (text, 0)
    assert "ZL010" in {item.code for item in lint_text(text, "a.prompty", DEFAULT)}


def test_line_ends_survive():
    text = "请忽\u200b略。\r\n第二行。\r\n"
    assert fix_text(text, "a.md", DEFAULT)[0] == "请忽略。\r\n第二行。\r\n"
