"""Role lines: `system:`, `# user:`, `user[name="Ann"]:` alone on a line (prompty specification 0.1.0-draft)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, cast

from .parts import Role, Tag

# Runs of blanks are bounded, or a megabyte of spaces would cost quadratic time.
ROLE_LINE = re.compile(
    r"^[ \t]{0,16}#?[ \t]{0,16}(?P<role>system|developer|user|assistant|tool)[ \t]{0,16}"
    r"(?:\[(?P<attributes>[^\]\r\n]{0,400})\])?[ \t]{0,16}:[ \t]*(?=\r?$)",
    re.MULTILINE | re.IGNORECASE,
)
# A value that begins a line with a role and a colon, whatever follows: what a strict input may not hold.
FORGED_ROLE = re.compile(
    r"^[ \t]{0,16}#?[ \t]{0,16}(?:system|developer|user|assistant|tool)[ \t]{0,16}"
    r"(?:\[[^\]\r\n]{0,400}\])?[ \t]{0,16}:",
    re.MULTILINE | re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"(\w+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s,\"']+))")


class RoleLine(NamedTuple):
    """A role line at `start`; its message's text begins at `body`."""

    role: Role
    attributes: dict[str, str | int | float | bool]
    start: int
    body: int


def find_role_lines(text: str, tags: Iterable[Tag] = ()) -> list[RoleLine]:
    """Role lines of a template, without those inside its tags (comments, above all)."""
    busy = [(tag.start, tag.end) for tag in tags]
    lines: list[RoleLine] = []
    index = 0
    for match in ROLE_LINE.finditer(text):
        while index < len(busy) and busy[index][1] <= match.start():
            index += 1
        if index < len(busy) and busy[index][0] < match.end():
            continue
        body = match.end()
        body += 2 if text.startswith("\r\n", body) else 1 if body < len(text) else 0
        role = cast("Role", match["role"].lower())
        lines.append(RoleLine(role, parse_attributes(match["attributes"] or ""), match.start(), body))
    return lines


def parse_attributes(text: str) -> dict[str, str | int | float | bool]:
    """`name="Ann", id=7` as a dict; unquoted numbers and booleans become such."""
    found: dict[str, str | int | float | bool] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(text):
        found[name] = _scalar(bare) if bare else double or single
    return found


def _scalar(text: str) -> str | int | float | bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
