"""One line a finding: `file:line:column: CODE message`."""

from __future__ import annotations

from collections.abc import Sequence

from ..diagnostic import Diagnostic


def line(item: Diagnostic) -> str:
    """The finding in one line."""
    mark = "" if item.fix is None else "[*] " if item.fix.safety == "safe" else "[~] "
    return f"{item.file}:{item.line}:{item.column}: {item.code} {mark}{item.message}"


def render(diagnostics: Sequence[Diagnostic]) -> str:
    """All findings; [*] has a safe fix, [~] an unsafe one."""
    return "".join(line(item) + "\n" for item in diagnostics)
