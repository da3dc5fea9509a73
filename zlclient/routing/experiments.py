"""An experiment and its decisions: which arm answers a unit, and why.

`Experiment` is the configuration, `Assigner` the same compiled for one set of ranges. Deciding is pure, local and
takes a few microseconds: one hash, one bisection.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from uuid import uuid4

from ..errors import InputError
from .assignment import Range, bucket_ranges, choose_variation, hash_unit, in_namespace
from .sticky import StickyBuckets, remember, stored_arm
from .targeting import Attributes, Targeting

Reason = Literal[
    "assigned", "outside", "forced", "holdout", "namespace", "targeting", "sticky", "inactive", "rolled_back", "killed",
    "no_state", "breaker_open",
]  # fmt: skip

PER_REQUEST = "request"


class Decision(NamedTuple):
    """One assignment. `arm` answers; `variation` is its index, 0 for the control.

    `in_experiment` says whether the request counts in comparisons: units outside the compared ranges, held out or
    forced do not. `assigned` differs from `arm` only where the arm's breaker sent the request to the control
    (reason "breaker_open"). `bucket` is None where no hash was needed.
    """

    experiment: str
    arm: str
    variation: int
    bucket: float | None
    reason: Reason
    in_experiment: bool
    stage: int
    epoch: int
    unit: str
    assigned: str


class Cell(NamedTuple):
    """A part of [0, 1): the arm it is given and whether its units are compared."""

    low: float
    high: float
    variation: int
    compared: bool


@dataclass(frozen=True, slots=True)
class Experiment:
    """What the assignment of one experiment depends on. `arms[0]` is the control.

    `unit` names the attribute that assignment sticks on, or is "request"; `fallback_unit` serves where it is absent.
    `holdout` is the share of units kept on the control, chosen by `holdout_seed` alone, so the same units are held
    out of every experiment that shares it. `force` maps units to arms, for testing; these are never compared.
    """

    name: str
    arms: tuple[str, ...]
    weights: tuple[float, ...] | None = None
    coverage: float = 1.0
    ranges: tuple[Range, ...] | None = None
    seed: str = ""
    hash_version: int = 2
    unit: str = "user_id"
    fallback_unit: str | None = None
    namespace: tuple[str, float, float] | None = None
    targeting: Targeting = field(default_factory=Targeting)
    holdout: float = 0.0
    holdout_seed: str = "holdout"
    force: Mapping[str, str] = field(default_factory=dict[str, str])
    active: bool = True
    sticky: bool = False
    bucket_version: int = 0
    min_bucket_version: int = 0

    def cells(self) -> list[Cell]:
        """The arms' fixed ranges, from `ranges` or else from coverage and weights."""
        ranges = self.ranges or bucket_ranges(len(self.arms), self.coverage, self.weights)
        return [Cell(low, high, index, True) for index, (low, high) in enumerate(ranges)]


class Assigner:
    """Decides for one experiment while its ranges stay the same."""

    def __init__(
        self,
        experiment: Experiment,
        cells: Sequence[Cell],
        *,
        stage: int = 0,
        epoch: int = 0,
        halted: Reason | None = None,
        sticky: StickyBuckets | None = None,
    ) -> None:
        """`halted` sends everything to the control and is the reason given."""
        self.experiment, self.stage, self.epoch = experiment, stage, epoch
        self.halted: Reason | None = halted or (None if experiment.active else "inactive")
        self._seed = experiment.seed or experiment.name
        self._sticky = sticky if experiment.sticky else None
        self._open_to_all = not (experiment.namespace or experiment.holdout or experiment.targeting)
        self._edges, self._table = _compile(cells)

    def decide(
        self,
        unit: str | None = None,
        attributes: Attributes | None = None,
        *,
        force: str | None = None,
        request_id: str | None = None,
    ) -> Decision:
        """The arm for `unit`, or for the attribute the experiment names.

        `force` takes this arm whatever the hash says; a halted experiment still answers from the control.
        With `unit="request"`, or where the experiment's unit is "request", every request is its own unit: `request_id`,
        or a random one.

        Raises:
            InputError: there is no unit, or `force` names no arm.
        """
        attributes = attributes or {}
        found = unit if unit and unit != PER_REQUEST else self._unit(unit, attributes, request_id)
        if self.halted:
            return self._control(found, self.halted)
        wanted = force or self.experiment.force.get(found)
        if wanted:
            return self._forced(found, wanted)
        if self._sticky:
            return self._decide_sticky(found, attributes, self._sticky)
        return self._decide(found, attributes)

    def _decide(self, unit: str, attributes: Attributes) -> Decision:
        experiment = self.experiment
        barred = None if self._open_to_all else self._barred(unit, attributes)
        if barred:
            return self._control(unit, barred)
        bucket = hash_unit(self._seed, unit, experiment.hash_version)
        assert bucket is not None, "the configuration accepts hash versions 1 and 2 only"
        variation, compared = self._table[bisect_right(self._edges, bucket)]
        arm = experiment.arms[max(variation, 0)]
        reason = "assigned" if compared else "outside"
        return Decision(
            experiment.name, arm, max(variation, 0), bucket, reason, compared, self.stage, self.epoch, unit, arm
        )

    def _barred(self, unit: str, attributes: Attributes) -> Reason | None:
        experiment = self.experiment
        if experiment.holdout and (hash_unit(experiment.holdout_seed, unit, 2) or 0.0) < experiment.holdout:
            return "holdout"
        if experiment.namespace and not in_namespace(unit, experiment.namespace):
            return "namespace"
        return None if experiment.targeting.matches(attributes) else "targeting"

    def _decide_sticky(self, unit: str, attributes: Attributes, buckets: StickyBuckets) -> Decision:
        stored, blocked = stored_arm(self.experiment, unit, attributes, buckets)
        if blocked:
            return self._control(unit, "sticky")
        if stored is None:
            decision = self._decide(unit, attributes)
        else:
            variation = self.experiment.arms.index(stored)
            bucket = hash_unit(self._seed, unit, self.experiment.hash_version)
            decision = self._control(unit, "sticky")._replace(
                arm=stored, assigned=stored, variation=variation, bucket=bucket, in_experiment=True
            )
        if decision.in_experiment:
            remember(self.experiment, unit, attributes, decision.arm, buckets)
        return decision

    def _unit(self, unit: str | None, attributes: Attributes, request_id: str | None) -> str:
        named = self.experiment.unit
        if unit is None and named != PER_REQUEST:
            value = attributes.get(named)
            if value is None or value == "":
                value = attributes.get(self.experiment.fallback_unit or "")
            unit = None if value is None else str(value)
        if unit == PER_REQUEST or (not unit and named == PER_REQUEST):
            return request_id or uuid4().hex
        if not unit:
            raise InputError(
                f"experiment {self.experiment.name!r} sticks on {named!r}: pass unit=<its value>, "
                'or unit="request" to assign every request on its own on purpose',
                where="unit",
            )
        return unit

    def _forced(self, unit: str, arm: str) -> Decision:
        arms = self.experiment.arms
        if arm not in arms:
            raise InputError(
                f"{arm!r} is no arm of {self.experiment.name!r}; its arms: {', '.join(arms)}", where="force"
            )
        return self._control(unit, "forced")._replace(arm=arm, assigned=arm, variation=arms.index(arm))

    def _control(self, unit: str, reason: Reason) -> Decision:
        control = self.experiment.arms[0]
        return Decision(
            self.experiment.name, control, 0, None, reason, False, self.stage, self.epoch, unit, control
        )  # fmt: skip


def _compile(cells: Sequence[Cell]) -> tuple[list[float], list[tuple[int, bool]]]:
    """Sorted edges, and for every gap between them the first cell that holds it: (variation, compared)."""
    edges = sorted({edge for cell in cells for edge in cell[:2] if edge < 1})
    ranges = [[cell.low, cell.high] for cell in cells]
    table = [(-1, False)]
    for edge in edges:
        found = choose_variation(edge, ranges)
        table.append((cells[found].variation, cells[found].compared) if found >= 0 else (-1, False))
    return edges, table
