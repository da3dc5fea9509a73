"""A baseline: findings that are known and not reported again, remembered by content, so that lines may move."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from zlclient.errors import ConfigError

from .diagnostic import Diagnostic

_VERSION = 1


def fingerprint(diagnostic: Diagnostic, root: Path) -> str:
    """A hash of the rule, the file's path from `root` and the line's text without its white space."""
    path = Path(diagnostic.file).resolve()
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
    line = "".join(diagnostic.line_text.split())
    return sha256("\0".join((diagnostic.code, name, line)).encode("utf-8", "replace")).hexdigest()[:20]


def write_baseline(path: Path, diagnostics: Iterable[Diagnostic]) -> int:
    """Write the findings' fingerprints; how many findings they stand for."""
    root = path.resolve().parent
    counts = Counter(fingerprint(diagnostic, root) for diagnostic in diagnostics)
    text = json.dumps({"version": _VERSION, "findings": dict(sorted(counts.items()))}, indent=1)
    path.write_text(text + "\n", "utf-8")
    return sum(counts.values())


def read_baseline(path: Path) -> Counter[str]:
    """How often each fingerprint is known.

    Raises:
        ConfigError: the file is missing or no baseline.
    """
    try:
        data: Any = json.loads(path.read_text("utf-8"))
    except OSError:
        problem = "cannot be read; write one with --update-baseline"
        raise ConfigError(problem, key="baseline", value=str(path)) from None
    except ValueError as error:
        raise ConfigError(f"is not JSON: {error}", file=str(path)) from None
    findings: Any = cast("dict[str, Any]", data).get("findings") if isinstance(data, dict) else None
    if not isinstance(findings, dict) or cast("dict[str, Any]", data).get("version") != _VERSION:
        raise ConfigError(f"is no baseline of version {_VERSION}", file=str(path))
    return Counter(cast("dict[str, int]", findings))


def subtract(diagnostics: Iterable[Diagnostic], known: Counter[str], root: Path) -> list[Diagnostic]:
    """The findings that the baseline does not know; a second one alike on a second line is new."""
    left = Counter(known)
    fresh: list[Diagnostic] = []
    for diagnostic in diagnostics:
        key = fingerprint(diagnostic, root)
        if left[key] > 0:
            left[key] -= 1
        else:
            fresh.append(diagnostic)
    return fresh
