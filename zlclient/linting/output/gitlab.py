"""GitLab's Code Quality report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import PurePath
from typing import Any

from ..diagnostic import Diagnostic

_LEVELS = {"error": "major", "warning": "minor", "info": "info"}


def render(diagnostics: Sequence[Diagnostic]) -> str:
    """A list of issues, each with a fingerprint that no other in the report has."""
    seen: Counter[str] = Counter()
    issues: list[dict[str, Any]] = []
    for item in diagnostics:
        key = f"{item.code}\0{item.file}\0{item.line_text.strip()}"
        seen[key] += 1
        issues.append(
            {
                "check_name": item.code,
                "description": f"{item.code} {item.slug}: {item.message}",
                "severity": _LEVELS[item.severity],
                "fingerprint": sha256(f"{key}\0{seen[key]}".encode("utf-8", "replace")).hexdigest(),
                "location": {
                    "path": PurePath(item.file).as_posix(),
                    "lines": {"begin": item.line, "end": item.end_line},
                },
            }
        )
    return json.dumps(issues, ensure_ascii=False, indent=1) + "\n"
