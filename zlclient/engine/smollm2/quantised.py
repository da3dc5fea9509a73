"""Blocks of small integers as floats: the tensor types that the model's file has.

A row is cut into blocks of 32 values, and each block has its own scale (ggml's block_q8_0 and block_q4_1,
https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h):

    Q8_0   scale float16, 32 int8                          value = scale · q
    Q4_1   scale float16, minimum float16, 16 bytes        value = scale · q + minimum; a byte's low half is value i,
                                                           its high half value i + 16
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..safetensors import Array

BLOCK = 32  # values


@dataclass(frozen=True, slots=True)
class Format:
    """A tensor type: `values` values take `size` bytes; `read` makes float32 (n,) of bytes (m,)."""

    name: str
    values: int
    size: int
    read: Callable[[Array], Array]


def read_f32(data: Array) -> Array:
    """A copy, so that it does not keep the file mapped and is aligned."""
    return np.frombuffer(data.tobytes(), "<f4").astype(np.float32)


def read_q8_0(data: Array) -> Array:
    """Blocks of 34 bytes."""
    blocks = data.reshape(-1, 34)
    values = blocks[:, 2:].view(np.int8).astype(np.float32)
    values *= _halves(blocks[:, :2])
    return values.reshape(-1)


def read_q4_1(data: Array) -> Array:
    """Blocks of 20 bytes."""
    blocks = data.reshape(-1, 20)
    packed = blocks[:, 4:]
    values = np.empty((len(blocks), BLOCK), np.float32)
    values[:, :16] = packed & 15
    values[:, 16:] = packed >> 4
    values *= _halves(blocks[:, :2])
    values += _halves(blocks[:, 2:4])
    return values.reshape(-1)


def _halves(data: Array) -> Array:
    """float16 of bytes (n, 2) as float32 (n, 1)."""
    return np.ascontiguousarray(data).view("<f2").astype(np.float32)


FORMATS = {
    0: Format("F32", 1, 4, read_f32),
    3: Format("Q4_1", BLOCK, 20, read_q4_1),
    8: Format("Q8_0", BLOCK, 34, read_q8_0),
}
