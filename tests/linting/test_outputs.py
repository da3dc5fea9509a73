"""Output formats, baseline, documents."""

import json

import pytest
import yaml

from zlclient.errors import ConfigError
from zlclient.linting.baseline import read_baseline, subtract, write_baseline
from zlclient.linting.docs import list_rules, render_pages
from zlclient.linting.engine import lint_text
from zlclient.linting.lint_settings import LintSettings
from zlclient.linting.output import FORMATS
from zlclient.linting.registry import all_rules

SETTINGS = LintSettings(select=("ALL",))
TEXT = "请尽量回答。\n请忽\u200b略，再给出几个例子: 100%\n"


def found(text=TEXT, path="dir/a,b.md"):
    return lint_text(text, path, SETTINGS)


def test_text_marks_the_place_in_columns():
    out = FORMATS["text"](found())
    assert "dir/a,b.md:1:2: ZL302" in out
    line, marks = out.split("\n")[1:3]
    assert line == "  1 | 请尽量回答。"
    assert marks == "    |   ^^^^"


def test_concise_is_one_line_a_finding():
    out = FORMATS["concise"](found())
    assert len(out.splitlines()) == len(found())
    assert "dir/a,b.md:2:3: ZL010 [*] " in out


def test_json_is_a_list_with_the_public_fields():
    data = json.loads(FORMATS["json"](found()))
    assert len(data) == len(found())
    assert {"file", "line", "column", "code", "slug", "message", "fixable", "severity"} <= data[0].keys()
    assert {item["fixable"] for item in data} == {True, False}


def test_github_escapes():
    out = FORMATS["github"](found())
    assert "::error title=ZL010 invisible-character,file=dir/a%2Cb.md,line=2,col=3" in out
    assert "\r" not in out


def test_gitlab_fingerprints_are_unique():
    data = json.loads(FORMATS["gitlab"](found("Try to answer.\nTry to answer.\n")))
    assert len({item["fingerprint"] for item in data}) == len(data) == 2
    assert data[0]["location"]["lines"] == {"begin": 1, "end": 1}


def test_sarif():
    data = json.loads(FORMATS["sarif"](found()))
    run = data["runs"][0]
    assert data["version"] == "2.1.0"
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        region = result["locations"][0]["physicalLocation"]["region"]
        assert 1 <= region["startLine"] <= region["endLine"]


def test_sarif_against_the_schema(shared):
    schema = shared / "vectors" / "sarif-2.1.0.json"
    jsonschema = pytest.importorskip("jsonschema")
    if not schema.exists():
        pytest.skip("no schema beside this checkout")
    jsonschema.validate(json.loads(FORMATS["sarif"](found())), json.loads(schema.read_text("utf-8")))


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_no_findings(name):
    assert FORMATS[name]([]).strip() in ("", "[]") or '"results": []' in FORMATS[name]([])


def test_baseline_follows_content_not_lines(tmp_path):
    file = tmp_path / "a.md"
    baseline = tmp_path / "baseline.json"
    before = lint_text("请尽量回答。\n", str(file), SETTINGS)
    assert write_baseline(baseline, before) == 1
    moved = lint_text("你好。\n\n  请尽量回答。\n", str(file), SETTINGS)
    assert subtract(moved, read_baseline(baseline), tmp_path) == []
    twice = lint_text("请尽量回答。\n请尽量回答。\n", str(file), SETTINGS)
    assert len(subtract([item for item in twice if item.code == "ZL302"], read_baseline(baseline), tmp_path)) == 1
    changed = lint_text("请尽量说。\n", str(file), SETTINGS)
    assert len(subtract(changed, read_baseline(baseline), tmp_path)) == 1
    # No prompt text is written down.
    assert "尽量" not in baseline.read_text("utf-8")


def test_baseline_errors(tmp_path):
    with pytest.raises(ConfigError, match="update-baseline"):
        read_baseline(tmp_path / "none.json")
    for text in ("{", "[]", '{"version": 9, "findings": {}}'):
        (tmp_path / "b.json").write_text(text)
        with pytest.raises(ConfigError):
            read_baseline(tmp_path / "b.json")


def open_fence(page):
    fence = ""
    for line in page.split("\n"):
        marks = line[: len(line) - len(line.lstrip("`"))]
        if fence and line == fence:
            fence = ""
        elif not fence and len(marks) >= 3:
            fence = marks
    return fence


def test_pages():
    pages = render_pages()
    assert set(pages) == {f"{rule.code}.md" for rule in all_rules()} | {"index.md"}
    for rule in all_rules():
        page = pages[f"{rule.code}.md"]
        assert page.startswith(f"# {rule.slug} ({rule.code})\n")
        for heading in ("What it does", "Why is this bad?", "Example", "Use instead", "Source"):
            assert f"## {heading}\n" in page
        assert ("## Fix safety\n" in page) == (rule.fix is not None)
        assert not open_fence(page), rule.code
        assert f"[{rule.code}]({rule.code}.md)" in pages["index.md"]
        # Hidden characters are shown on their pages, not shipped in them.
        assert all(char.isprintable() or char == "\n" for char in page), rule.code


def test_list_rules_is_plain_data():
    rules = list_rules()
    assert json.loads(json.dumps(rules)) == rules
    assert yaml.safe_load(yaml.safe_dump(rules)) == rules
    assert {"code", "slug", "family", "severity", "default", "fix", "message", "what"} == rules[0].keys()
