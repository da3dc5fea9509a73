"""Numbers as people read them, the same on the command line, in the report and in the verdict's sentence."""

from __future__ import annotations

from math import isinf

from .gates import Gate
from .metrics import Scale


def count(number: int) -> str:
    """12431 → 12,431."""
    return f"{number:,}"


def duration(seconds: float) -> str:
    """One unit, rounded: 40 s, 12 min, 3 h, 5 days."""
    for size, unit in ((172_800, 86_400), (5_400, 3_600), (90, 60)):
        if seconds >= size:
            name = {86_400: "days", 3_600: "h", 60: "min"}[unit]
            return f"{seconds / unit:.0f} {name}"
    return f"{max(seconds, 0):.0f} s"


def quantity(value: float, scale: Scale, *, signed: bool = False) -> str:
    """A metric's value with its unit."""
    if isinf(value):
        return "∞" if value > 0 else "−∞"
    sign = "+" if signed and value > 0 else ""
    if scale == "share":
        return f"{sign}{_digits(value * 100)} {'pp' if signed else '%'}"
    if scale == "seconds":
        return f"{sign}{_digits(value * 1000)} ms" if abs(value) < 1 else f"{sign}{_digits(value)} s"
    return f"{sign}{_digits(value)}" + (" USD" if scale == "usd" else "")


def compared(value: float, gate: Gate) -> str:
    """An estimate or bound of `gate`; with a sign where it is a difference from the control."""
    return quantity(value, gate.metric.scale, signed=gate.relative)


def _digits(value: float) -> str:
    # Three significant digits: no gate here is decided by the fourth.
    size = abs(value)
    if size and not 1e-4 <= size < 1e6:
        return f"{value:.2e}".replace("-", "−")
    places = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3 if size >= 0.1 else 4
    text = f"{value:.{places}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")
