"""`--add-noqa`: silence what is found today, with one comment a line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from zlclient.prompts.source import PromptSource, parse_source

from .diagnostic import Diagnostic, Edit
from .suppression import noqa_comment

# Formats whose comments stand beside the prompts: one that became part of a prompt would change what a model is told.
_BESIDE = ("python", "yaml", "github-models", "promptfoo")


def add_noqa(text: str, path: str | None, diagnostics: Iterable[Diagnostic]) -> tuple[str, int]:
    """(the text with comments, how many findings they silence). Lines that cannot carry one stay as they are."""
    source = parse_source(text, path)
    by_line: dict[int, set[str]] = defaultdict(set)
    found = list(diagnostics)
    for item in found:
        by_line[item.line].add(item.code)
    edits: dict[int, set[str]] = defaultdict(set)
    for line, codes in by_line.items():
        edit = noqa_comment(source, line, ())
        if edit:
            edits[edit.start] |= codes
    made: list[Edit] = []
    for start, codes in edits.items():
        line = source.line_col(start)[0]
        edit = noqa_comment(source, line, codes)
        if edit:
            made.append(edit)
    fixed = text
    for edit in sorted(made, reverse=True):
        fixed = fixed[: edit.start] + edit.text + fixed[edit.end :]
    if source.format in _BESIDE and _prompts(parse_source(fixed, path)) != _prompts(source):
        return text, 0
    placed = {code for codes in edits.values() for code in codes}
    return fixed, sum(item.code in placed for item in found)


def _prompts(source: PromptSource) -> list[str]:
    return [part.text for part in source.parts]
