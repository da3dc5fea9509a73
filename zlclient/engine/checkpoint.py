"""Checkpoints: a folder with config.json, tokenizer.json, model.safetensors and its index.

The index (model.safetensors.index.json) says which file holds which tensor, how many bytes they have and each file's
SHA-256; a file that differs is not loaded. Which tensors there must be follows from config.json alone, so loading one
generation as the other fails and names the tensor that is too many or missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ConfigError
from .config import Generation, ModelConfig
from .safetensors import Array, read_tensors, sha256_of, write_tensors
from .tokenizer import Tokenizer

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
SHIPPED = Path(__file__).with_name("checkpoints")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A loaded checkpoint; `tensors` are float32."""

    config: ModelConfig
    tokenizer: Tokenizer
    tensors: Mapping[str, Array]
    sha256: str


def tensor_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The name and shape of every tensor that a model of `config` has."""
    d, hidden, rank = config.width, config.hidden, config.check_rank
    shapes: dict[str, tuple[int, ...]] = {"embedding.weight": (config.vocabulary, d), "norm.weight": (d,)}
    if config.anchors:
        shapes["anchors"] = (len(config.domains), config.anchors, d)
    for index in range(config.layers):
        name = f"layers.{index}."
        shapes |= {
            f"{name}norm.weight": (d,),
            f"{name}conv": (3, config.taps, d),
            f"{name}qkv.weight": (3 * d, d),
            f"{name}out.weight": (d, d),
            f"{name}ffn_norm.weight": (d,),
            f"{name}gate_up.weight": (2 * hidden, d),
            f"{name}down.weight": (d, hidden),
        }
        if config.buckets:
            shapes[f"{name}pos_encoder.weight"] = (config.heads, config.buckets)
    if rank:
        width = config.check_width
        shapes |= {
            "check.state": (rank, d),
            "check.candidate": (rank, d),
            "check.back": (d, rank),
            "check.inner.weight": (width, 3 * rank + 3),
            "check.inner.bias": (width,),
            "check.rating.weight": (3, width),
            "check.rating.bias": (3,),
            "check.weight": (3,),
        }
    return shapes


def load_checkpoint(folder: Path, *, generation: Generation | None = None) -> Checkpoint:
    """Read and verify the checkpoint in `folder`.

    Args:
        folder: where the four files are.
        generation: which generation it must be; None takes what config.json says.

    Raises:
        ConfigError: a file is missing or damaged, or a tensor is missing, too many or of another shape.
    """
    config = ModelConfig.load(folder / "config.json")
    tensors, digest = _verified(folder)
    _match(tensors, tensor_shapes(config), folder, f"a {config.generation} model of this config.json")
    if generation is not None and generation != config.generation:
        _refuse(config, tensors, folder, generation)
    try:
        tokenizer = Tokenizer.load(folder / "tokenizer.json")
    except (OSError, ValueError) as error:
        raise ConfigError(str(error), file=str(folder / "tokenizer.json")) from None
    if tokenizer.size != config.vocabulary:
        raise ConfigError(f"has {tokenizer.size} tokens, not {config.vocabulary}", file=str(folder / "tokenizer.json"))
    return Checkpoint(
        config, tokenizer, {name: np.array(tensor, np.float32) for name, tensor in tensors.items()}, digest
    )


def load_shipped(generation: Generation) -> Checkpoint:
    """The checkpoint that comes with this release."""
    return load_checkpoint(SHIPPED / generation, generation=generation)


def save_checkpoint(folder: Path, config: ModelConfig, tokenizer: Tokenizer, tensors: Mapping[str, Array]) -> None:
    """Write a checkpoint, its weights as float16."""
    folder.mkdir(parents=True, exist_ok=True)
    _match(tensors, tensor_shapes(config), folder, f"a {config.generation} model of this config")
    halves = {name: np.asarray(tensor, np.float16) for name, tensor in tensors.items()}
    write_tensors(folder / WEIGHTS, halves)
    config.save(folder / "config.json")
    tokenizer.save(folder / "tokenizer.json")
    index = {
        "metadata": {
            "total_size": sum(tensor.nbytes for tensor in halves.values()),
            "sha256": {WEIGHTS: sha256_of(folder / WEIGHTS)},
        },
        "weight_map": dict.fromkeys(sorted(halves), WEIGHTS),
    }
    (folder / INDEX).write_text(json.dumps(index, indent=1) + "\n", "utf-8")


def _verified(folder: Path) -> tuple[dict[str, Array], str]:
    try:
        index: Any = json.loads((folder / INDEX).read_text("utf-8"))
        placed: dict[str, str] = index["weight_map"]
        digests: dict[str, str] = index["metadata"]["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"cannot be read: {error}", file=str(folder / INDEX)) from None
    tensors: dict[str, Array] = {}
    for name in sorted(set(placed.values())):
        path = folder / name
        if path.parent != folder or not path.is_file():
            raise ConfigError("is missing", file=str(path))
        if sha256_of(path) != digests.get(name):
            raise ConfigError("its SHA-256 is not the one in the index: the file is damaged or another", file=str(path))
        found = read_tensors(path)
        for tensor, file in placed.items():
            if file == name and tensor not in found:
                raise ConfigError(f"tensor {tensor!r} of the index is missing", file=str(path))
        tensors |= found
    return tensors, " ".join(digests[name] for name in sorted(set(placed.values())))


def _match(tensors: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]], folder: Path, what: str) -> None:
    for name in sorted(tensors.keys() | shapes.keys()):
        if name not in shapes:
            raise ConfigError(f"tensor {name!r} is no part of {what}", file=str(folder / WEIGHTS))
        if name not in tensors:
            raise ConfigError(f"tensor {name!r} of {what} is missing", file=str(folder / WEIGHTS))
        if tuple(tensors[name].shape) != shapes[name]:
            raise ConfigError(
                f"tensor {name!r} has shape {tuple(tensors[name].shape)}, {what} needs {shapes[name]}",
                file=str(folder / WEIGHTS),
            )


def _refuse(config: ModelConfig, tensors: Mapping[str, Array], folder: Path, asked: Generation) -> None:
    own = ("pos_encoder", "check.") if config.generation == "legacy" else ("anchors",)
    name = next((name for name in sorted(tensors) if any(part in name for part in own)), "config.generation")
    raise ConfigError(
        f"holds a {config.generation} model, not {asked}: tensor {name!r} is no part of {asked}",
        file=str(folder / WEIGHTS),
    )
