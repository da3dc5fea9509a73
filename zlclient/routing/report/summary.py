"""The facts of a report, read once from the store; everything that is shown is here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from math import isfinite, sqrt
from statistics import median
from typing import Any

from ..evidence import quantile
from ..judge import Judge
from ..rollouts import Rollout
from ..state import Event, State
from ..stores import Store
from ..tally import MEASURES, ArmTally, Tally
from ..verdict import Verdict

BINS = 48
POINTS = 100
EXAMPLES = 5
EXAMPLE_CHARS = 1_500


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """One arm at the present stage. `quantiles` maps a measure to its p50, p95 and p99."""

    arm: str
    requests: int
    units: int
    errors: dict[str, int]
    skipped: int
    fallbacks: int
    quantiles: dict[str, tuple[float, float, float]]


@dataclass(frozen=True, slots=True)
class Bin:
    """Requests and errors of one arm in [at, at + width) seconds, with Wilson's 95 % band for the error share."""

    at: float
    requests: int
    errors: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ShadowSummary:
    """What shadow copies showed. `checks` maps each check to (both passed, only control, only treatment, neither)."""

    copies: int
    errors: int
    cost_usd: float
    similarity: float | None
    length_ratio: float | None
    checks: dict[str, tuple[int, int, int, int]]
    examples: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Summary:
    """A rollout at one moment. `curves` holds, by measure and arm, (value, share of requests at or below it)."""

    name: str
    now: float
    rollout: Rollout
    state: State | None
    verdict: Verdict
    arms: list[ArmSummary]
    curves: dict[str, dict[str, list[tuple[float, float]]]]
    bins: dict[str, list[Bin]]
    bin_width: float
    shadow: ShadowSummary | None
    history: list[Event]


class Reporter:
    """Summarises one rollout again and again, each time reading only what is new; one thread at a time."""

    def __init__(self, rollout: Rollout, store: Store) -> None:
        self._rollout, self._store = rollout, store
        self._judge, self._whole = Judge(rollout, store), Tally(rollout)

    def summarise(self, now: float) -> Summary:
        """Comparisons are of the present stage, the course over time of all stages."""
        rollout, whole = self._rollout, self._whole
        state, tally, verdict = self._judge.look(now)
        whole.read(self._store)
        width = _bin_width(whole)
        return Summary(
            name=rollout.name,
            now=now,
            rollout=rollout,
            state=state,
            verdict=verdict,
            arms=[_arm(arm, found) for arm, found in tally.arms.items()],
            curves={
                measure: curves
                for measure in MEASURES
                if (curves := {arm: _curve(t.values[measure]) for arm, t in tally.arms.items() if t.values[measure]})
            },
            bins={arm: _bins(found, width) for arm, found in whole.arms.items()},
            bin_width=width,
            shadow=_shadow(whole.shadows),
            history=self._store.history(rollout.name),
        )


def summarise(rollout: Rollout, store: Store, now: float) -> Summary:
    """Everything about `rollout`, read once."""
    return Reporter(rollout, store).summarise(now)


def as_json(summary: Summary) -> dict[str, Any]:
    """Plain values for `json.dumps`: an unbounded interval end is None."""
    plan, verdict = summary.rollout, summary.verdict
    return {
        "name": summary.name,
        "now": summary.now,
        "decision": verdict.decision,
        "sentence": verdict.sentence,
        "missing_requests": verdict.missing,
        "eta_s": verdict.eta_s,
        "state": asdict(summary.state) if summary.state else None,
        "stages_percent": [stage * 100 for stage in plan.stages],
        "control": plan.control,
        "treatments": list(plan.treatments),
        "alpha": plan.alpha,
        "rollback_alpha": plan.rollback_alpha,
        "gates": [
            {
                "metric": result.gate.name,
                "condition": result.gate.text,
                "arm": result.arm,
                "standing": result.standing,
                "n": result.n,
                "estimate": result.estimate,
                "low": _finite(result.interval and result.interval[0]),
                "high": _finite(result.interval and result.interval[1]),
                "bound": result.gate.offset,
                "relative": result.gate.relative,
                "e_value": result.e_value,
                "missing_requests": result.missing,
                "describe": result.describe(),
            }
            for result in verdict.gates
        ],
        "sample_ratio": None if verdict.ratio is None else asdict(verdict.ratio) | {"mismatch": verdict.ratio.mismatch},
        "arms": [asdict(arm) for arm in summary.arms],
        "bin_width_s": summary.bin_width,
        "bins": {arm: [asdict(item) for item in bins] for arm, bins in summary.bins.items()},
        "shadow": asdict(summary.shadow) if summary.shadow else None,
        "history": [asdict(event) for event in summary.history],
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def _arm(arm: str, found: ArmTally) -> ArmSummary:
    quantiles: dict[str, tuple[float, float, float]] = {}
    for measure in MEASURES:
        ordered = sorted(found.values[measure])
        if ordered:
            quantiles[measure] = (quantile(ordered, 0.5), quantile(ordered, 0.95), quantile(ordered, 0.99))
    return ArmSummary(
        arm, found.requests, len(found.units), dict(found.errors), found.skipped, found.fallbacks, quantiles
    )


def _curve(values: Sequence[float]) -> list[tuple[float, float]]:
    ordered, n = sorted(values), len(values)
    ranks = sorted({round(place * (n - 1) / (POINTS - 1)) for place in range(POINTS)})
    return [(ordered[rank], (rank + 1) / n) for rank in ranks]


def _bin_width(tally: Tally) -> float:
    minutes = [minute for arm in tally.arms.values() for minute in arm.by_minute]
    if not minutes:
        return 60.0
    span = (max(minutes) - min(minutes) + 1) * 60
    nice = (60, 300, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 604_800)
    return float(next((width for width in nice if span <= width * BINS), nice[-1]))


def _bins(found: ArmTally, width: float) -> list[Bin]:
    sums: dict[int, tuple[int, int]] = {}
    for minute, (requests, errors) in found.by_minute.items():
        place = int(minute * 60 // width)
        before = sums.get(place, (0, 0))
        sums[place] = (before[0] + requests, before[1] + errors)
    return [Bin(place * width, n, k, *_wilson(k, n)) for place, (n, k) in sorted(sums.items())]


def _wilson(k: int, n: int, z: float = 1.96) -> tuple[float, float]:
    share, spread = k / n, z * z / n
    middle = (share + spread / 2) / (1 + spread)
    half = z * sqrt(share * (1 - share) / n + spread / (4 * n)) / (1 + spread)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def _shadow(copies: Collection[dict[str, Any]]) -> ShadowSummary | None:
    if not copies:
        return None
    checks: dict[str, list[int]] = {}
    for copy in copies:
        for name, (control, treatment) in copy.get("checks", {}).items():
            checks.setdefault(name, [0, 0, 0, 0])[2 * (not control) + (not treatment)] += 1
    return ShadowSummary(
        copies=len(copies),
        errors=sum("error_type" in copy for copy in copies),
        cost_usd=sum(copy.get("cost_usd", 0.0) for copy in copies),
        similarity=_median([copy["similarity"] for copy in copies if "similarity" in copy]),
        length_ratio=_median([copy["length_ratio"] for copy in copies if "length_ratio" in copy]),
        checks={name: (both, first, second, none) for name, (both, first, second, none) in checks.items()},
        examples=_examples(copies),
    )


def _examples(copies: Collection[dict[str, Any]]) -> list[dict[str, Any]]:
    """The most different pairs of answers, where their texts were recorded."""
    texts = [copy for copy in copies if "control_text" in copy and "treatment_text" in copy]
    texts.sort(key=lambda copy: copy.get("similarity", 1.0))
    return [
        {
            "reply_id": copy["reply_id"],
            "similarity": copy.get("similarity"),
            "control": copy["control_text"][:EXAMPLE_CHARS],
            "treatment": copy["treatment_text"][:EXAMPLE_CHARS],
        }
        for copy in texts[:EXAMPLES]
    ]


def _median(values: list[float]) -> float | None:
    return median(values) if values else None
