"""Apply fixes to a file's text, checking that each leaves what the prompt says to the program: variables and roles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from zlclient.prompts.source import PromptSource, parse_source

from .diagnostic import Diagnostic, Fix
from .engine import lint_text
from .lint_settings import LintSettings

_MAX_ROUNDS = 12


def apply_edits(text: str, fix: Fix) -> str:
    """`text` with one fix's edits made."""
    for edit in sorted(fix.edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def fix_text(text: str, path: str | None, settings: LintSettings, *, unsafe: bool = False) -> tuple[str, int]:
    """(the fixed text, how many fixes were made); running it on its result changes nothing."""
    made = 0
    for _ in range(_MAX_ROUNDS):
        fixed, count = _round(text, path, lint_text(text, path, settings), unsafe)
        made += count
        if fixed == text:
            break
        text = fixed
    return text, made


def _round(text: str, path: str | None, diagnostics: Iterable[Diagnostic], unsafe: bool) -> tuple[str, int]:
    """Make all fixes that do not overlap; those whose result fails the check are left out one by one."""
    chosen: list[Fix] = []
    free = len(text) + 1
    candidates = [d.fix for d in diagnostics if d.fix and (unsafe or d.fix.safety == "safe")]
    for fix in sorted(candidates, key=lambda fix: max(edit.end for edit in fix.edits), reverse=True):
        if max(edit.end for edit in fix.edits) <= free and min(edit.start for edit in fix.edits) < free:
            chosen.append(fix)
            free = min(edit.start for edit in fix.edits)
    if not chosen:
        return text, 0
    before = parse_source(text, path)
    touches = frozenset(name for fix in chosen for name in fix.touches)
    together = text
    for fix in chosen:
        together = apply_edits(together, fix)
    if _keeps(before, parse_source(together, path), touches):
        return together, len(chosen)
    made = 0
    for fix in chosen:
        alone = apply_edits(text, fix)
        if alone != text and _keeps(parse_source(text, path), parse_source(alone, path), frozenset(fix.touches)):
            text, made = alone, made + 1
    return text, made


def _keeps(before: PromptSource, after: PromptSource, touches: frozenset[str]) -> bool:
    """Whether the file still says the same to the program that renders it."""
    same = shape(before, touches) == shape(after, touches)
    return same and len(after.problems) <= len(before.problems)


def shape(source: PromptSource, touches: frozenset[str] = frozenset()) -> tuple[Any, ...]:
    """What fixes keep: format, roles in order, names of variables, front matter or the keys of the YAML document."""
    roles = [(part.role, part.kind, part.name) for part in source.parts]
    variables = None if "variables" in touches else [(item.name, item.output) for item in source.variables]
    front = None if "front-matter" in touches or source.front is None else source.front.data
    data = None if "front-matter" in touches else _keys(source.data)
    return source.format, source.dialect, roles, variables, front, data


def _keys(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _keys(value) for key, value in data.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(data, list):
        return [_keys(value) for value in data]  # pyright: ignore[reportUnknownVariableType]
    return None if isinstance(data, str) else data
