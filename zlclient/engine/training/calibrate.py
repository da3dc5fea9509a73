"""The thresholds of auto, calibrated once on held-out documents of each domain.

answer        the probability of a decision under which more is right if the model refuses: it makes the sum of exact
              match and of the F1 of refusing largest
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
Seen = tuple[float, bool, bool]  # a decision's probability, whether its sentence is right, whether refusing is


def calibrate(checkpoint: Checkpoint, *, documents: int = 600, seed: int = 0) -> Checkpoint:
    """`checkpoint` with a table of thresholds in its configuration."""
    engine = Engine(checkpoint)
    rng = random.Random(f"calibration:{seed}")
    answers: dict[str, list[Seen]] = {name: [] for name in DOMAINS}
    details: dict[str, dict[str, list[float]]] = {name: {"number": [], "name": []} for name in DOMAINS}
    for _ in range(documents):
        document = make_document(rng, rng.choice((4, 8, 24)), 6, mix=Mix(loose=0.2))
        domain = document.domain if document.tag else "general"
        for asked in ask(engine, document, thresholds=False, free=True):
            decision, meant = asked.decision, asked.question.answers
            answers[domain].append((decision.snapshot.probability, decision.index in meant, not meant))
            if asked.right and asked.outcome is not None:
                for point in asked.outcome.snapshots:
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
    """The threshold with the largest sum of exact match and F1, halfway between two probabilities; 0 refuses none."""
    ordered = sorted(seen)
    answerable = sum(not refusable for *_, refusable in ordered)
    meant = len(ordered) - answerable
    right = sum(is_right for _, is_right, _ in ordered)
    both = said = 0
    best, threshold, before = -1.0, 0.0, 0.0
    for probability, is_right, refusable in ordered:
        # Everything before this one is refused.
        value = right / max(1, answerable) + 2 * both / max(1, said + meant)
        if value > best:
            best, threshold = value, (before + probability) / 2 if said else 0.0
        right, both, said, before = right - is_right, both + refusable, said + 1, probability
    return threshold


def _floor(values: Sequence[float]) -> float:
    return float(np.quantile(values, QUANTILE)) if values else 0.0


def _rounded(table: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {name: {point: round(value, 4) for point, value in points.items()} for name, points in table.items()}
