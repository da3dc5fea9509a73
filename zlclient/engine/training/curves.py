"""The loss, exact-match and gate curves of a run's log, as one SVG."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

WIDTH, HEIGHT, EDGE = 640, 180, 36
_PANELS = (
    ("loss", ("loss",)),
    ("held-out exact match and F1", ("zh", "en", "unstated_f1")),
    ("open position gates", ("open",)),
)
_COLOURS = ("#1f5fa8", "#b8452f", "#3c7d4a")


def draw_curves(log: Path, out: Path) -> None:
    """Read a training.jsonl and write an SVG; raises OSError or ValueError where the log cannot be read."""
    rows = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    rows = [row for row in rows if row.get("event", "progress") == "progress"]
    rows = [{**row, "open": sum(row["gates"])} if "gates" in row else row for row in rows]
    panels = [
        _panel(title, {key: [(row["step"], row[key]) for row in rows if key in row] for key in keys}, at * HEIGHT)
        for at, (title, keys) in enumerate(_PANELS)
    ]
    size = f'width="{WIDTH}" height="{HEIGHT * len(panels)}"'
    body = "\n".join(panels)
    out.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">\n{body}\n</svg>\n',
        "utf-8",
    )


def _panel(title: str, curves: dict[str, list[tuple[float, float]]], top: int) -> str:
    points = [point for curve in curves.values() for point in curve]
    last = max((step for step, _ in points), default=1) or 1
    most = max((value for _, value in points), default=1) or 1
    parts = [
        f'<text x="{EDGE}" y="{top + 14}">{title} (largest {most:.3g}, {last:.0f} steps)</text>',
        f'<path d="M{EDGE} {top + 22}v{HEIGHT - 50}h{WIDTH - 2 * EDGE}" fill="none" stroke="#bbb"/>',
    ]
    for at, ((name, curve), colour) in enumerate(zip(curves.items(), _COLOURS, strict=False)):
        parts.append(f'<polyline fill="none" stroke="{colour}" points="{_line(curve, last, most, top)}"/>')
        parts.append(f'<text x="{EDGE + at * 120}" y="{top + HEIGHT - 12}" fill="{colour}">{name}</text>')
    return "\n".join(parts)


def _line(curve: Sequence[tuple[float, float]], last: float, most: float, top: int) -> str:
    width, height = WIDTH - 2 * EDGE, HEIGHT - 50
    return " ".join(
        f"{EDGE + step / last * width:.1f},{top + 22 + height * (1 - value / most):.1f}" for step, value in curve
    )
