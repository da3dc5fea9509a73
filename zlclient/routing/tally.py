"""Folds records into what the gates and the report need, page by page, each record once.

Only the evidence of the present traffic counts: exposures from the state's `since` on. Stages with different shares are
never pooled, because a mix that changes over time can turn a comparison around (Simpson's paradox).
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any

from .metrics import Metric
from .records import Record
from .rollouts import Rollout
from .stores import Store

MEASURES = {"ttft": "ttft_s", "tpot": "tpot_s", "latency": "latency_s", "cost": "cost_usd"}
_SHADOWS = 2_000
"""Shadow comparisons kept, the latest: enough for the report's figures and examples."""


class ArmTally:
    """One arm's requests. `values` holds, for every source, one number a request in the order of arrival."""

    def __init__(self) -> None:
        self.requests = 0
        self.errors: Counter[str] = Counter()
        self.skipped = 0
        self.fallbacks = 0
        self.units: set[str] = set()
        self.values: defaultdict[str, array[float]] = defaultdict(lambda: array("d"))
        self.replies: list[tuple[str, float]] = []
        self.by_minute: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])

    def add(self, exposure: dict[str, Any], reply_id: str, sources: Sequence[str], labelled: bool) -> None:
        """Count one exposure."""
        self.units.add(exposure["unit"])
        self.fallbacks += "answered_by" in exposure
        if exposure.get("skipped"):
            self.skipped += 1
            return
        error = exposure.get("error_type")
        self.requests += 1
        if error:
            self.errors[error] += 1
        minute = self.by_minute[int(exposure["at"] // 60)]
        minute[0] += 1
        minute[1] += error is not None
        if labelled:
            self.replies.append((reply_id, exposure["at"]))
        for source in sources:
            value = _value(source, exposure, error)
            if value is not None:
                self.values[source].append(value)

    def recent_rate(self, now: float, window: float = 3600.0) -> float:
        """Requests a second over the last `window` seconds, or since the first request if that is shorter."""
        if not self.by_minute:
            return 0.0
        first, start = min(self.by_minute) * 60.0, now - window
        count = sum(pair[0] for minute, pair in self.by_minute.items() if minute * 60 >= start)
        return count / max(now - max(first, start), 60.0)


class Tally:
    """All arms of one rollout from epoch `since` on; `read` brings it up to date from a store."""

    def __init__(self, rollout: Rollout, since: int = 0) -> None:
        self.rollout, self.since = rollout, since
        self.arms = {arm: ArmTally() for arm in rollout.experiment.arms}
        self.shadows: deque[dict[str, Any]] = deque(maxlen=_SHADOWS)
        metrics = [gate.metric for gate in rollout.gates]
        self._outcomes = {metric.outcome for metric in metrics if metric.outcome} | set(rollout.outcomes)
        self._sources = sorted({metric.source for metric in metrics if not metric.outcome} | set(MEASURES))
        self._labels: dict[str, dict[str, tuple[float, float]]] = {name: {} for name in self._outcomes}
        self._cursor = ""

    def read(self, store: Store) -> None:
        """Fold what the store got since the last call."""
        while True:
            records, self._cursor = store.read(self.rollout.name, self._cursor)
            if not records:
                return
            self.add(records)

    def add(self, records: Iterable[Record]) -> None:
        """Fold `records`; each may be given once only."""
        for record in records:
            fields = record.fields()
            if record.kind == "outcome":
                if fields["metric"] in self._labels:
                    self._labels[fields["metric"]][fields["reply_id"]] = (fields["value"], fields["at"])
            elif fields["epoch"] >= self.since and fields["arm"] in self.arms:
                if record.kind == "shadow":
                    self.shadows.append(fields | {"reply_id": record.key})
                else:
                    self.arms[fields["arm"]].add(fields, record.key, self._sources, bool(self._outcomes))

    def values(self, arm: str, metric: Metric, now: float) -> Sequence[float]:
        """One number for each request of `arm` that `metric` applies to, in order.

        An outcome counts if it was reported within the maturation window, once the window has closed; without a
        window it counts at once.
        """
        if metric.outcome is None:
            return self.arms[arm].values[metric.source]
        window, labels = self.rollout.maturation, self._labels[metric.outcome]
        found: array[float] = array("d")
        for reply_id, at in self.arms[arm].replies:
            label = labels.get(reply_id)
            if label and (not window or label[1] <= at + window <= now):
                found.append(label[0])
        return found


def _value(source: str, exposure: dict[str, Any], error: str | None) -> float | None:
    if source == "error":
        return float(error is not None)
    if source == "empty":
        return float(error == "EmptyAnswer")
    if source.startswith("error:"):
        return float(error == source.removeprefix("error:"))
    if error is not None:
        # A failed request has no latency worth the name: errors are their own metric.
        return None
    if source.startswith("check:"):
        passed = exposure.get("checks", {}).get(source.removeprefix("check:"))
        return None if passed is None else float(passed)
    return exposure.get(MEASURES[source])
