"""The metrics a gate can watch, by name.

error_rate              share of requests that the arm itself ended in an error; a fallback does not heal it
error_rate.TYPE         the same for one type of error; in TOML quoted: "error_rate.RateLimited" = "< 0.1%"
empty_rate              share of requests that ended as a complete answer without content
ttft_pNN  tpot_pNN  latency_pNN  cost_pNN    quantiles over successes; NN may have decimals, as in p99.9
ttft_mean tpot_mean latency_mean cost_mean   means over successes
fidelity  format  schema                     share of answers that passed the corridor's check
fcr                                          first-contact resolution: share with the outcome `resolved`
NAME  NAME_pNN  NAME_mean                    share of true values, quantile or mean of a declared outcome
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from .. import errors

Kind = Literal["rate", "quantile", "mean"]
Scale = Literal["share", "seconds", "usd", "number"]

CHECKS = ("fidelity", "format", "schema")
_MEASURES: dict[str, Scale] = {"ttft": "seconds", "tpot": "seconds", "latency": "seconds", "cost": "usd"}
_QUANTILE = re.compile(r"(\w+)_p(\d{1,2}(?:\.\d+)?)")
KNOWN = (
    "error_rate, error_rate.TYPE, empty_rate, ttft_pNN, tpot_pNN, latency_pNN, cost_pNN, the same with _mean, "
    "fidelity, format, schema, fcr, or a declared outcome"
)


@dataclass(frozen=True, slots=True)
class Metric:
    """What to take from each request: `source` names it, `kind` says how to sum it up, `q` is the quantile's."""

    name: str
    kind: Kind
    source: str
    scale: Scale
    q: float = 0.0

    @property
    def outcome(self) -> str | None:
        """The reported outcome it stands on, which arrives after the request."""
        return self.source.removeprefix("outcome:") if self.source.startswith("outcome:") else None


def parse_metric(name: str, outcomes: Collection[str] = ()) -> Metric | None:
    """The metric called `name`; None for an unknown one."""
    if name in {"error_rate", "empty_rate"}:
        return Metric(name, "rate", name.removesuffix("_rate"), "share")
    if name.startswith("error_rate."):
        kind = name.removeprefix("error_rate.")
        return Metric(name, "rate", f"error:{kind}", "share") if kind in error_types() else None
    if name in outcomes or name == "fcr":
        return Metric(name, "rate", f"outcome:{name if name in outcomes else 'resolved'}", "share")
    if name in CHECKS:
        return Metric(name, "rate", f"check:{name}", "share")
    if match := _QUANTILE.fullmatch(name):
        base, q = match[1], float(match[2]) / 100
        source = _source(base, outcomes)
        return Metric(name, "quantile", source[0], source[1], q) if source and q > 0 else None
    source = _source(name.removesuffix("_mean"), outcomes) if name.endswith("_mean") else None
    return Metric(name, "mean", *source) if source else None


def error_types() -> frozenset[str]:
    """The names of the error types a request can end with."""
    kinds = [value for value in vars(errors).values() if isinstance(value, type)]
    return frozenset(kind.__name__ for kind in kinds if issubclass(kind, errors.SendError | errors.CheckError))


def _source(base: str, outcomes: Collection[str]) -> tuple[str, Scale] | None:
    if base in _MEASURES:
        return base, _MEASURES[base]
    return (f"outcome:{base}", "number") if base in outcomes else None
