"""zl: noqa comments in every host, and --add-noqa."""

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zlclient.linting.engine import lint_text
from zlclient.linting.lint_settings import LintSettings
from zlclient.linting.noqa import add_noqa
from zlclient.prompts.source import parse_source

DEFAULT = LintSettings(today=date(2026, 11, 30))
LONG = "Try to answer every question of the customer."


def codes(text, path):
    return [item.code for item in lint_text(text, path, DEFAULT)]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("Try to answer. {# zl: noqa ZL302 #}\n", "a.j2"),
        ("{#- zl: noqa ZL302 -#}\nTry to answer.\n", "a.j2"),
        ("{# zl: noqa #}\n\nTry to answer.\n", "a.j2"),
        ("{# zl: noqa-file ZL3 #}\nHello.\nTry to answer.\nTry to answer.\n", "a.j2"),
        ("Try to answer. <!-- zl: noqa ZL302 -->\n", "a.md"),
        ("<!-- zl: noqa: ZL302, ZL307 -->\nTry to answer with a few examples.\n", "a.md"),
        ("Try to answer. {{! zl: noqa ZL302 }}\n{{name}}\n", "a.prompt"),
        ("Try to answer. {{!-- zl: noqa ZL302 --}}\n{{name}}\n", "a.prompt"),
        (f"SYSTEM_PROMPT = '{LONG}'  # zl: noqa ZL302\n", "a.py"),
        (f"# zl: noqa ZL302\nSYSTEM_PROMPT = '''Hello.\n{LONG}\n'''\n", "a.py"),
        (f"SYSTEM_PROMPT = '''Hello.\n{LONG}\n'''  # zl: noqa ZL302\n", "a.py"),
        (f"system_prompt: |  # zl: noqa ZL302\n  Hello.\n  {LONG}\n", "a.yaml"),
        (f"system_prompt: {LONG}  # zl: noqa ZL302\n", "a.yaml"),
        ("---\nname: a\nmodel: gpt-4 # zl: noqa ZL402\n---\nuser:\nHi there.\n", "a.prompty"),
    ],
)
def test_silenced(text, path):
    assert codes(text, path) == []
    loud = text.replace("zl: noqa", "zl: nothing")
    assert codes(loud, path) != []


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("Try to answer. {# zl: noqa ZL301 #}\n", "a.j2", ["ZL302", "ZL005"]),
        ("Hello. {# zl: noqa #}\nTry to answer.\n", "a.j2", ["ZL005", "ZL302"]),
        ("# zl: noqa\nTry to answer.\n", "a.md", ["ZL302"]),  # a heading, no comment
        (f"SYSTEM_PROMPT = '# zl: noqa {LONG}'\n", "a.py", ["ZL302"]),  # inside the literal
        ('"""Shows: # zl: noqa ZL302 and <!-- zl: noqa -->."""\n', "a.py", []),  # a docstring is no comment
        ("Try to answer. {# zl: noqa ZL302, ZL304 #}\n", "a.j2", ["ZL005"]),
        ("Hello. {# zl: noqa ZL904 #}\n", "a.j2", []),  # a rule that does not run may need it
        ("Hello. {# zl: noqa ZL304, ZL005 #}\n", "a.j2", []),
    ],
)
def test_not_silenced_or_unused(text, path, expected):
    assert codes(text, path) == expected


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("Hello.\nTry to answer with a few examples and give a few examples.\n", "a.md"),
        ("Try to answer.\n{{ x }}\n", "a.j2"),
        ("---\nname: a\nmodel: gpt-4\n---\nsystem:\nTry to answer.\n", "a.prompty"),
        (f"SYSTEM_PROMPT = '''Hello.\n{LONG}\n'''\nx = 1\n", "a.py"),
        (f"system_prompt: |\n  Hello.\n  {LONG}\nname: x\n", "a.yaml"),
        ("{{#if a}}x{{/if}}\nTry to answer.\n", "a.prompt"),
        (f'SYSTEM_PROMPT = """{LONG}\nHello."""\nx = 1\n', "a.py"),
        (f'system_prompt: "{LONG}\n  Hello."\nname: x\n', "a.yaml"),
        (f"system_prompt: |\n  Hello.\nuser_prompt: {LONG}\n", "a.yaml"),
    ],
)
def test_add_noqa_silences_what_is_found(text, path):
    found = lint_text(text, path, DEFAULT)
    silenced, count = add_noqa(text, path, found)
    assert count == len(found) > 0
    assert codes(silenced, path) == []
    if path in ("a.py", "a.yaml"):
        before, after = (parse_source(each, path).parts for each in (text, silenced))
        assert [part.text for part in before] == [part.text for part in after]
    assert add_noqa(silenced, path, lint_text(silenced, path, DEFAULT)) == (silenced, 0)


@given(
    st.text(st.sampled_from("zl: noqa{}#!<->-ZL302 ,\n'\"|")),
    st.sampled_from(["a.md", "a.j2", "a.py", "a.yaml", "a.prompt"]),
)
@settings(max_examples=150, deadline=None)
def test_broken_comments_do_no_harm(text, path):
    found = lint_text(text, path, DEFAULT)
    assert all(item.code != "ZL007" for item in found)
    add_noqa(text, path, found)
