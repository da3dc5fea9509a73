"""Sticky buckets: a unit keeps the arm it first got, also when an experiment's weights change.

A rollout does not need them, for its ranges only grow. The keys are GrowthBook's, so that documents can be shared:
`attribute||value` holds, for every `experiment__bucketVersion`, the arm.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .experiments import Experiment
    from .targeting import Attributes


class StickyBuckets(Protocol):
    """Where assignments are kept; both methods are called on the way of a request, so they must be quick."""

    def get(self, key: str) -> Mapping[str, str]:
        """The assignments under `attribute||value`; empty where there are none."""
        ...

    def put(self, key: str, name: str, arm: str) -> None:
        """Add one assignment, keeping the others."""
        ...


class MemoryBuckets:
    """Sticky buckets of this process; beyond `bound` units the one that came first is forgotten.

    Without a lock, which a forked child could inherit locked: every step is one operation on a dictionary.
    """

    def __init__(self, bound: int = 100_000) -> None:
        self._documents: dict[str, dict[str, str]] = {}
        self._bound = bound

    def get(self, key: str) -> Mapping[str, str]:
        """The assignments of one unit."""
        return self._documents.get(key, {})

    def put(self, key: str, name: str, arm: str) -> None:
        """Add one assignment."""
        self._documents.setdefault(key, {})[name] = arm
        if len(self._documents) > self._bound:
            with suppress(StopIteration, RuntimeError):  # another thread was quicker
                self._documents.pop(next(iter(self._documents)), None)


def stored_arm(
    experiment: Experiment, unit: str, attributes: Attributes, buckets: StickyBuckets
) -> tuple[str | None, bool]:
    """The arm stored for `unit`, and whether an assignment before `min_bucket_version` bars it from the experiment."""
    stored: dict[str, str] = {}
    for key in reversed(_keys(experiment, unit, attributes)):
        stored.update(buckets.get(key))
    versions = range(experiment.min_bucket_version)
    if any(f"{experiment.name}__{version}" in stored for version in versions):
        return None, True
    arm = stored.get(f"{experiment.name}__{experiment.bucket_version}")
    return (arm, False) if arm in experiment.arms else (None, False)


def remember(experiment: Experiment, unit: str, attributes: Attributes, arm: str, buckets: StickyBuckets) -> None:
    """Store `arm` under the unit's own key, unless it is there already."""
    key, name = _keys(experiment, unit, attributes)[0], f"{experiment.name}__{experiment.bucket_version}"
    if buckets.get(key).get(name) != arm:
        buckets.put(key, name, arm)


def _keys(experiment: Experiment, unit: str, attributes: Attributes) -> list[str]:
    """The unit's own key first, then that of the fallback attribute: an upgrade from anonymous keeps its arm."""
    fallback = experiment.fallback_unit
    other = attributes.get(fallback) if fallback else None
    if fallback and other == unit and attributes.get(experiment.unit) in (None, ""):
        return [f"{fallback}||{unit}"]
    own = [f"{experiment.unit}||{unit}"]
    return [*own, f"{fallback}||{other}"] if fallback and other else own
