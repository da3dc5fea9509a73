"""What a run did: counted while it goes on, told at its end."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..reply import Usage, as_plain

Stopped = Literal["budget", "interrupted"]
_REASONS = {
    "budget": "stopped by its budget; start it again to go on",
    "interrupted": "interrupted; start it again to go on",
}


@dataclass(slots=True, kw_only=True)
class BatchReport:
    """Counts of one run.

    Rows: `rows` were read, `answered` are in the output and `failed` in the side file; of these, `reused` took no
    request of their own: their answer was in the ledger, or another row had asked the same. What was sent in this run:
    `requests` (every HTTP attempt, or every request of a batch), `usage`, and `cost` in US dollars, None where a price
    is not known. `stopped` is None when every row has its outcome. `unused` names fields that the template has no use
    for. `seconds` is wall-clock time.
    """

    output: Path
    errors: Path
    ledger: str
    rows: int = 0
    answered: int = 0
    failed: int = 0
    reused: int = 0
    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    seconds: float = 0.0
    stopped: Stopped | None = None
    unused: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every row was answered."""
        return self.stopped is None and not self.failed

    def add(self, requests: int, usage: Usage, cost: float | None) -> None:
        """Count what one sending took."""
        self.requests += requests
        self.usage += usage
        self.cost = None if cost is None or self.cost is None else self.cost + cost

    def as_dict(self) -> dict[str, Any]:
        """All fields and `ok` as plain JSON values."""
        return {**as_plain(asdict(self)), "usage": as_plain(self.usage), "ok": self.ok}

    def to_json(self, **options: Any) -> str:
        """`as_dict()` as JSON text; `options` go to json.dumps."""
        options.setdefault("ensure_ascii", False)
        return json.dumps(self.as_dict(), **options)

    def __str__(self) -> str:
        rate = f", {self.requests / self.seconds:.1f} requests/s" if self.requests and self.seconds else ""
        cost = "unknown" if self.cost is None else f"${self.cost:.4f}"
        lines = [
            f"{self.answered} of {self.rows} rows answered: {self.output}",
            f"requests   {self.requests}; {self.reused} rows without one of their own",
            f"tokens     {self.usage.total_input} in, {self.usage.output} out; cost {cost}",
            f"time       {self.seconds:.1f} s{rate}",
        ]
        if self.failed:
            lines.append(f"failed     {self.failed} rows: {self.errors}")
        if self.unused:
            lines.append(f"not used   {', '.join(self.unused)}: no inputs of the template")
        if self.stopped:
            lines.append(_REASONS[self.stopped])
        return "\n".join(lines)
