"""The linter for prompts: `lint("prompt.md")` or `lint("You are …")`, and `zlclient lint` on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .diagnostic import Diagnostic
    from .lint_settings import LintSettings

__all__ = ["lint"]


def lint(
    text_or_path: str | Path,
    /,
    *,
    name: str | None = None,
    settings: LintSettings | None = None,
    **options: Any,
) -> list[Diagnostic]:
    """Findings for a file, a folder, or prompt text.

        lint("templates/")                           a folder or file that exists
        lint("请简洁回答，并详细展开每一点")              anything else is text
        lint(text, name="a.prompty", select=("ZL3",))   `name` tells the text's format

    `options` are fields of `LintSettings` (select, ignore, target_model, …) over those of the configuration files.

    Raises:
        ConfigError: a setting is wrong, or a `Path` does not exist.
    """
    from .engine import lint_text
    from .lint_settings import load_settings
    from .running import Linter

    if isinstance(text_or_path, str) and not _is_path(text_or_path, name):
        return lint_text(text_or_path, name, settings or load_settings(Path.cwd(), **options))
    linter = Linter(options)
    path = Path(text_or_path)
    if settings is not None:
        from .discovery import find_files
        from .engine import lint_file

        return [d for file in find_files([path], settings) for d in lint_file(file, settings).diagnostics]
    return [item for report in linter.reports(linter.files([path])) for item in report.diagnostics]


def _is_path(text: str, name: str | None) -> bool:
    """Whether a string names something that exists; prompt text is longer, or has line breaks, or names nothing."""
    if name is not None or "\n" in text or len(text) > 1000 or "\0" in text:
        return False
    try:
        return bool(text) and Path(text).exists()
    except OSError:
        return False
