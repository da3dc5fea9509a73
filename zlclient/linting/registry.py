"""All rules, and which of them a selection means. A selector is a code, a prefix of codes, a slug, a family, or ALL."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import cast

from zlclient.errors import ConfigError

from .rule import Rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """One instance of every rule, by code."""
    from . import rules

    found: list[Rule] = []
    for family in rules.FAMILIES:
        for value in cast("list[object]", list(vars(family).values())):
            if not (isinstance(value, type) and issubclass(value, Rule)):
                continue
            if value.__module__ == family.__name__ and "code" in value.__dict__:
                value.family = getattr(family, "FAMILY", family.__name__.rpartition(".")[2])
                found.append(value())
    return tuple(sorted(found, key=lambda rule: rule.code))


def find_rule(name: str) -> Rule:
    """The rule of a code or slug.

    Raises:
        ConfigError: there is no such rule.
    """
    for rule in all_rules():
        if name.upper() == rule.code or name.lower() == rule.slug:
            return rule
    raise ConfigError("no such rule; see --list-rules", key="rule", value=name)


def check_selectors(selectors: Iterable[str], *, key: str, file: str | None = None, line: int | None = None) -> None:
    """Raise ConfigError for a selector that means no rule."""
    for selector in selectors:
        if not any(_strength(rule, selector) for rule in all_rules()):
            problem = "means no rule; give a code such as ZL012, a prefix such as ZL3, a slug, a family, or ALL"
            raise ConfigError(problem, key=key, value=selector, file=file, line=line)


def _strength(rule: Rule, selector: str) -> int:
    """How narrowly `selector` means `rule`; 0 if not at all."""
    if selector == "ALL":
        return 1
    if selector.lower() == rule.family:
        return 3
    if selector.lower() == rule.slug or selector.upper() == rule.code:
        return 9
    return len(selector) if selector.upper().startswith("ZL") and rule.code.startswith(selector.upper()) else 0


@cache
def selected(select: tuple[str, ...], extend: tuple[str, ...], ignore: tuple[str, ...]) -> tuple[Rule, ...]:
    """The rules that run: the narrowest selector decides, and `ignore` wins a draw. No `select` means the defaults."""
    chosen: list[Rule] = []
    for rule in all_rules():
        wanted = max([_strength(rule, item) for item in (*select, *extend)], default=0)
        if not select and rule.default:
            wanted = max(wanted, 1)
        unwanted = max([_strength(rule, item) for item in ignore], default=0)
        if wanted > unwanted:
            chosen.append(rule)
    return tuple(chosen)
