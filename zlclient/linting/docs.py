"""Rule pages, generated from the rules themselves."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from .registry import all_rules
from .rule import Rule

_FAMILIES = {
    "file": "Files",
    "safety": "Safety",
    "template": "Templates",
    "structure": "Structure",
    "wording": "Wording",
    "model": "Models",
    "cache": "Prompt caching",
    "format": "Output format",
    "house": "House rules",
}


def render_rule(rule: Rule) -> str:
    """One rule's page as Markdown."""
    text = rule.text()
    kind = PurePath(text.path).suffix.lstrip(".") or "text"
    on = "on" if rule.default else "off by default; select it to use it"
    lines = [
        f"# {rule.slug} ({rule.code})",
        f"Family: {rule.family} · severity: {rule.severity} · {on}",
        "## What it does",
        text.what,
        "## Why is this bad?",
        text.why,
        "## Example",
        _code(text.example, kind),
        "## Use instead",
        _code(text.instead, kind),
    ]
    if rule.fix:
        lines += ["## Fix safety", text.fix_safety or f"The fix is {rule.fix}."]
    if text.note:
        lines += ["## Note", text.note]
    lines += ["## Source", text.source]
    return "\n\n".join(line.strip("\n") for line in lines) + "\n"


def _code(text: str, kind: str) -> str:
    fence = "````" if "```" in text else "```"
    shown = "".join(char if char.isprintable() or char == "\n" else f"<U+{ord(char):04X}>" for char in text.rstrip())
    return f"{fence}{kind}\n{shown}\n{fence}"


def render_pages() -> dict[str, str]:
    """Every page by file name, `index.md` with a table of all rules among them."""
    pages = {f"{rule.code}.md": render_rule(rule) for rule in all_rules()}
    pages["index.md"] = render_index()
    return pages


def render_index() -> str:
    """A table of all rules by family."""
    lines = ["# Rules", ""]
    for family, title in _FAMILIES.items():
        rules = [rule for rule in all_rules() if rule.family == family]
        if not rules:
            continue
        lines += [f"## {title}", "", "| Code | Name | What it does | Fix |", "|---|---|---|---|"]
        lines += [
            f"| [{rule.code}]({rule.code}.md) | {rule.slug} | {_cell(rule.text().what)} | {rule.fix or ''} |"
            for rule in rules
        ]
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def list_rules() -> list[dict[str, Any]]:
    """Every rule as plain data, for `--list-rules --output-format json`."""
    return [
        {
            "code": rule.code,
            "slug": rule.slug,
            "family": rule.family,
            "severity": rule.severity,
            "default": rule.default,
            "fix": rule.fix,
            "message": rule.message,
            "what": " ".join(rule.text().what.split()),
        }
        for rule in all_rules()
    ]
