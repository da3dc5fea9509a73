"""What one sequence has computed so far, so that the next token costs one token."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .config import ModelConfig
from .safetensors import Array


@dataclass(frozen=True, slots=True)
class Step:
    """What one forward pass found: `logits` (V,) of the next token, legacy's `verdict` on it and its further rounds."""

    logits: Array
    verdict: float | None = None
    further: int = 0


@dataclass(slots=True)
class State:
    """`length` tokens have been read.

    stored   a layer's values and keys (H, rows, 2w); rows before `lead` are the domain's anchors
    tails    a layer's last normed inputs (taps - 1, d), for its convolution
    before   the last final hidden state (d,)       } for legacy's check loop
    read     the sum of all embeddings so far (d,)  }
    """

    domain: int
    stored: list[Array]
    leads: tuple[int, ...]
    tails: Array
    before: Array
    read: Array
    length: int = 0
    limit: int | None = None  # it never has room for more tokens than these
    gated: list[int] = field(default_factory=lambda: [0, 0])  # head-queries closed, and all

    @classmethod
    def empty(cls, config: ModelConfig, anchors: list[Array], domain: int, rows: int = 256) -> State:
        """A state before its first token, with room for `rows`; `anchors` are the domain's, for the lowest layers."""
        stored: list[Array] = []
        leads: list[int] = []
        for layer in range(config.layers):
            rows_before = anchors[layer].shape[1] if layer < len(anchors) else 0
            buffer = np.empty((config.heads, rows_before + rows, 2 * config.head), np.float32)
            if rows_before:
                buffer[:, :rows_before] = anchors[layer]
            stored.append(buffer)
            leads.append(rows_before)
        zero = np.zeros(config.width, np.float32)
        tails = np.zeros((config.layers, config.taps - 1, config.width), np.float32)
        return cls(domain, stored, tuple(leads), tails, zero, zero.copy())

    def reserve(self, tokens: int) -> None:
        """Make room for `tokens` more."""
        for layer, buffer in enumerate(self.stored):
            needed = self.leads[layer] + self.length + tokens
            if needed > buffer.shape[1]:
                rows = max(needed, buffer.shape[1] * 3 // 2)
                if self.limit is not None:
                    rows = max(needed, min(rows, self.leads[layer] + self.limit))
                grown = np.empty((buffer.shape[0], rows, buffer.shape[2]), np.float32)
                grown[:, : self.leads[layer] + self.length] = buffer[:, : self.leads[layer] + self.length]
                self.stored[layer] = grown

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(buffer.nbytes for buffer in self.stored) + self.tails.nbytes
