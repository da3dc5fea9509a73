"""Every rule's cases (cases/*.yml) and the examples of its page: what must be found, what must not, what fixes make."""

from dataclasses import fields
from datetime import date
from pathlib import Path

import pytest
import yaml

from zlclient.linting.engine import lint_text
from zlclient.linting.fixing import fix_text
from zlclient.linting.lint_settings import LintSettings
from zlclient.linting.registry import all_rules, find_rule

TODAY = date(2026, 11, 30)
# Found by reading bytes, or on input too long for a page: each has a test of its own in test_engine.py or test_long.py.
ELSEWHERE = {
    "ZL001",
    "ZL002",
    "ZL003",
    "ZL006",
    "ZL007",
    "ZL201",
    "ZL202",
    "ZL207",
    "ZL208",
    "ZL410",
    "ZL501",
    "ZL502",
    "ZL902",
}
SKETCHED = {"ZL001", "ZL002", "ZL003", "ZL006", "ZL007", "ZL202", "ZL410", "ZL501", "ZL502"}


def load():
    for file in sorted((Path(__file__).parent / "cases").glob("*.yml")):
        for code, pairs in yaml.safe_load(file.read_text("utf-8")).items():
            for number, pair in enumerate(pairs):
                yield pytest.param(code, pair, id=f"{file.stem}-{code}-{number}")


CASES = list(load())


def settings(code, extra=None):
    # A comment is unused only where the rule that it names has run.
    select = ("ALL",) if code == "ZL005" else (code,)
    return LintSettings(select=select, today=TODAY, **(extra or {}))


def found(code, text, path, options):
    return [item for item in lint_text(text, path, options) if item.code == code]


@pytest.mark.parametrize(("code", "pair"), CASES)
def test_case(code, pair):
    assert pair.keys() <= {"fail_str", "pass_str", "fix_str", "path", "settings"}
    path = pair.get("path", "prompt.md")
    options = settings(code, pair.get("settings"))
    bad = found(code, pair["fail_str"], path, options)
    assert bad, "nothing found"
    assert [item.message for item in found(code, pair["pass_str"], path, options)] == []
    for item in bad:
        assert 0 <= item.start <= item.end <= len(pair["fail_str"])
    if "fix_str" in pair:
        rule = find_rule(code)
        assert rule.fix is not None
        fixed, made = fix_text(pair["fail_str"], path, options, unsafe=rule.fix == "unsafe")
        assert made
        assert fixed == pair["fix_str"]
        assert fix_text(fixed, path, options, unsafe=True) == (fixed, 0)


@pytest.mark.parametrize(
    "rule", [rule for rule in all_rules() if rule.code not in SKETCHED], ids=lambda rule: rule.code
)
def test_page_example(rule):
    text = rule.text()
    assert found(rule.code, text.example, text.path, settings(rule.code))
    assert [item.message for item in found(rule.code, text.instead, text.path, settings(rule.code))] == []
    # What the page recommends must not trip another default rule either.
    others = lint_text(text.instead, text.path, LintSettings(today=TODAY))
    assert [item.code for item in others if item.code != "ZL403"] == []


def test_every_rule_has_cases():
    covered = {case.values[0] for case in CASES}
    assert {rule.code for rule in all_rules()} - covered <= ELSEWHERE
    assert covered <= {rule.code for rule in all_rules()}


def test_there_are_pairs_in_both_languages():
    pairs = [case.values[1] for case in CASES]
    pages = [rule for rule in all_rules() if rule.code not in SKETCHED]
    chinese = sum(any("\u4e00" <= char <= "\u9fff" for char in pair["fail_str"]) for pair in pairs)
    assert len(pairs) + len(pages) >= 150
    assert chinese >= 60


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_rule_is_complete(rule):
    assert rule.code[:2] == "ZL"
    assert rule.code[2:].isdigit()
    assert rule.slug == rule.slug.lower()
    text = rule.text()
    for field in fields(text):
        if field.name not in ("fix_safety", "note"):
            assert getattr(text, field.name).strip(), field.name
    assert bool(text.fix_safety) == (rule.fix is not None)
    # Only house rules and the one that was mostly noise on real prompts are off.
    assert rule.default == (rule.family != "house" and rule.code != "ZL202")


def test_codes_and_slugs_are_unique():
    rules = all_rules()
    assert len(rules) >= 60
    assert len({rule.code for rule in rules}) == len({rule.slug for rule in rules}) == len(rules)
