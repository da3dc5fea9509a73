"""The claims of the source articles, from `claims.toml`, and what an interval says of each."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from ...errors import ConfigError
from .intervals import Estimate

Rule = Literal["at_most", "at_least", "above"]
RULES: tuple[Rule, ...] = ("at_most", "at_least", "above")


@dataclass(frozen=True, slots=True)
class Claim:
    """`says` holds where the estimate at `path` of the results keeps to `bound`; `rests_on` says what decides it."""

    key: str
    says: str
    path: tuple[str, ...]
    rule: Rule
    bound: float
    rests_on: str


@cache
def claims() -> tuple[Claim, ...]:
    """All claims; raises ConfigError for a malformed table."""
    text = (files(__package__ or "zlclient.engine.evaluation") / "claims.toml").read_text("utf-8")
    return tuple(_claim(table) for table in tomllib.loads(text)["claims"])


def _claim(table: Mapping[str, Any]) -> Claim:
    rules: list[Rule] = [rule for rule in RULES if rule in table]
    if len(rules) != 1 or set(table) != {"key", "says", "path", "rests_on", *rules}:
        raise ConfigError(
            "needs `key`, `says`, `path`, `rests_on` and one of `at_most`, `at_least`, `above`",
            key=str(table.get("key")), file="claims.toml",
        )  # fmt: skip
    return Claim(
        table["key"],
        table["says"],
        tuple(table["path"].split(".")),
        rules[0],
        float(table[rules[0]]),
        table["rests_on"],
    )


def verdict(estimate: Estimate, rule: Rule, bound: float) -> str:
    """`reached`, `not reached` and by how much, or `open` where the interval holds the bound."""
    low, high = estimate.low, estimate.high
    reached = {"at_most": high <= bound, "at_least": low >= bound, "above": low > bound}[rule]
    missed = {"at_most": low > bound, "at_least": high < bound, "above": high <= bound}[rule]
    if low == high == bound:
        return "reached: no difference" if reached else "not reached: no difference"
    if reached:
        return "reached"
    if missed:
        return f"not reached, by {abs(estimate.value - bound):.3f}"
    return f"open: {low:.3f} to {high:.3f} holds {bound:g}"


def judged(results: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Each claim with its measured estimate in `results` and the verdict."""
    found: dict[str, dict[str, Any]] = {}
    for claim in claims():
        estimate = estimate_at(results, claim.path)
        found[claim.key] = {
            "says": claim.says, "claimed": claim.bound, "rule": claim.rule,
            "measured": estimate.value, "low": estimate.low, "high": estimate.high,
            "verdict": verdict(estimate, claim.rule, claim.bound), "rests_on": claim.rests_on,
        }  # fmt: skip
    return found


def estimate_at(results: Mapping[str, Any], path: tuple[str, ...]) -> Estimate:
    """The estimate that stands at `path`; raises KeyError where there is none."""
    at: Any = results
    for name in path:
        at = at[name]
    value = next(number for name, number in at.items() if name not in ("low", "high"))
    return Estimate(value, at["low"], at["high"])
