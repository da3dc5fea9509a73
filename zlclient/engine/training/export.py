"""From a training run to a checkpoint: the tensors that the configuration names, as float16."""

# PyTorch's annotations leave much unknown; the rest of strict checking stays on.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from torch import Tensor

from ...errors import ConfigError
from ..checkpoint import load_checkpoint, save_checkpoint, tensor_shapes
from ..config import Generation
from ..safetensors import Array
from .calibrate import calibrate
from .network import Decoder
from .recipe import Run
from .runs import LOG, STATE, restore
from .vocabulary import build_tokenizer


def tensors_of(model: Decoder) -> dict[str, Array]:
    """The model's tensors under their names in a checkpoint; gates and buffers of training are left out."""
    weights: dict[str, Tensor] = model.state_dict()
    return {name: weights[name].detach().numpy() for name in tensor_shapes(model.config)}


def export_run(generation: Generation, run_folder: Path, folder: Path) -> None:
    """Write the checkpoint of the run in `run_folder` to `folder`, auto's thresholds calibrated, and its log beside it.

    Raises:
        ConfigError: there is no run of `generation` in `run_folder`.
    """
    state = run_folder / STATE
    if not state.exists():
        raise ConfigError("holds no run", key="folder", value=str(run_folder))
    run = Run(generation, build_tokenizer(), steps=1, seed=0, log=_unlogged)
    restore(run, state)
    save_checkpoint(folder, run.model.config, run.tokenizer, tensors_of(run.model))
    if generation == "auto":
        found = calibrate(load_checkpoint(folder, generation=generation))
        save_checkpoint(folder, found.config, found.tokenizer, found.tensors)
    shutil.copyfile(run_folder / LOG, folder / LOG)


def _unlogged(entry: dict[str, Any]) -> None:
    """Nothing is trained here, so nothing is logged."""
