"""A flame graph as one self-contained SVG: a function's width is its share of the samples, its callees stand on it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from .profiling import Stack

WIDTH, ROW, LETTER = 1200.0, 18, 6.6
NARROWEST = 0.3  # pixels; a narrower function is left out


@dataclass(slots=True)
class _Node:
    count: int = 0
    inner: dict[str, _Node] = field(default_factory=dict[str, "_Node"])


def flame_graph(stacks: Mapping[Stack, int], title: str = "zlclient engine") -> str:
    """The SVG of `stacks`; a tool tip on each function gives its samples and share."""
    root = _Node()
    for stack, count in stacks.items():
        node = root
        node.count += count
        for name in stack:
            node = node.inner.setdefault(name, _Node())
            node.count += count
    deepest = max(map(len, stacks), default=0)
    height = (deepest + 2) * ROW
    drawn = "".join(_drawn(root, f"{title}: {root.count} samples", 0.0, 0, root.count, height))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:.0f}" height="{height}" '
        f'font-family="monospace" font-size="11">'
        f'<rect width="100%" height="100%" fill="#fffdf7"/>{drawn}</svg>\n'
    )


def _drawn(node: _Node, name: str, left: float, depth: int, total: int, height: int) -> Iterator[str]:
    width = WIDTH * node.count / total if total else WIDTH
    if width < NARROWEST:
        return
    top = height - (depth + 1) * ROW
    share = f"{100 * node.count / total:.1f} %" if total else "no samples"
    letters = int((width - 4) / LETTER)
    shown = name if len(name) <= letters else name[: letters - 1] + "…" if letters > 3 else ""
    yield (
        f"<g><title>{escape(name)} ({node.count}, {share})</title>"
        f'<rect x="{left:.2f}" y="{top}" width="{width:.2f}" height="{ROW - 1}" fill="{_colour(name)}" rx="1"/>'
        f'<text x="{left + 2:.2f}" y="{top + 12}">{escape(shown)}</text></g>'
    )
    for inner in sorted(node.inner):
        yield from _drawn(node.inner[inner], inner, left, depth + 1, total, height)
        left += WIDTH * node.inner[inner].count / total


def _colour(name: str) -> str:
    """Warm, and always the same for a name."""
    hashed = zlib.crc32(name.encode())
    return f"hsl({hashed % 40 + 10}, 80%, {70 + hashed // 64 % 15}%)"
