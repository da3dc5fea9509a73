"""The thresholds of auto, calibrated once on held-out documents of each domain.

answer        the probability of the sentence marker under which more would be right if the model refused: it makes
              the share of right outcomes (right answers, and refusals where the document does not say) largest
number, name  the probability that all but QUANTILE of the right answers' numbers and names reach
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..checkpoint import Checkpoint
from ..evaluation.asking import ask
from ..runner import Engine
from .data import DOMAINS, Mix, make_document

QUANTILE = 0.005
Seen = tuple[float, bool, bool]  # the marker's probability (0: refused), whether it is right, whether refusing is


def calibrate(checkpoint: Checkpoint, *, documents: int = 300, seed: int = 0) -> Checkpoint:
    """`checkpoint` with a table of thresholds in its configuration."""
    engine = Engine(checkpoint)
    rng = random.Random(f"calibration:{seed}")
    answers: dict[str, list[Seen]] = {name: [] for name in DOMAINS}
    details: dict[str, dict[str, list[float]]] = {name: {"number": [], "name": []} for name in DOMAINS}
    for _ in range(documents):
        document = make_document(rng, rng.choice((4, 6, 8, 12)), 6, mix=Mix(loose=0.2))
        domain = document.domain if document.tag else "general"
        for asked in ask(engine, document, thresholds=False, whole=True):
            probability = 0.0 if asked.quoted is None else asked.probability
            answers[domain].append((probability, asked.right, not asked.question.answers))
            if asked.right:
                for point in asked.outcome.snapshots[1:]:
                    if point.point != "answer":
                        details[domain][point.point].append(point.probability)
    table = {
        name: {
            "answer": _threshold(answers[name]),
            **{point: _floor(values) for point, values in details[name].items()},
        }
        for name in DOMAINS
    }
    return replace(checkpoint, config=replace(checkpoint.config, thresholds=_rounded(table)))


def _threshold(seen: Sequence[Seen]) -> float:
    """The threshold with the largest sum of exact match and F1, halfway between two probabilities; 0 adds none."""
    ordered = sorted(seen)
    answerable = sum(not refusable for *_, refusable in ordered)
    meant = len(ordered) - answerable
    right = sum(is_right for _, is_right, _ in ordered)
    both = said = 0
    best, threshold = -1.0, 0.0
    for at, (probability, is_right, refusable) in enumerate(ordered):
        # Everything before `at` is refused; what was refused anyway always is.
        value = right / max(1, answerable) + 2 * both / max(1, said + meant)
        if probability > 0 and value > best:
            before = ordered[at - 1][0] if at else 0.0
            best, threshold = value, (before + probability) / 2 if before else 0.0
        right, both, said = right - is_right, both + refusable, said + 1
    return threshold


def _floor(values: Sequence[float]) -> float:
    return float(np.quantile(values, QUANTILE)) if values else 0.0


def _rounded(table: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {name: {point: round(value, 4) for point, value in points.items()} for name, points in table.items()}
