"""What is written down about a request: its exposure, its outcomes, its shadow.

Each is written once: the key says what makes it the same again, and whoever writes it a second time changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

from .experiments import Decision

Kind = Literal["exposure", "outcome", "shadow"]


@dataclass(frozen=True, slots=True)
class Record:
    """How a store sees it: `name` is the experiment, or "" for an outcome of which only the reply is known."""

    kind: Kind
    name: str
    key: str
    body: str

    def fields(self) -> dict[str, Any]:
        """The body, read."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """One request of a compared unit and how the arm it was assigned to did. Times are seconds, `at` since 1970.

    `error_type` is the final outcome of that arm, None for success; a fallback to the control, named by `answered_by`,
    does not heal it. `skipped` means that an open breaker kept the request from the arm, so it says nothing about it.
    `ttft_s` is None where no content came. `unit` is a digest: no user's id is stored.
    """

    reply_id: str
    experiment: str
    arm: str
    stage: int
    epoch: int
    unit: str
    at: float
    error_type: str | None = None
    skipped: bool = False
    answered_by: str | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    latency_s: float | None = None
    cost_usd: float | None = None
    checks: Mapping[str, bool] = field(default_factory=dict[str, bool])

    @staticmethod
    def of(decision: Decision, reply_id: str, at: float, **measured: Any) -> Exposure:
        """The exposure of `decision`; `measured` are the remaining fields."""
        return Exposure(
            reply_id=reply_id,
            experiment=decision.experiment,
            arm=decision.assigned,
            stage=decision.stage,
            epoch=decision.epoch,
            unit=decision.unit,
            at=at,
            **measured,
        )

    def record(self) -> Record:
        """For a store; once per reply."""
        fields = _given(self)
        fields["unit"] = digest(self.unit)
        fields["at"] = round(self.at, 3)
        return Record("exposure", self.experiment, _storable(self.reply_id), _dump(fields))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the user reported later about a reply; the first report of a metric counts."""

    reply_id: str
    metric: str
    value: float
    at: float

    def record(self) -> Record:
        """For a store; once per reply and metric."""
        reply_id, metric = _storable(self.reply_id), _storable(self.metric)
        body = {"reply_id": reply_id, "metric": metric, "value": self.value, "at": round(self.at, 3)}
        return Record("outcome", "", f"{reply_id} {metric}", _dump(body))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadow:
    """A copy that was sent to `arm` while the control answered, and how it differed (see `shadow.Comparison`).

    The texts are there only if content recording is on.
    """

    reply_id: str
    experiment: str
    arm: str
    epoch: int
    at: float
    error_type: str | None = None
    cost_usd: float = 0.0
    checks: Mapping[str, tuple[bool, bool]] = field(default_factory=dict[str, tuple[bool, bool]])
    length_ratio: float | None = None
    similarity: float | None = None
    control_text: str | None = None
    treatment_text: str | None = None

    def record(self) -> Record:
        """For a store; once per reply."""
        fields = _given(self)
        return Record("shadow", self.experiment, _storable(self.reply_id), _dump(fields))


def digest(unit: str) -> str:
    """64 bits that stand for a unit: enough to count distinct ones, not to tell who they are."""
    return blake2b(unit.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _storable(text: str) -> str:
    """`text` as every store takes it: no half surrogates, no NUL, of a bounded length.

    One record that a store refuses would hold up all that wait behind it.
    """
    return text[:200].encode("utf-8", "replace").decode().replace("\0", "?")


def _given(item: Exposure | Shadow) -> dict[str, Any]:
    """The fields that say something, without those that are the record's own name and key."""
    found: dict[str, Any] = {}
    for name in item.__slots__:
        value = getattr(item, name)
        if value is not None and value is not False and value != {} and name not in {"experiment", "reply_id"}:
            found[name] = value
    return found


def _dump(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, separators=(",", ":"))
