"""SARIF 2.1.0 (OASIS), for code scanning."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from ..diagnostic import Diagnostic
from ..registry import find_rule

_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def render(diagnostics: Sequence[Diagnostic]) -> str:
    """One run; columns are Unicode code points."""
    codes = sorted({item.code for item in diagnostics})
    rules: list[dict[str, Any]] = []
    for code in codes:
        rule = find_rule(code)
        text = rule.text()
        rules.append(
            {
                "id": code,
                "name": rule.slug,
                "shortDescription": {"text": text.what},
                "fullDescription": {"text": text.why},
                "defaultConfiguration": {"level": _LEVELS[rule.severity]},
            }
        )
    run = {
        "tool": {
            "driver": {"name": "zlclient", "informationUri": "https://github.com/zlclient/zlclient", "rules": rules}
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(item, codes) for item in diagnostics],
    }
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(log, ensure_ascii=False, indent=1) + "\n"


def _result(item: Diagnostic, codes: list[str]) -> dict[str, Any]:
    region = {
        "startLine": item.line,
        "startColumn": item.column,
        "endLine": item.end_line,
        "endColumn": item.end_column,
    }
    location = {"artifactLocation": {"uri": PurePath(item.file).as_posix()}, "region": region}
    return {
        "ruleId": item.code,
        "ruleIndex": codes.index(item.code),
        "level": _LEVELS[item.severity],
        "message": {"text": item.message},
        "locations": [{"physicalLocation": location}],
    }
