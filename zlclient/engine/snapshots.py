"""Thresholds at decision points: where an answer begins, and where a number, a date or a name begins in it.

A tiny state machine follows the answer's tokens. At a decision point it takes a snapshot of the chosen token's
probability and compares it with the static threshold that was calibrated for the domain on held-out data; between
decision points it does nothing. The answer is `stated` as long as no snapshot was under its threshold.

      start ──marker──▶ copying ──digit──▶ number ──other──▶ copying
        │                  └────capital──▶ name ───other──▶ copying
        └──<none>──▶ not stated
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .tokenizer import Tokenizer

Point = Literal["answer", "number", "name"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was seen at a decision point: the chosen token's `probability` and the `threshold` it was held against."""

    point: Point
    place: int
    probability: float
    threshold: float

    @property
    def firm(self) -> bool:
        """Whether it reached the threshold."""
        return self.probability >= self.threshold


class Snapshots:
    """Follows one answer. `thresholds` maps points to least probabilities; a point that it lacks is never doubted."""

    def __init__(self, tokenizer: Tokenizer, thresholds: Mapping[str, float]) -> None:
        self._tokenizer, self._thresholds = tokenizer, thresholds
        self._inside: Point | None = None
        self._sentence = -1
        self._place = 0
        self.taken: list[Snapshot] = []

    def point(self, token: int) -> Point | None:
        """The decision point that choosing `token` next would be, if any."""
        if self._tokenizer.marked(token) is not None:
            return "answer" if token != self._sentence else None
        kind = self._kind(token)
        return kind if kind is not None and kind != self._inside else None

    def follow(self, token: int, point: Point | None, probability: float) -> bool:
        """Take note of the chosen token; False when it was a decision point under its threshold."""
        if self._tokenizer.marked(token) is not None:
            self._sentence = token  # a marker within its own sentence ends no number or name
        else:
            self._inside = self._kind(token)
        self._place += 1
        if point is None:
            return True
        snapshot = Snapshot(point, self._place - 1, probability, self._thresholds.get(point, 0.0))
        self.taken.append(snapshot)
        return snapshot.firm

    def _kind(self, token: int) -> Point | None:
        if self._tokenizer.is_digit(token):
            return "number"
        return "name" if self._tokenizer.is_capital(token) else None
