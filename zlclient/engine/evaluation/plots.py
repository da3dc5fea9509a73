"""Line charts as SVG: a few series with intervals, axes linear or logarithmic, nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 560, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 34, 62
COLOURS = ("#b8452f", "#1f5fa8", "#3c7d4a", "#8a6d1f")
Point = tuple[float, float, float, float]  # x, y, and y's interval


@dataclass(frozen=True, slots=True)
class Axis:
    """The values from `low` to `high` on `length` pixels from `start`."""

    low: float
    high: float
    start: float
    length: float
    log: bool

    def at(self, value: float) -> float:
        """The pixel of a value."""
        low, high, value = (math.log(number) if self.log else number for number in (self.low, self.high, value))
        return self.start + self.length * ((value - low) / (high - low) if high > low else 0.5)

    def ticks(self) -> list[float]:
        """Values to write beside the axis: powers, or about five round ones."""
        if self.log:
            base = 2 if self.high / self.low < 300 else 10
            first, last = math.ceil(math.log(self.low, base) - 1e-9), math.floor(math.log(self.high, base) + 1e-9)
            powers = [float(base**power) for power in range(first, last + 1)]
            return powers if len(powers) > 1 else [self.low, self.high]
        step = _round_step((self.high - self.low) / 5)
        first = math.ceil(self.low / step - 1e-9)
        return [number * step for number in range(first, math.floor(self.high / step + 1e-9) + 1)]


def chart(
    title: str,
    series: Mapping[str, Sequence[Point]],
    *,
    x: str,
    y: str,
    log_x: bool = False,
    log_y: bool = False,
) -> str:
    """An SVG of `series`, name → points; intervals are drawn as vertical bars.

    Raises:
        ValueError: there is no point, or a value ≤ 0 on a logarithmic axis.
    """
    points = [point for row in series.values() for point in row]
    if not points:
        raise ValueError(f"{title}: nothing to draw")
    across = _axis([point[0] for point in points], LEFT, WIDTH - LEFT - RIGHT, log_x)
    up = _axis([value for point in points for value in point[1:]], HEIGHT - BOTTOM, TOP + BOTTOM - HEIGHT, log_y)
    parts = [
        f'<text x="{LEFT}" y="20" font-weight="bold">{escape(title)}</text>',
        f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="#888"/>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 28}" text-anchor="middle">{escape(x)}</text>',
        f'<text transform="translate(14 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(y)}</text>",
        *(_tick(across.at(value), HEIGHT - BOTTOM + 16, "middle", value) for value in across.ticks()),
        *(_tick(LEFT - 6, up.at(value) + 4, "end", value) for value in up.ticks()),
    ]
    for number, (name, row) in enumerate(series.items()):
        parts += _series(name, row, across, up, COLOURS[number % len(COLOURS)], LEFT + 120 * number)
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _axis(values: Sequence[float], start: float, length: float, log: bool) -> Axis:
    low, high = min(values), max(values)
    if log:
        return Axis(low, high, start, length, True)
    room = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    return Axis(0.0 if 0 <= low < high / 2 else low - room, high + room, start, length, False)


def _round_step(step: float) -> float:
    size = 10 ** math.floor(math.log10(step))
    return size * next(factor for factor in (1, 2, 5, 10) if factor * size >= step * 0.999)


def _tick(x: float, y: float, anchor: str, value: float) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#555">{value:.6g}</text>'


def _series(name: str, row: Sequence[Point], across: Axis, up: Axis, colour: str, label: float) -> list[str]:
    placed = [(across.at(x), up.at(y), up.at(low), up.at(high)) for x, y, low, high in row]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in placed)
    return [
        f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{line}"/>',
        *(f'<path d="M{x:.1f} {low:.1f}V{high:.1f}" stroke="{colour}"/>' for x, _, low, high in placed),
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y, _, _ in placed),
        f'<text x="{label}" y="{HEIGHT - 8}" fill="{colour}">{escape(name)}</text>',
    ]
