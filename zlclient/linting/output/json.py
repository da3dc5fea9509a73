"""A JSON list of findings; never wrapped, so that programs can read it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..diagnostic import Diagnostic


def as_dict(item: Diagnostic) -> dict[str, Any]:
    """The finding as plain data."""
    fix = item.fix
    return {
        "file": item.file,
        "line": item.line,
        "column": item.column,
        "end_line": item.end_line,
        "end_column": item.end_column,
        "code": item.code,
        "slug": item.slug,
        "severity": item.severity,
        "message": item.message,
        "fixable": item.fixable,
        "fix": None if fix is None else {"title": fix.title, "safety": fix.safety},
    }


def render(diagnostics: Sequence[Diagnostic]) -> str:
    """A list of objects."""
    return json.dumps([as_dict(item) for item in diagnostics], ensure_ascii=False, indent=1) + "\n"
