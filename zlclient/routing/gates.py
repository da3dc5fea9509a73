"""A gate: a condition that a stage must meet, read from a text such as "<= 200 ms" or ">= control - 2 pp".

    OP VALUE [UNIT]                  absolute: "< 0.01%", "<= 200 ms", "<= 0.02 USD"
    OP [FACTOR x] control [± VALUE [UNIT]]    relative: ">= control", "<= 1.1x control", ">= control - 1 pp"

A bare `control` can never be shown to be met by an arm that is just as good, so it gets a margin, which every
status, report and verdict prints: 2 percentage points for checks and outcomes, 0.1 for errors, 10 % for times,
costs and other numbers. Whoever wants strict superiority writes "control + 0 pp" (or "1x control").
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from .metrics import KNOWN, Metric, Scale, parse_metric
from .tables import Table

_NUMBER = r"(\d+(?:\.\d+)?(?:[eE]-?\d+)?)"
_UNIT = r"(%|pp|ms|s|USD|)"
_ABSOLUTE = re.compile(rf"(<=|>=|<|>)\s*(\$?){_NUMBER}\s*{_UNIT}")
_RELATIVE = re.compile(rf"(<=|>=|<|>)\s*(?:{_NUMBER}\s*[x×*]\s*)?control(?:\s*([+\-−])\s*(\$?){_NUMBER}\s*{_UNIT})?")
_UNITS: dict[Scale, dict[str, float]] = {
    "share": {"%": 0.01, "pp": 0.01, "": 1.0},
    "seconds": {"ms": 0.001, "s": 1.0},
    "usd": {"USD": 1.0, "": 1.0},
    "number": {"": 1.0},
}
_ACCEPTED = 'such as "< 0.01%", "<= 200 ms", ">= control", "<= 1.1x control" or ">= control - 1 pp"'


@dataclass(frozen=True, slots=True)
class Gate:
    """`metric` `direction` bound, where the bound is `offset`, or factor·control + `offset` if `relative`.

    `text` is the condition with its margin spelled out, in the words of the configuration.
    """

    metric: Metric
    direction: Literal["<", ">"]
    factor: float
    offset: float
    relative: bool
    text: str

    @property
    def name(self) -> str:
        """The metric's name."""
        return self.metric.name

    def bound(self, control: float = 0.0) -> float:
        """The bound for a control's value of the metric."""
        return self.factor * control + self.offset if self.relative else self.offset


def parse_gates(table: Table, outcomes: Collection[str]) -> tuple[Gate, ...]:
    """The gates of a table from metric to condition.

    Raises:
        ConfigError: an unknown metric, a condition that cannot be read, or a unit that does not fit the metric.
    """
    return tuple(_parse_gate(table, name, text, outcomes) for name, text in table.items())


def _parse_gate(table: Table, name: str, text: object, outcomes: Collection[str]) -> Gate:
    metric = parse_metric(name, outcomes)
    if metric is None:
        table.refuse(name, text, f"unknown metric; known are {KNOWN}{_declared(outcomes)}")
    if not isinstance(text, str):
        table.refuse(name, text, f"must be a condition {_ACCEPTED}")
    gate = _absolute(table, metric, text.strip()) or _relative(table, metric, text.strip())
    if gate is None:
        table.refuse(name, text, f"must be a condition {_ACCEPTED}")
    return gate


def _declared(outcomes: Collection[str]) -> str:
    return f" ({', '.join(sorted(outcomes))})" if outcomes else ' (outcomes = ["resolved", ...])'


def _absolute(table: Table, metric: Metric, text: str) -> Gate | None:
    match = _ABSOLUTE.fullmatch(text)
    if not match:
        return None
    operator, dollar, number, unit = match.groups()
    bound = float(number) * _unit(table, metric, text, "USD" if dollar else unit)
    if metric.kind == "rate" and not 0 < bound < 1:
        table.refuse(metric.name, text, "a share's bound must lie strictly between 0 and 100 %")
    return Gate(metric, _direction(operator), 0.0, bound, False, text)


def _relative(table: Table, metric: Metric, text: str) -> Gate | None:
    match = _RELATIVE.fullmatch(text)
    if not match:
        return None
    operator, factor, sign, dollar, number, unit = match.groups()
    direction = _direction(operator)
    if factor is None and number is None:
        return _with_margin(metric, direction, operator)
    scale = float(factor) if factor else 1.0
    if scale == 0:
        table.refuse(metric.name, text, "the factor of control must be above 0")
    offset = float(number) * _unit(table, metric, text, "USD" if dollar else unit) if number else 0.0
    if metric.kind == "rate" and offset >= 1:
        table.refuse(metric.name, text, "the distance from control must be less than 100 pp")
    return Gate(metric, direction, scale, offset if sign == "+" else -offset, True, text)


def _with_margin(metric: Metric, direction: Literal["<", ">"], operator: str) -> Gate:
    more = direction == "<"
    if metric.kind == "rate":
        points = 0.1 if metric.source.startswith(("error", "empty")) else 2
        text = f"{operator} control {'+' if more else '-'} {points:g} pp"
        return Gate(metric, direction, 1.0, points / 100 if more else -points / 100, True, text)
    factor = 1.1 if more else 0.9
    return Gate(metric, direction, factor, 0.0, True, f"{operator} {factor}x control")


def _direction(operator: str) -> Literal["<", ">"]:
    return "<" if operator.startswith("<") else ">"


def _unit(table: Table, metric: Metric, text: str, unit: str) -> float:
    accepted = _UNITS[metric.scale]
    if unit not in accepted:
        names = " or ".join(name or "no unit" for name in accepted)
        table.refuse(metric.name, text, f"this metric takes {names}, not {unit or 'a bare number'}")
    return accepted[unit]
