"""How the answers of many segments become few enough for one request. Pure, and it ends for any number and length.

Every finding is held to half the room, so each group but the last has two or more: n findings become at most ⌈n/2⌉,
and two always fit together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..shaping.tokens import count_tokens, with_margin

LEAST_ROOM = 64
_SENTENCE_END = re.compile(r"[。！？!?]|\.(?=\s)|\n")


@dataclass(frozen=True, slots=True)
class Finding:
    """What some segments say, under the anchors of the first and the last. `segments` are their positions."""

    anchors: tuple[str, ...]
    text: str
    segments: tuple[int, ...]

    @property
    def rendered(self) -> str:
        """What is sent of it."""
        return "\n".join((" – ".join(self.anchors), self.text)) if self.anchors else self.text


def cost(text: str, model: str | None) -> int:
    """Tokens to plan for `text`: counted where a tokenizer is installed, else estimated with margin."""
    counted = count_tokens(text, model)
    return counted.n if counted.exact else with_margin(counted.n)


def held(finding: Finding, room: int, model: str | None) -> Finding:
    """`finding` in at most half of `room` tokens (64 or more): its text cut at a sentence's end where it is longer.

    Anchors that would take more than a quarter of the room are left out.
    """
    if cost("".join(finding.anchors), model) > room // 4:
        finding = replace(finding, anchors=())
    while finding.text and (taken := _own(finding, model)) > room // 2:
        length = min(len(finding.text) - 1, len(finding.text) * (room // 2) // taken)
        finding = replace(finding, text=_shorter(finding.text, length))
    return finding


def _own(finding: Finding, model: str | None) -> int:
    return cost(f"{finding.rendered}\n\n", model)


def _shorter(text: str, length: int) -> str:
    ends = [match.end() for match in _SENTENCE_END.finditer(text, length // 2, length)]
    return text[: ends[-1] if ends else length]


def grouped(findings: Sequence[Finding], room: int, model: str | None) -> list[tuple[Finding, ...]]:
    """Neighbours together as far as they fit `room` tokens. Give it findings `held` to the same room."""
    groups: list[tuple[Finding, ...]] = []
    group: list[Finding] = []
    taken = 0
    for finding in findings:
        own = _own(finding, model)
        if group and taken + own > room:
            groups.append(tuple(group))
            group, taken = [], 0
        group.append(finding)
        taken += own
    return [*groups, tuple(group)] if group else groups


def merged(group: Sequence[Finding], text: str) -> Finding:
    """The finding that stands for a whole group."""
    ends = (*group[0].anchors[:1], *group[-1].anchors[-1:])
    return Finding(tuple(dict.fromkeys(ends)), text, tuple(at for finding in group for at in finding.segments))


def listed(findings: Sequence[Finding]) -> str:
    """The findings as one text, for the next request."""
    return "\n\n".join(finding.rendered for finding in findings)


def lines(findings: Sequence[Finding]) -> str:
    """Their lines in order, each once and without anchors: what extracts join to."""
    found = (line.strip() for finding in findings for line in finding.text.splitlines())
    return "\n".join(dict.fromkeys(line for line in found if line))
