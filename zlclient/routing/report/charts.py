"""The report's drawings, as SVG text. Colours are CSS variables, so that one drawing serves light, dark and print."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from math import ceil, floor, isfinite, log10

from .. import wording
from ..metrics import Scale
from ..verdict import GateResult
from .summary import Bin

WIDTH = 720
_LEFT, _RIGHT = 54, 10
_ROW = 46
_TEXT_END = 396

_Place = Callable[[float], float]


def forest(results: Sequence[GateResult]) -> str:
    """Every gate's interval against its threshold. Each row has its own scale; left of the line is always good."""
    height = 30 + _ROW * len(results)
    middle, half = 560, 150
    parts = [
        f'<rect class="allowed" x="{middle - half}" y="22" width="{half}" height="{height - 26}"/>',
        f'<text class="axis" x="{middle - half + 4}" y="15">meets the gate</text>',
        f'<text class="axis end" x="{middle + half - 4}" y="15">does not</text>',
        f'<line class="threshold" x1="{middle}" x2="{middle}" y1="20" y2="{height - 4}"/>',
    ]
    for row, result in enumerate(results):
        y = 42 + row * _ROW
        parts.append(f'<text class="name" x="0" y="{y}">{escape(result.gate.name)}</text>')
        words = f"{result.gate.text} · {result.arm} · {result.standing}"
        parts.append(f'<text class="axis" x="0" y="{y + 15}">{escape(words)}</text>')
        parts.append(_interval(result, y, middle, half))
    return _svg(height, "Every gate's estimate, interval and threshold", "".join(parts))


def _interval(result: GateResult, y: float, middle: float, half: float) -> str:
    value, interval = result.estimate, result.interval
    if value is None or interval is None:
        return f'<text class="axis" x="{middle + 8}" y="{y + 4}">{escape(result.standing)}</text>'
    (low, high), bound = interval, result.gate.offset
    reach = max(abs(end - bound) for end in (value, low, high) if isfinite(end)) * 1.12 or 1.0
    sign = 1 if result.gate.direction == "<" else -1

    def place(number: float) -> float:
        return middle + half * max(-1.0, min(1.0, sign * (number - bound) / reach))

    left, right = sorted((place(low), place(high)))
    words = f"{wording.compared(low, result.gate)} … {wording.compared(high, result.gate)}"
    kind = {"shown": "good", "refuted": "bad"}.get(result.standing, "open")
    return (
        f'<g class="{kind}"><title>{escape(result.describe())}</title>'
        f'<line class="bar" x1="{left:.1f}" x2="{right:.1f}" y1="{y}" y2="{y}"/>'
        f'<circle cx="{place(value):.1f}" cy="{y}" r="4.5"/></g>'
        f'<text class="name end" x="{_TEXT_END}" y="{y}">{escape(wording.compared(value, result.gate))}</text>'
        f'<text class="axis end" x="{_TEXT_END}" y="{y + 15}">{escape(words)}</text>'
    )


def bands(
    bins: Mapping[str, Sequence[Bin]], width_s: float, marks: Sequence[tuple[float, str]], *, errors: bool
) -> str:
    """Requests over time, or the error share with its band; `marks` are (time, word) of the stage changes."""
    times = [item.at for items in bins.values() for item in items]
    start, end = min(times), max(times) + width_s
    top, height, bottom = _top(bins, errors=errors), 190, 160

    def x(at: float) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * (at - start) / (end - start)

    def y(value: float) -> float:
        return bottom - (bottom - 14) * min(value / top, 1.0)

    parts = [_y_axis(top, y, "share" if errors else "number"), _time_axis(start, end, x, bottom)]
    parts.append(_marks([(x(at), word) for at, word in marks if start <= at <= end], bottom))
    for number, (arm, items) in enumerate(bins.items()):
        if not items:
            continue
        middles = [x(item.at + width_s / 2) for item in items]
        values = [item.errors / item.requests if errors else item.requests for item in items]
        if errors:
            upper = [f"{a:.1f},{y(item.high):.1f}" for a, item in zip(middles, items, strict=True)]
            lower = [f"{a:.1f},{y(item.low):.1f}" for a, item in zip(middles, items, strict=True)]
            parts.append(f'<polygon class="band arm{number}" points="{" ".join(upper + lower[::-1])}"/>')
        line = " ".join(f"{a:.1f},{y(value):.1f}" for a, value in zip(middles, values, strict=True))
        parts.append(f'<polyline class="line arm{number}" points="{line}"><title>{escape(arm)}</title></polyline>')
        if len(items) == 1:
            parts.append(f'<circle class="dot arm{number}" cx="{middles[0]:.1f}" cy="{y(values[0]):.1f}" r="3"/>')
    what = "Error share over time, with 95 % bands" if errors else "Requests over time"
    return _svg(height, what, "".join(parts))


def _top(bins: Mapping[str, Sequence[Bin]], *, errors: bool) -> float:
    """The end of the value axis. No line is cut off, but the band of a bin with few requests may be: it says little."""
    every = [item for items in bins.values() for item in items]
    if not errors:
        return max(item.requests for item in every) * 1.05
    enough = max(item.requests for item in every) / 10
    highest = max(item.high for item in every if item.requests >= enough)
    return max(highest, *(item.errors / item.requests for item in every)) * 1.05


def _marks(marks: Sequence[tuple[float, str]], bottom: float) -> str:
    """Dashed lines with a word each; the words of lines that stand close together are joined."""
    parts = [f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="14" y2="{bottom}"/>' for x, _ in marks]
    groups: list[tuple[float, str]] = []
    for x, word in marks:
        if groups and x - groups[-1][0] < 10 + 6 * len(groups[-1][1]):
            groups[-1] = (groups[-1][0], f"{groups[-1][1]}, {word}")
        else:
            groups.append((x, word))
    for x, words in groups:
        late = x > WIDTH - 20 - 6 * len(words)
        place = f'class="axis end" x="{x - 3:.1f}"' if late else f'class="axis" x="{x + 3:.1f}"'
        parts.append(f'<text {place} y="11">{escape(words)}</text>')
    return "".join(parts)


def curves(found: Mapping[str, Sequence[tuple[float, float]]], arms: Sequence[str], scale: Scale, title: str) -> str:
    """The share of requests at or below each value, by arm, on a logarithmic axis."""
    # From the first percentile on: a few tiny values would stretch a logarithmic axis for nothing.
    positive = [value for points in found.values() for value, share in points if value > 0 and share > 0.01] or [1.0]
    low, high = log10(min(positive)), log10(max(positive))
    if high - low < 0.3:
        low, high = (low + high) / 2 - 0.15, (low + high) / 2 + 0.15
    bottom = 180

    def x(value: float) -> float:
        place = (log10(value) - low) / (high - low) if value > 0 else 0.0
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * max(place, 0.0)

    def y(share: float) -> float:
        return bottom - (bottom - 10) * share

    parts: list[str] = []
    for share, word in ((0.5, "50 %"), (0.95, "95 %"), (1.0, ""), (0.0, "0 %")):
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y(share):.1f}" y2="{y(share):.1f}"/>')
        parts.append(f'<text class="axis end" x="{_LEFT - 6}" y="{y(share) + 4:.1f}">{word}</text>')
    for tick in _log_ticks(low, high):
        parts.append(f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="10" y2="{bottom}"/>')
        word = escape(wording.quantity(tick, scale))
        parts.append(f'<text class="axis mid" x="{x(tick):.1f}" y="{bottom + 16}">{word}</text>')
    for arm, points in found.items():
        line = " ".join(f"{x(value):.1f},{y(share):.1f}" for value, share in points)
        number = arms.index(arm)
        parts.append(f'<polyline class="line arm{number}" points="{line}"><title>{escape(arm)}</title></polyline>')
    return _svg(205, title, "".join(parts))


def _svg(height: float, title: str, inside: str) -> str:
    label = escape(title)
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{label}">{inside}</svg>'


def _y_axis(top: float, y: _Place, scale: Scale) -> str:
    step = 10 ** floor(log10(top))
    step = step / 2 if top / step < 2 else step if top / step < 5 else step * 2
    parts: list[str] = []
    for tick in range(int(top / step) + 1):
        at = y(tick * step)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        word = escape(wording.quantity(tick * step, scale))
        parts.append(f'<text class="axis end" x="{_LEFT - 6}" y="{at + 4:.1f}">{word}</text>')
    return "".join(parts)


def _time_axis(start: float, end: float, x: _Place, bottom: float) -> str:
    form = "%m-%d %H:%M" if end - start > 86_400 else "%H:%M"
    parts: list[str] = []
    for part in range(5):
        at = start + (end - start) * part / 4
        kind = "" if part == 0 else " end" if part == 4 else " mid"
        word = datetime.fromtimestamp(at, UTC).strftime(form)
        parts.append(f'<text class="axis{kind}" x="{x(at):.1f}" y="{bottom + 16}">{word}</text>')
    return "".join(parts)


def _log_ticks(low: float, high: float) -> list[float]:
    steps = (1, 2, 5) if high - low < 3 else (1,)
    ticks = [step * 10**power for power in range(floor(low), ceil(high) + 1) for step in steps]
    return [tick for tick in ticks if low <= log10(tick) <= high]
