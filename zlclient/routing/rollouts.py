"""The configuration of experiments and staged rollouts, read from plain tables.

    [tool.zlclient.rollouts.support-bot]
    control = "legacy"
    treatment = "auto"                  # or treatments = ["auto", "mini"], weights = [0.7, 0.3]
    unit = "user_id"                    # or "request"
    stages = [1, 10, 50, 100]           # percent of units
    gates = { error_rate = "< 0.01%", ttft_p50 = "<= 200 ms", fcr = ">= control" }
    advance = "manual"                  # or "auto"
    dwell = "1 h"                       # at least this long at every stage
    maturation = "24 h"                 # outcomes count if reported within, and once it has passed
    outcomes = ["csat"]                 # what zlclient.outcome reports, if gates are to use it
    breaker = { failure_rate = 0.5, minimum = 10, window = "30 s", cooldown = "30 s", probes = 3 }   # or false
    shadow = { share = 0.01, budget = "5 USD" }

    [tool.zlclient.rollouts.tone]       # arms instead of stages: a plain experiment
    arms = ["legacy", "auto", "mini"]   # the first is the control
    weights = [0.5, 0.25, 0.25]
    coverage = 0.4
    sticky = true                       # keep a unit's arm when weights change, as long as the process lives

Both are a `Rollout`; an experiment has no stages, so its shares are fixed and its verdict ends with a winner or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, cast

from .breaker import BreakerPolicy
from .experiments import Cell, Experiment
from .gates import Gate, parse_gates
from .shadow import ShadowPolicy
from .tables import Table, Where
from .targeting import Targeting


@dataclass(frozen=True, slots=True)
class Rollout:
    """An experiment with its stages, gates and policies.

    `stages` are shares in (0, 1]; empty for a plain experiment. `shares` are the treatments' parts of a stage.
    A stage is promoted when every gate is shown at `alpha`; it is rolled back when any is refuted at
    `rollback_alpha`, which the e-value table of 1,000 stands for. `dwell` and `maturation` are seconds.
    """

    experiment: Experiment
    stages: tuple[float, ...] = ()
    shares: tuple[float, ...] = (1.0,)
    gates: tuple[Gate, ...] = ()
    outcomes: tuple[str, ...] = ()
    advance: Literal["manual", "auto"] = "manual"
    alpha: float = 0.05
    rollback_alpha: float = 0.001
    dwell: float = 0.0
    maturation: float = 0.0
    interval: float = 30.0
    breaker: BreakerPolicy | None = None
    shadow: ShadowPolicy | None = None

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self.experiment.name

    @property
    def control(self) -> str:
        """The arm that every other is compared with."""
        return self.experiment.arms[0]

    @property
    def treatments(self) -> tuple[str, ...]:
        """The other arms."""
        return self.experiment.arms[1:]

    def cells(self, stage: int) -> list[Cell]:
        """Who gets which arm at `stage`.

        Every treatment owns a fixed segment of [0, 1) and takes the first `share` of it, so growing never moves a
        unit from one treatment to another or back to the control. Compared with it is the end of the same segment,
        as large as the treatment's own part up to half of it, and the same part of the treatment beyond.
        """
        if not self.stages:
            return self.experiment.cells()
        share = self.stages[stage]
        compared = min(share, 1 - share) if share < 1 else 1.0
        cells: list[Cell] = []
        start = 0.0
        for variation, part in enumerate(self.shares, 1):
            # The last segment ends at exactly 1, whatever the parts add up to in floating point.
            end = 1.0 if variation == len(self.shares) else start + part
            width = end - start
            cells.append(Cell(start, start + compared * width, variation, True))
            if share < 1:
                cells.append(Cell(start + compared * width, start + share * width, variation, False))
                cells.append(Cell(end - compared * width, end, 0, True))
            start = end
        return cells

    def expected_shares(self, stage: int) -> dict[str, float]:
        """Each arm's part of the compared units, for the sample-ratio check; empty where no control is left."""
        sizes = dict.fromkeys(self.experiment.arms, 0.0)
        for cell in self.cells(stage):
            sizes[self.experiment.arms[cell.variation]] += (cell.high - cell.low) if cell.compared else 0.0
        total = sum(sizes.values())
        return {arm: size / total for arm, size in sizes.items()} if sizes[self.control] and total else {}

    def with_experiment(self, **changes: object) -> Rollout:
        """A copy with fields of the experiment changed."""
        return replace(self, experiment=replace(self.experiment, **changes))  # pyright: ignore[reportArgumentType]


def parse_rollouts(tables: object, path: str = "rollouts", where: Where | None = None) -> dict[str, Rollout]:
    """Every rollout of the table `path`, by name.

    Raises:
        ConfigError: naming the dotted key, its value, what is accepted, and file and line where `where` knows them.
    """
    found: dict[str, Rollout] = {}
    for name, values in Table(tables, path, where).items():
        table = Table(values, f"{path}.{name}", where)
        found[name] = (_experiment if "arms" in table else _rollout)(name, table)
    return found


def _rollout(name: str, table: Table) -> Rollout:
    control = table.text("control")
    treatments = table.texts("treatments")
    if treatments and "treatment" in table:
        table.refuse("treatment", table.raw("treatment"), "give either treatment or treatments")
    treatments = treatments or (table.text("treatment"),)
    if control in treatments:
        table.refuse("treatment", control, "must differ from the control")
    shares = _weights(table, len(treatments)) or tuple(1 / len(treatments) for _ in treatments)
    experiment = _common(name, (control, *treatments), table)
    rollout = _policies(Rollout(experiment, stages=_stages(table), shares=shares), table)
    table.finish()
    return rollout


def _experiment(name: str, table: Table) -> Rollout:
    arms = table.texts("arms")
    if len(arms) < 2:
        table.refuse("arms", table.raw("arms"), "must name at least two arms, the control first")
    experiment = replace(
        _common(name, arms, table),
        weights=_weights(table, len(arms)),
        coverage=table.number("coverage", 1.0, 0.0, 1.0),
        sticky=table.flag("sticky", False),
        bucket_version=table.integer("bucket_version", 0, 0, 1_000_000),
        min_bucket_version=table.integer("min_bucket_version", 0, 0, 1_000_000),
    )
    rollout = _policies(Rollout(experiment), table)
    table.finish()
    return rollout


def _common(name: str, arms: tuple[str, ...], table: Table) -> Experiment:
    return Experiment(
        name,
        arms,
        seed=table.text("seed", name),
        hash_version=table.integer("hash_version", 2, 1, 2),
        unit=table.text("unit"),
        fallback_unit=table.text("fallback_unit") if "fallback_unit" in table else _absent(table, "fallback_unit"),
        namespace=_namespace(table),
        targeting=Targeting.parse(table.table("targeting")),
        holdout=table.number("holdout", 0.0, 0.0, 0.99),
        holdout_seed=table.text("holdout_seed", "holdout"),
        force=_force(table.table("force"), arms),
        active=table.flag("active", True),
    )


def _policies(rollout: Rollout, table: Table) -> Rollout:
    outcomes = table.texts("outcomes")
    return replace(
        rollout,
        gates=parse_gates(table.table("gates"), outcomes),
        outcomes=outcomes,
        advance=cast('Literal["manual", "auto"]', table.choice("advance", ("manual", "auto"), "manual")),
        alpha=table.number("alpha", 0.05, 1e-6, 0.5),
        rollback_alpha=table.number("rollback_alpha", 0.001, 1e-9, 0.5),
        dwell=table.duration("dwell", 0.0),
        maturation=table.duration("maturation", 0.0),
        interval=table.duration("interval", 30.0),
        breaker=BreakerPolicy.parse(table.table("breaker")) if table.raw("breaker") is not False else None,
        shadow=ShadowPolicy.parse(table.table("shadow")) if table.raw("shadow") is not None else None,
    )


def _stages(table: Table) -> tuple[float, ...]:
    stages = table.numbers("stages", 0.0, 100.0)
    if stages is None:
        table.refuse("stages", None, "is required, such as [1, 10, 50, 100]")
    if stages[0] <= 0 or any(after <= before for before, after in pairwise(stages)):
        table.refuse("stages", table.raw("stages"), "must be growing percentages above 0")
    return tuple(stage / 100 for stage in stages)


def _weights(table: Table, count: int) -> tuple[float, ...] | None:
    weights = table.numbers("weights", 0.0, 1.0)
    if weights is None:
        return None
    if len(weights) != count or abs(sum(weights) - 1) > 1e-6:
        table.refuse("weights", list(weights), f"must be {count} numbers that add up to 1")
    return weights


def _namespace(table: Table) -> tuple[str, float, float] | None:
    value = table.raw("namespace")
    if value is None:
        return None
    match value:
        case [str(name), int() | float() as low, int() | float() as high] if name and 0 <= low < high <= 1:
            return name, float(low), float(high)
        case _:
            return table.refuse("namespace", value, "must be [name, low, high] with 0 <= low < high <= 1")


def _force(table: Table, arms: tuple[str, ...]) -> Mapping[str, str]:
    forced: dict[str, str] = {}
    for unit, arm in table.items():
        if arm not in arms:
            table.refuse(unit, arm, f"must be one of the arms {', '.join(arms)}")
        forced[unit] = str(arm)
    return forced


def _absent(table: Table, key: str) -> None:
    table.raw(key)
