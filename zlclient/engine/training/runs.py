"""A run's folder: `state.pt` to go on from, `stem.pt` for auto to branch off, and the log `training.jsonl`."""

# PyTorch's annotations leave much unknown; the rest of strict checking stays on.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import torch

from ...errors import ConfigError
from ..config import Generation
from .recipe import STEM, Run
from .vocabulary import build_tokenizer

STATE, STEM_STATE, LOG = "state.pt", "stem.pt", "training.jsonl"


def train(
    generation: Generation,
    folder: Path,
    *,
    steps: int,
    stem: Path | None = None,
    seed: int = 0,
    every: int = 100,
    save_every_s: float = 60.0,
    limit: int | None = None,
    documents: int = 192,
) -> Run:
    """Train to `steps`, from where the folder's state is; a kill loses at most `save_every_s` seconds of work.

    `steps` may differ from the interrupted run's: what is left of the schedule stretches or shrinks with it.

    Args:
        generation: a run of auto starts from `stem`, the folder of a legacy run that has passed its half.
        folder: the run's; stem: as said.
        steps: the length of the run, of which this call does at most `limit`.
        seed: of the data and the noise.
        every: steps between two reports; the last one is on `documents` held-out documents, the others on a third.
        save_every_s: seconds between two saved states.

    Raises:
        ConfigError: a run of auto has neither a state nor a stem.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log_file = folder / LOG

    def log(entry: dict[str, Any]) -> None:
        with log_file.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"generation": generation, **entry}, ensure_ascii=False) + "\n")

    run = Run(generation, build_tokenizer(), steps=steps, seed=seed, log=log)
    state = folder / STATE
    if state.exists():
        restore(run, state)
        log({"event": "resumed", "step": run.step, "steps": steps})
    elif generation == "auto":
        if stem is None or not (stem / STEM_STATE).exists():
            raise ConfigError(
                "a run of auto starts from a legacy run that has passed its half", key="--stem", value=stem
            )
        branch(run, stem / STEM_STATE)
        log({"event": "branched", "step": run.step, "steps": steps})
    saved = time.monotonic()
    end = steps if limit is None else min(steps, run.step + limit)
    while run.step < end:
        run.advance()
        done = run.step >= steps
        if generation == "legacy" and run.step == int(STEM * steps):
            save(run, folder / STEM_STATE)
            log({"event": "stem kept", "step": run.step})
        if run.step % every == 0 or done:
            run.report(documents if done else documents // 3)
        if done or time.monotonic() - saved > save_every_s:
            save(run, state)
            saved = time.monotonic()
    return run


def save(run: Run, path: Path) -> None:
    """Write the state, in one piece or not at all."""
    data = {
        "step": run.step, "cpu": run.cpu, "best": run.best, "bound": run.model.bound,
        "positions": run.model.config.buckets > 0, "model": run.model.state_dict(),
        "optimisers": [optimiser.state_dict() for optimiser in run.optimisers.all],
    }  # fmt: skip
    fresh = path.with_suffix(".new")
    torch.save(data, fresh)
    fresh.replace(path)


def branch(run: Run, path: Path) -> None:
    """Put the stem's weights into a fresh run of auto; what the stem has not (gates, anchors) stays as it began."""
    data = torch.load(path, weights_only=True)
    known = run.model.state_dict()
    run.model.load_state_dict({**known, **{name: value for name, value in data["model"].items() if name in known}})
    run.step, run.cpu, run.best = data["step"], data["cpu"], data["best"]


def restore(run: Run, path: Path) -> None:
    """Put a saved state into `run`; only tensors and plain values are read."""
    data = torch.load(path, weights_only=True)
    if run.model.config.buckets and not data["positions"]:
        run.without_positions()
    run.close_heads(data["bound"])
    run.model.load_state_dict(data["model"])
    for optimiser, state in zip(run.optimisers.all, data["optimisers"], strict=True):
        optimiser.load_state_dict(state)
    run.step, run.cpu, run.best = data["step"], data["cpu"], data["best"]
