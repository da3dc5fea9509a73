"""The arithmetic of a block, in numpy: normalisation, causal convolution, attention, feed-forward, position bias.

Shapes: T tokens of a chunk, n keys seen so far (the chunk's own included), H heads of width w, d = H·w.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .config import bucket_of
from .safetensors import Array

EPSILON = np.float32(1e-6)
HIDDEN = np.float32(-1e9)
# A score this far under the best one counts no less. e^-80 is nothing beside 1 in float32, but still a normal number:
# arithmetic on the denormal ones below takes a hundred times as long, which came to a quarter of all prefill.
FAINT = np.float32(-80)


def rms_norm(x: Array) -> Array:
    """x over its root mean square, row by row; the learned weights are folded into what comes next."""
    mean = np.vecdot(x, x)
    mean /= np.float32(x.shape[-1])
    mean += EPSILON
    return x / np.sqrt(mean, out=mean)[:, None]


def convolve(h: Array, taps: Array) -> Array:
    """Causal depthwise convolutions of h (taps - 1 + T, d), whose first rows only come before.

    taps (c, taps, d) are those of some of queries, keys and values, the newest row's first; gives (c, T, d).
    """
    first = taps.shape[1] - 1
    rows = len(h) - first
    mixed = h[first:] * taps[:, :1]
    for tap in range(1, first + 1):
        mixed += h[first - tap : first - tap + rows] * taps[:, tap : tap + 1]
    return mixed


def feed_forward(h: Array, gate_up: Array, down: Array) -> Array:
    """SwiGLU. gate_up (d, 2·hidden), down (hidden, d)."""
    return gated(h @ gate_up) @ down


def gated(both: Array) -> Array:
    """SiLU of the first half of the columns times the second half."""
    hidden = both.shape[-1] // 2
    gate, up = both[..., :hidden], both[..., hidden:]
    return gate / (1 + np.exp(-gate)) * up


def attend(
    q: Array, stored: Array, triangle: Array, *, bias: Array | None, bound: float | None, counts: Array | None
) -> tuple[Array, Array | None]:
    """Causal attention of a chunk; heads whose entropy over ln(visible keys) exceeds `bound` give zero.

    Args:
        q: (H, T, w), already scaled.
        stored: (H, n, 2w): values, then keys. Both are multiplied by the weights at once where the entropy is wanted,
            because entropy = ln Z - q · Σ weight·key: no logarithm of each weight.
        triangle: (T, C), 0 where one of the last C keys is seen and HIDDEN where not.
        bias: (H, T, n) added to the scores.
        bound: the entropy gate's, or None for no gate.
        counts: (T,) keys that each query sees; only with a bound.

    Returns:
        (H, T, w), and which heads are open (H, T) where there is a gate.
    """
    width = q.shape[-1]
    scores = q @ stored[:, :, width:].transpose(0, 2, 1)
    if bias is not None:
        add_position_bias(scores, bias)
    if triangle.shape[1] > 1:
        scores[:, :, -triangle.shape[1] :] += triangle
    largest = scores.max(-1, keepdims=True)
    scores -= largest
    np.maximum(scores, FAINT, out=scores)
    np.exp(scores, out=scores)
    total = scores.sum(-1, keepdims=True)
    if bound is None:
        return scores @ stored[:, :, :width] / total, None
    assert counts is not None
    mixed = scores @ stored / total
    entropy = (largest + np.log(total))[..., 0] - np.einsum("htw,htw->ht", q, mixed[:, :, width:])
    is_open = entropy <= np.float32(bound) * np.log(np.maximum(counts, 2), dtype=np.float32)
    return mixed[:, :, :width] * is_open[..., None], is_open


def add_position_bias(scores: Array, bias: Array) -> None:
    """scores += bias; in a function of its own, so that a profile shows it."""
    scores += bias


class PositionBias:
    """Legacy's relative-position layer: a bias for each head and distance, in a cached matrix.

    The matrix (H, chunk, span) holds the bias of every query of a chunk and every key up to `span` tokens back; each
    chunk of a prompt reads its part of it. It grows by doubling, so a long prompt builds it a few times.
    """

    def __init__(self, weight: Array, chunk: int) -> None:
        self._weight, self._chunk = weight, chunk
        self._matrix = np.empty((weight.shape[0], chunk, 0), np.float32)

    def __call__(self, queries: int, keys: int) -> Array:
        """(H, queries, keys) for the last `queries` of `keys` tokens; at most `chunk` queries."""
        first = keys - queries
        matrix = self._matrix
        if first + self._chunk > matrix.shape[-1]:
            matrix = self._matrix = self._built(max(first + self._chunk, 2 * matrix.shape[-1], 256))
        start = matrix.shape[-1] - self._chunk - first
        return matrix[:, :queries, start : start + keys]

    def _built(self, span: int) -> Array:
        buckets = self._weight.shape[-1]
        table = np.array([bucket_of(distance, buckets) for distance in range(span)], np.int32)
        distance = np.arange(self._chunk)[:, None] + (span - self._chunk) - np.arange(span)[None]
        return np.ascontiguousarray(self._weight[:, table[np.maximum(distance, 0)]])


@dataclass(frozen=True, slots=True)
class Layer:
    """One block's weights, ready to multiply with."""

    conv: Array  # (3, taps, d), the norm's weights folded in
    qkv: Array  # (3, d, d), queries scaled
    out: Array  # (d, d)
    gate_up: Array  # (d, 2·hidden), the norm's weights folded in
    down: Array  # (hidden, d)
    bias: PositionBias | None
