"""What a rule finds: a place, a message, and sometimes a fix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "info"]
Safety = Literal["safe", "unsafe"]


class Edit(NamedTuple):
    """Replace the file's text from `start` to `end` (offsets, code points) by `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A way to repair a finding. A safe fix changes nothing that the model is told; an unsafe one wants a look.

    `touches` names what the fix changes on purpose and may therefore differ after it: "front-matter" or "variables".
    """

    title: str
    edits: tuple[Edit, ...]
    safety: Safety = "safe"
    touches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule's finding before it is placed: offsets of the file's text."""

    start: int
    end: int
    message: str
    fix: Fix | None = None


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding with its rule and place. Lines and columns (code points) count from 1; the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    code: str
    slug: str
    severity: Severity
    message: str
    start: int
    end: int
    fix: Fix | None = None
    line_text: str = ""

    @property
    def fixable(self) -> bool:
        """Whether `--fix` or `--unsafe-fixes` can repair it."""
        return self.fix is not None
