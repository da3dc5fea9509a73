"""Thresholds at decision points: where an answer begins, and where a number, a date or a name begins in it.

At a decision point a snapshot of the probability is compared with the static threshold that was calibrated for the
domain on held-out data; between decision points nothing is done. Where an answer begins is decided before it is
generated (see `deciding`). Within it a tiny state machine follows its tokens:

      ──▶ copying ──digit──▶ number ──other──▶ copying
              └────capital──▶ name ───other──▶ copying

A date begins with a number. The answer is `stated` as long as no snapshot was under its threshold.
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

    def follow(self, token: int, probability: float) -> bool:
        """Take note of the chosen token; False when it was a decision point under its threshold."""
        before, self._place = self._inside, self._place + 1
        if self._tokenizer.marked(token) is not None:
            if token != self._sentence:  # a marker within its own sentence ends no number or name
                self._sentence, self._inside = token, None
            return True
        self._inside = self._kind(token)
        if self._inside is None or self._inside == before:
            return True
        snapshot = Snapshot(self._inside, self._place - 1, probability, self._thresholds.get(self._inside, 0.0))
        self.taken.append(snapshot)
        return snapshot.firm

    def _kind(self, token: int) -> Point | None:
        if self._tokenizer.is_digit(token):
            return "number"
        return "name" if self._tokenizer.is_capital(token) else None
