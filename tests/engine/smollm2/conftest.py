"""Tiny GGUF files, written here from the format's description, and a tiny model with random weights."""

import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zlclient.engine.smollm2.gguf import Gguf
from zlclient.engine.smollm2.tokenizer import ALPHABET, Tokenizer

CONTROLS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["h e", "l l", "he ll", "hell o", "Ġ w", "Ġw o", "i n", "in g", "a a", "aa aa"]
TOKENS = [*CONTROLS, *ALPHABET, *(merge.replace(" ", "") for merge in MERGES)]
SIZES = {"layers": 3, "width": 32, "heads": 4, "key_heads": 2, "hidden": 64, "context": 96}


def string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def value(item: Any) -> bytes:
    """A metadata value with its type before it."""
    match item:
        case bool():
            return struct.pack("<I?", 7, item)
        case int():
            return struct.pack("<II", 4, item)
        case float():
            return struct.pack("<If", 6, item)
        case str():
            return struct.pack("<I", 8) + string(item)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(item)) + b"".join(map(string, item))
        case _:
            return struct.pack("<IIQ", 9, 5, len(item)) + struct.pack(f"<{len(item)}i", *item)


def gguf_bytes(metadata: Mapping[str, Any], tensors: Mapping[str, tuple[tuple[int, ...], int, bytes]]) -> bytes:
    """A file; a tensor is its numpy shape, its type and its data."""
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    out += b"".join(string(key) + value(item) for key, item in metadata.items())
    data = b""
    for name, (shape, kind, raw) in tensors.items():
        out += string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, len(data))
        data += raw + bytes(-len(raw) % 32)
    return out + bytes(-len(out) % 32) + data


def tiny_metadata() -> dict[str, Any]:
    return {
        "general.architecture": "llama",
        "llama.block_count": SIZES["layers"],
        "llama.context_length": SIZES["context"],
        "llama.embedding_length": SIZES["width"],
        "llama.feed_forward_length": SIZES["hidden"],
        "llama.attention.head_count": SIZES["heads"],
        "llama.attention.head_count_kv": SIZES["key_heads"],
        "llama.rope.freq_base": 10_000.0,
        "llama.rope.dimension_count": SIZES["width"] // SIZES["heads"],
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.vocab_size": len(TOKENS),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.token_type": [3] * len(CONTROLS) + [1] * (len(TOKENS) - len(CONTROLS)),
        "tokenizer.ggml.merges": MERGES,
    }


def tiny_weights() -> dict[str, np.ndarray]:
    width, hidden = SIZES["width"], SIZES["hidden"]
    keys = width // SIZES["heads"] * SIZES["key_heads"]
    shapes: dict[str, tuple[int, ...]] = {"token_embd": (len(TOKENS), width), "output_norm": (width,)}
    for layer in range(SIZES["layers"]):
        for name, shape in {
            "attn_norm": (width,), "attn_q": (width, width), "attn_k": (keys, width), "attn_v": (keys, width),
            "attn_output": (width, width), "ffn_norm": (width,), "ffn_gate": (hidden, width),
            "ffn_up": (hidden, width), "ffn_down": (width, hidden),
        }.items():  # fmt: skip
            shapes[f"blk.{layer}.{name}"] = shape
    rng = np.random.default_rng(7)
    return {
        f"{name}.weight": (rng.standard_normal(shape) * 0.3 + (len(shape) == 1)).astype(np.float32)
        for name, shape in shapes.items()
    }


@pytest.fixture(scope="session")
def make_gguf(tmp_path_factory) -> Callable[..., Path]:
    """Writes a file from metadata and tensors (float32 arrays, or shape, type and bytes); no arguments: the tiny one."""
    folder = tmp_path_factory.mktemp("gguf")
    names = iter(range(1_000_000))

    def make(metadata=None, tensors=None) -> Path:
        metadata = tiny_metadata() if metadata is None else metadata
        tensors = tiny_weights() if tensors is None else tensors
        entries = {
            name: (item.shape, 0, item.tobytes()) if isinstance(item, np.ndarray) else item
            for name, item in tensors.items()
        }
        path = folder / f"{next(names)}.gguf"
        path.write_bytes(gguf_bytes(metadata, entries))
        return path

    return make


@pytest.fixture(scope="session")
def tiny_path(make_gguf) -> Path:
    return make_gguf()


@pytest.fixture(scope="session")
def tokenizer(tiny_path) -> Tokenizer:
    return Tokenizer.of(Gguf(tiny_path))


@pytest.fixture
def metadata() -> dict[str, Any]:
    """The tiny model's, to change."""
    return tiny_metadata()


@pytest.fixture
def tensors() -> dict[str, np.ndarray]:
    """The tiny model's, to change."""
    return tiny_weights()
