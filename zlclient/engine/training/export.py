"""From a training run to a checkpoint: the tensors that the configuration names, as float16."""

# PyTorch's annotations leave much unknown; the rest of strict checking stays on.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from ..checkpoint import save_checkpoint, tensor_shapes
from ..safetensors import Array
from ..tokenizer import Tokenizer
from .network import Decoder


def tensors_of(model: Decoder) -> dict[str, Array]:
    """The model's tensors under their names in a checkpoint; gates and buffers of training are left out."""
    weights: dict[str, Tensor] = model.state_dict()
    return {name: weights[name].detach().numpy() for name in tensor_shapes(model.config)}


def export(model: Decoder, tokenizer: Tokenizer, folder: Path) -> None:
    """Write the checkpoint of `model` to `folder`."""
    save_checkpoint(folder, model.config, tokenizer, tensors_of(model))
