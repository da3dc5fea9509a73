"""GitHub Actions workflow commands, which become annotations of a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from ..diagnostic import Diagnostic

_LEVELS = {"error": "error", "warning": "warning", "info": "notice"}


def render(diagnostics: Sequence[Diagnostic]) -> str:
    """One command a finding."""
    return "".join(
        f"::{_LEVELS[item.severity]} title={_property(f'{item.code} {item.slug}')},file={_property(item.file)},"
        f"line={item.line},col={item.column},endLine={item.end_line},endColumn={item.end_column}"
        f"::{_data(item.message)}\n"
        for item in diagnostics
    )


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
