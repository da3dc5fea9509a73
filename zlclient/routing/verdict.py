"""The verdict on a stage: PROMOTE, HOLD or ROLLBACK, in one sentence, with every gate's evidence.

Promotion needs every gate shown at `alpha`, so testing many gates cannot make it easier. A rollback needs one gate
refuted at `rollback_alpha`, so its chance of being false is at most that times the number of gates, in every stage.
What is not known is never a pass: no data, too little data and a sample-ratio mismatch are HOLD.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Literal

from . import wording
from .evidence import Evidence, gather
from .gates import Gate
from .ratio import RatioCheck, check_ratio
from .rollouts import Rollout
from .samplesize import always_valid_requests
from .state import State
from .tally import Tally

Decided = Literal["PROMOTE", "HOLD", "ROLLBACK"]
Standing = Literal["shown", "refuted", "open", "no data", "no control"]


@dataclass(frozen=True, slots=True)
class GateResult:
    """One gate for one treatment.

    `estimate` and `interval` are on the scale of the gate's offset: the metric's, or the difference from
    factor·control.
    `missing` is how many more requests of the arm are needed at the present rate; None where none would do or where
    there is nothing to go by. `e_value` is the evidence against the gate.
    """

    gate: Gate
    arm: str
    standing: Standing
    n: int = 0
    estimate: float | None = None
    e_value: float | None = None
    missing: int | None = None
    evidence: Evidence | None = None
    alpha: float = 0.05

    @property
    def interval(self) -> tuple[float, float] | None:
        """A confidence sequence for `estimate`; worked out when it is asked for, as judging does not need it."""
        return self.evidence.interval(self.alpha) if self.evidence else None

    def describe(self) -> str:
        """The gate in one line, such as "error_rate of auto 0.02 % (0.01 % … 0.04 %), must be < 0.01 %"."""
        head = f"{self.gate.name} of {self.arm}"
        interval = self.interval
        if self.estimate is None or interval is None:
            return f"{head}: {self.standing}, must be {self.gate.text}"
        value, low, high = (wording.compared(number, self.gate) for number in (self.estimate, *interval))
        against = f" against {_control(self.gate)}" if self.gate.relative else ""
        return f"{head} {value}{against} ({low} … {high}), must be {self.gate.text}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`sentence` begins with the decision. `missing` requests, in about `eta_s` seconds, are what a HOLD waits for."""

    decision: Decided
    sentence: str
    gates: tuple[GateResult, ...] = ()
    ratio: RatioCheck | None = None
    missing: int | None = None
    eta_s: float | None = None


def judge(rollout: Rollout, state: State | None, tally: Tally, now: float) -> Verdict:
    """The verdict at `now`, from the evidence that `tally` holds; pure."""
    if state is None:
        return Verdict("HOLD", "HOLD: not started, everything goes to the control")
    gates = tuple(_judge_gate(gate, arm, rollout, tally, now) for arm in rollout.treatments for gate in rollout.gates)
    seen = {arm: len(found.units) for arm, found in tally.arms.items()}
    ratio = check_ratio(seen, rollout.expected_shares(state.stage))
    if not state.live:
        status = state.status.replace("_", " ")
        return Verdict("HOLD", f"HOLD: {status}, everything goes to {rollout.control}", gates, ratio)
    for result in gates:
        if result.standing == "refuted":
            return Verdict("ROLLBACK", f"ROLLBACK: {result.describe()}", gates, ratio)
    missing, eta = _outlook(gates, tally, rollout, now)
    reason = _why_hold(rollout, state, tally, gates, ratio, missing, eta, now)
    if reason:
        return Verdict("HOLD", f"HOLD: {reason}", gates, ratio, missing, eta)
    return Verdict("PROMOTE", f"PROMOTE: every gate is met; {_next(rollout, state)}", gates, ratio)


def _judge_gate(gate: Gate, arm: str, rollout: Rollout, tally: Tally, now: float) -> GateResult:
    treatment = tally.values(arm, gate.metric, now)
    control = tally.values(rollout.control, gate.metric, now) if gate.relative else ()
    evidence = gather(gate, treatment, control)
    if evidence is None:
        if treatment and not tally.arms[rollout.control].requests:
            return GateResult(gate, arm, "no control", len(treatment))
        return GateResult(gate, arm, "no data", len(treatment), missing=_first_need(gate, rollout))
    standing = _standing(evidence, rollout)
    log_e = evidence.log_e()
    return GateResult(
        gate,
        arm,
        standing,
        evidence.n,
        evidence.estimate,
        None if log_e is None else exp(min(log_e, 700.0)),
        _missing(evidence, len(tally.arms[arm].replies), gate, rollout) if standing == "open" else None,
        evidence,
        rollout.alpha,
    )


def _standing(evidence: Evidence, rollout: Rollout) -> Standing:
    if evidence.refuted(rollout.rollback_alpha):
        return "refuted"
    return "shown" if evidence.shown(rollout.alpha) else "open"


def _missing(evidence: Evidence, replies: int, gate: Gate, rollout: Rollout) -> int | None:
    needed = evidence.needed(rollout.alpha)
    if needed is None or not gate.metric.outcome:
        return needed
    # Only some requests get a label: count the requests it takes, not the labels.
    return int(needed * max(replies / evidence.n, 1.0))


def _first_need(gate: Gate, rollout: Rollout) -> int | None:
    """What an arm without a single bad request would need."""
    if gate.relative or gate.metric.kind == "mean":
        return None
    if gate.metric.kind == "quantile":
        limit = 1 - gate.metric.q if gate.direction == "<" else gate.metric.q
    else:
        limit = gate.offset if gate.direction == "<" else 1 - gate.offset
    return always_valid_requests(limit, 0, rollout.alpha)


def _outlook(
    gates: tuple[GateResult, ...], tally: Tally, rollout: Rollout, now: float
) -> tuple[int | None, float | None]:
    """The most requests that any open gate lacks, and the seconds until the slowest arm has them."""
    waits: list[tuple[int, float | None]] = []
    for result in gates:
        if result.missing:
            rate = tally.arms[result.arm].recent_rate(now)
            delay = rollout.maturation if result.gate.metric.outcome else 0.0
            waits.append((result.missing, result.missing / rate + delay if rate else None))
    if not waits:
        return None, None
    etas = [eta for _, eta in waits if eta is not None]
    return max(missing for missing, _ in waits), max(etas) if len(etas) == len(waits) else None


def _why_hold(
    rollout: Rollout,
    state: State,
    tally: Tally,
    gates: tuple[GateResult, ...],
    ratio: RatioCheck | None,
    missing: int | None,
    eta: float | None,
    now: float,
) -> str | None:
    """Why the stage is not promoted; None if it is."""
    if not gates:
        return "no gates are configured, so only you can advance it"
    if ratio and ratio.mismatch:
        seen = ", ".join(f"{wording.count(units)} units in {arm}" for arm, units in ratio.seen.items())
        return f"sample-ratio mismatch (p = {ratio.p:.1g}: {seen}); find out why before trusting any comparison"
    hopeless = [result for result in gates if result.standing == "open" and result.missing is None]
    if hopeless:
        return f"at the present rate this gate will not be met: {hopeless[0].describe()}"
    if missing:
        when = f", about {wording.duration(eta)} at today's rate" if eta is not None else ""
        return f"needs {wording.count(missing)} more requests{when}"
    unknown = [result for result in gates if result.standing == "no data"]
    if unknown:
        return f"no data for {unknown[0].gate.name} of {unknown[0].arm}"
    # At 100 % no control is left: a relative gate was answered by the stages before.
    if all(result.standing == "no control" for result in gates) and not tally.arms[gates[0].arm].requests:
        return "no data"
    wait = state.started + rollout.dwell - now
    return f"every gate is met; this stage lasts another {wording.duration(wait)}" if wait > 0 else None


def _next(rollout: Rollout, state: State) -> str:
    if not rollout.stages:
        return f"{' and '.join(rollout.treatments)} may replace {rollout.control}"
    if state.status == "completed" or state.stage == len(rollout.stages) - 1:
        return f"{rollout.stages[state.stage] * 100:g} % is the last stage, the rollout is complete"
    here, there = (rollout.stages[stage] * 100 for stage in (state.stage, state.stage + 1))
    return f"go from {here:g} % to {there:g} %"


def _control(gate: Gate) -> str:
    return "control" if gate.factor == 1 else f"{gate.factor:g}x control"
