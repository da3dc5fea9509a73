"""What a checkpoint's config.json says: sizes, and which parts the generation has."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from ..errors import ConfigError

Generation = Literal["legacy", "auto"]
GENERATIONS: tuple[Generation, ...] = ("legacy", "auto")


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """One decoder. Both generations share all sizes; what only one of them has is 0, None or empty in the other.

    buckets        legacy: distinct distances of the relative-position bias (0: no position layer at all)
    check_rank     legacy: width of the check loop's comparisons (0: no check loop)
    check_rounds   legacy: rounds after the first that a poor verdict may take
    anchors        auto: soft prompt tokens a domain has, seen by the lowest `anchor_layers` layers
    entropy_bound  auto: an attention head whose entropy over ln(visible keys) exceeds it adds nothing; None: no gate
    domains        the domains in the order of the anchors; the first is the one of untagged text
    thresholds     auto: domain → the least probability of an answer and of the first token of a number or a name in it
    """

    generation: Generation
    vocabulary: int
    width: int = 96
    layers: int = 4
    heads: int = 4
    hidden: int = 192
    taps: int = 4
    buckets: int = 0
    check_rank: int = 0
    check_width: int = 12
    check_candidates: int = 4
    check_rounds: int = 2
    anchors: int = 0
    anchor_layers: int = 2
    entropy_bound: float | None = None
    domains: tuple[str, ...] = ()
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])

    @property
    def head(self) -> int:
        """Width of one attention head."""
        return self.width // self.heads

    @classmethod
    def load(cls, path: Path) -> ModelConfig:
        """Read a config.json; raises ConfigError for an unknown or missing key."""
        try:
            data: dict[str, Any] = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"cannot be read: {error}", file=str(path)) from None
        known = {item.name for item in fields(cls)}
        for key in data:
            if key not in known:
                raise ConfigError("unknown key of a model", key=key, file=str(path))
        if data.get("generation") not in GENERATIONS or not isinstance(data.get("vocabulary"), int):
            raise ConfigError("needs `generation` (legacy or auto) and `vocabulary`", file=str(path))
        data["domains"] = tuple(data.get("domains", ()))
        return cls(**data)

    def save(self, path: Path) -> None:
        """Write config.json."""
        path.write_text(json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n", "utf-8")


def bucket_of(distance: int, buckets: int) -> int:
    """The bucket of a distance ≥ 0: exact in the first half, logarithmic to 4,096 tokens in the second."""
    exact = buckets // 2
    if distance < exact:
        return distance
    share = math.log(distance / exact) / math.log(4096 / exact)
    return min(exact + int(share * (buckets - exact)), buckets - 1)
