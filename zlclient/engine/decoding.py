"""One token for each of several sequences at once, with the bits that each would have alone.

A matrix product's rounding depends on the number of its rows, because BLAS takes another kernel. So rows go in tiles
of TILE, zeros filling the last one, and every product is of one tile, also for a sequence alone. Within a tile no row
may depend on the others or on its place; that is a property of the BLAS at hand, so it is tried once on this very
model's weights, and where it does not hold every row is a product of its own, which is slower and exact by itself.
Attention is computed sequence by sequence, since their lengths differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from .check import FidelityCheck
from .config import ModelConfig
from .layers import FAINT, Layer, add_position_bias, gated, rms_norm
from .safetensors import Array
from .state import State, Step

TILE = 4  # the smallest that the kernels like: a sequence alone pays for a whole tile
COLUMNS = 384  # of the head at a time: products this small are computed without copying the weights first


def blocked(embedding: Array) -> Array:
    """The output head (d, columns) of embedding (V, d): its transpose, with zeros up to a multiple of COLUMNS."""
    size, width = embedding.shape
    head = np.zeros((width, -(-size // COLUMNS) * COLUMNS), np.float32)
    head[:, :size] = embedding.T
    return head


class _Gate:
    """The entropy gate in one step of N sequences that see `keys` (layers, N): the entropies' `limits` (layers, N, 1),
    and which heads are `opened` (layers, N, H)."""

    def __init__(self, bound: float, keys: list[list[int]], heads: int) -> None:
        self.limits = np.float32(bound) * np.log(np.maximum(keys, 2), dtype=np.float32)[..., None]
        self.opened = np.ones((len(keys), len(keys[0]), heads), bool)

    def count(self, states: Sequence[State]) -> None:
        """Note in each state how many heads were closed, of how many."""
        layers, _, heads = self.opened.shape
        for state, opened in zip(states, self.opened.sum((0, 2)).tolist(), strict=True):
            state.gated[0] += layers * heads - opened
            state.gated[1] += layers * heads


class Decoder:
    """The weights of a model and how one token a sequence goes through them; keeps nothing between calls."""

    def __init__(
        self, config: ModelConfig, embedding: Array, norm: Array, head: Array, layers: Sequence[Layer],
        check: FidelityCheck | None,
    ) -> None:  # fmt: skip
        self._config, self._embedding, self._norm = config, embedding, norm
        self._head = head.reshape(config.width, -1, COLUMNS).transpose(1, 0, 2)[:, None]
        self._layers, self._check = layers, check

    def __call__(self, tokens: Sequence[int], states: Sequence[State]) -> list[Step]:
        """Read tokens[i] into states[i]; the states are different ones."""
        count = len(tokens)
        for state in states:
            state.reserve(1)
        embedded = self._padded(self._embedding[list(tokens)])
        tails = np.zeros((len(self._layers), len(embedded), *states[0].tails.shape[1:]), np.float32)
        for row, state in enumerate(states):
            tails[:, row] = state.tails
        keys = [[state.leads[index] + state.length + 1 for state in states] for index in range(len(self._layers))]
        bound = self._config.entropy_bound
        gate = None if bound is None else _Gate(bound, keys, self._config.heads)
        x = embedded
        for index, layer in enumerate(self._layers):
            x = self._block(index, layer, x, tails, states, keys[index], gate)
        for row, state in enumerate(states):
            state.tails = tails[:, row]
            state.length += 1
        if gate is not None:
            gate.count(states)
        y = (rms_norm(x) * self._norm)[:count]
        logits = self._logits(y)
        if self._check is None:
            return [Step(row) for row in logits]
        return self._checked(self._check, embedded[:count], y, logits, states)

    def _block(
        self, index: int, layer: Layer, x: Array, tails: Array, states: Sequence[State], keys: Sequence[int],
        gate: _Gate | None,
    ) -> Array:  # fmt: skip
        joined = np.concatenate([tails[index], rms_norm(x)[:, None]], 1)
        tails[index] = joined[:, 1:]
        mixed = np.einsum("ntd,ctd->cnd", joined, layer.conv[:, ::-1])
        q, k, v = self._product(mixed, layer.qkv[:, None]).reshape(3, len(x), self._config.heads, self._config.head)
        attended = np.zeros((len(x), self._config.width), np.float32)
        attended[: len(states)] = self._attend(index, layer, q, np.concatenate([v, k], -1), states, keys, gate)
        x = x + self._product(attended, layer.out)
        return x + self._product(gated(self._product(rms_norm(x), layer.gate_up)), layer.down)

    def _attend(
        self, index: int, layer: Layer, q: Array, vk: Array, states: Sequence[State], keys: Sequence[int],
        gate: _Gate | None,
    ) -> Array:  # fmt: skip
        """What `layers.attend` says, for one query (H, w) of each sequence, which sees so many keys; gives (N, d)."""
        heads, width = self._config.heads, self._config.head
        mixed = np.empty((len(states), heads, width if gate is None else 2 * width), np.float32)
        largest = np.empty((len(states), heads, 1), np.float32)
        total = np.empty_like(largest)
        for row, (state, seen) in enumerate(zip(states, keys, strict=True)):
            stored = state.stored[index]
            stored[:, seen - 1] = vk[row]
            scores = (stored[:, :seen, width:] @ q[row, :, :, None])[..., 0]
            if layer.bias is not None:
                add_position_bias(scores, layer.bias(1, seen)[:, 0])
            scores.max(-1, keepdims=True, out=largest[row])
            scores -= largest[row]
            np.maximum(scores, FAINT, out=scores)
            np.exp(scores, out=scores)
            scores.sum(-1, keepdims=True, out=total[row])
            np.matmul(scores[:, None], stored[:, :seen, : mixed.shape[-1]], out=mixed[row, :, None])
        mixed /= total
        if gate is None:
            return mixed.reshape(len(states), -1)
        entropy = (largest + np.log(total))[..., 0] - np.vecdot(q[: len(states)], mixed[..., width:])
        is_open = np.less_equal(entropy, gate.limits[index], out=gate.opened[index])
        return (mixed[..., :width] * is_open[..., None]).reshape(len(states), -1)

    def _checked(
        self, check: FidelityCheck, embedded: Array, y: Array, logits: Array, states: Sequence[State]
    ) -> list[Step]:
        before = np.stack([state.before for state in states])
        sums = np.stack([state.read for state in states]) + embedded
        counts = np.array([[state.length] for state in states], np.float32)
        for row, state in enumerate(states):
            state.before, state.read = y[row], sums[row]
        logits, verdicts, further = check(y, logits, before, sums / counts, self._logits)
        return [Step(*row) for row in zip(logits, verdicts.tolist(), further.tolist(), strict=True)]

    def _logits(self, y: Array) -> Array:
        """The logits (N, V) of final hidden states (N, d), one block of columns and one tile after the other."""
        rows = self._padded(y).reshape(-1, self._tile, y.shape[-1])
        blocks, columns = self._head.shape[0], self._head.shape[-1]
        out = np.empty((len(rows), self._tile, blocks, columns), np.float32)
        np.matmul(rows, self._head, out=out.transpose(2, 0, 1, 3))
        return out.reshape(-1, blocks * columns)[: len(y), : self._config.vocabulary]

    def _product(self, x: Array, weight: Array) -> Array:
        """x (…, N, d) @ weight (…, d, n), N a multiple of the tile."""
        tiles = x.reshape(*x.shape[:-2], -1, self._tile, x.shape[-1]) @ weight
        return tiles.reshape(*x.shape[:-1], -1)

    def _padded(self, x: Array) -> Array:
        missing = -len(x) % self._tile
        return np.concatenate([x, np.zeros((missing, x.shape[-1]), np.float32)]) if missing else x

    @cached_property
    def _tile(self) -> int:
        layer = self._layers[0]
        weights = (*layer.qkv, layer.out, layer.gate_up, layer.down, self._head[0, 0])
        return TILE if all(map(_keeps_rows_apart, weights)) else 1


def _keeps_rows_apart(weight: Array) -> bool:
    """Whether in a product of TILE rows a row's result depends neither on its place nor on the others."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((TILE, weight.shape[0]), np.float32)
    expected = rows @ weight
    for turn in range(1, TILE):
        turned = np.roll(rows, turn, 0)
        if not np.array_equal(turned @ weight, np.roll(expected, turn, 0)):
            return False
        turned[: TILE - 1] = 0
        if not np.array_equal((turned @ weight)[-1], expected[(-1 - turn) % TILE]):
            return False
    return True
