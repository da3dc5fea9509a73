"""Each generation with one of its parts switched off: the same weights, the same code, less of it.

Auto's fourth mechanism, the position layer trained to zero, has nothing left to switch off: its checkpoint holds no
position tensor. What there is to tell of it stands in the log of the run that removed it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..checkpoint import Checkpoint
from ..config import Generation
from ..model import Model
from ..runner import Engine
from ..training.data import Document
from .intervals import Estimate
from .quality import Tally, exact, exact_match, outcome, refusing


def without_anchors(auto: Checkpoint) -> Checkpoint:
    """No soft tokens in any layer."""
    return replace(auto, config=replace(auto.config, anchors=0))


def without_gate(auto: Checkpoint) -> Checkpoint:
    """Every head is open, whatever its entropy."""
    return replace(auto, config=replace(auto.config, entropy_bound=None))


def without_check(legacy: Checkpoint) -> Checkpoint:
    """No check loop, neither on the prompt nor in decoding."""
    return replace(legacy, config=replace(legacy.config, check_rank=0))


def without_positions(legacy: Checkpoint) -> Checkpoint:
    """No relative-position layer."""
    return replace(legacy, tensors={name: t for name, t in legacy.tensors.items() if "pos_encoder" not in name})


def models(checkpoints: Mapping[Generation, Checkpoint]) -> dict[Generation, dict[str, Model]]:
    """Each generation whole, and without each of its parts that takes time, by the part's name."""
    auto, legacy = checkpoints["auto"], checkpoints["legacy"]
    return {
        "legacy": {
            "whole": Model(legacy),
            "check of the prompt": Model(legacy, check_prompt=False),
            "check loop": Model(without_check(legacy)),
            "position layer": Model(without_positions(legacy)),
        },
        "auto": {
            "whole": Model(auto),
            "anchors": Model(without_anchors(auto)),
            "entropy gate": Model(without_gate(auto)),
        },
    }


def effects(checkpoints: Mapping[Generation, Checkpoint], documents: Sequence[Document]) -> dict[str, Any]:
    """Exact match and F1 of refusing of each ablation, and what the whole has over it."""
    auto, legacy = (Engine(checkpoints[name]) for name in ("auto", "legacy"))
    bare, ungated = Engine(without_anchors(checkpoints["auto"])), Engine(without_gate(checkpoints["auto"]))
    unchecked, unplaced = Engine(without_check(checkpoints["legacy"])), Engine(without_positions(checkpoints["legacy"]))
    whole = {"auto": exact_match(auto, documents), "legacy": exact_match(legacy, documents)}
    # The second reading is added to the first without thresholds, as they were calibrated for both; legacy has none.
    twice = {"auto": exact_match(auto, documents, thresholds=False), "legacy": whole["legacy"]}
    once = {
        name: exact_match(engine, documents, thresholds=False, looks=0)
        for name, engine in (("auto", auto), ("legacy", legacy))
    }
    parts = {
        "auto": {
            "anchors": exact_match(bare, documents),
            "thresholds": twice["auto"],
            "entropy gate": exact_match(ungated, documents),
        },
        "legacy": {
            "check loop": exact_match(unchecked, documents),
            "position layer": exact_match(unplaced, documents),
        },
    }
    return {
        name: {"whole": _scores(whole[name])}
        | {part: _effect(whole[name], tally) for part, tally in found.items()}
        | {"second reading": _effect(twice[name], once[name])}
        for name, found in parts.items()
    }


def _scores(tally: Tally) -> dict[str, float]:
    return {"em": round(tally.exact, 4), "unanswerable_f1": round(tally.f1, 4)}


def _effect(whole: Tally, without: Tally) -> dict[str, Any]:
    """What the part adds: the whole minus the whole without it; `outcome` is the share of right outcomes, answers and
    refusals together, because a part may trade one for the other."""
    added: dict[str, Estimate] = {
        "em": whole.minus(without, exact),
        "unanswerable_f1": whole.minus(without, refusing),
        "outcome": whole.minus(without, outcome),
    }
    return {"without": _scores(without), **{f"{name}_added": estimate.plain() for name, estimate in added.items()}}


def position_layer(log: Path) -> dict[str, Any] | None:
    """What a training.jsonl tells of the position layer's removal; None where it tells nothing.

    Returns:
        The gates frozen, the step at which the tensors were removed, those gates still open then (a layer), and the
        held-out scores of the last report before and of the last one after it.
    """
    rows: list[dict[str, Any]] = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    removals = [at for at, row in enumerate(rows) if row.get("event") == "positions removed"]
    if not removals:
        return None
    removed = removals[-1]
    frozen = {str(row["line"]).split(":")[0] for row in rows if row.get("event") == "frozen" and "line" in row}
    reports = [(at, row) for at, row in enumerate(rows) if row.get("event") == "progress"]
    before, after = ([row for at, row in reports if (at > removed) == later] for later in (False, True))
    return {
        "frozen_gates": len(frozen),
        "removed_at_step": rows[removed].get("step"),
        "open_then": rows[removed].get("open"),
        "before": _held_out(before),
        "after": _held_out(after),
    }


def _held_out(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    return {key: reports[-1].get(key) for key in ("step", "zh", "en", "unstated_f1")} if reports else None
