"""Prefix caching: what whole blocks of a prompt computed is kept, so that a prompt that begins alike starts further on.

A block is CHUNK tokens at a multiple of CHUNK. Its key is chained over the tokens of all blocks before it and the
domain, and its tokens are compared again on a hit, so two prompts share a block only when they are equal up to its end.
Blocks that nobody is copying are evicted, the least recently used first, when the pool is full.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .model import CHUNK, Model
from .safetensors import Array
from .state import State


@dataclass(slots=True)
class Block:
    """CHUNK tokens: `stored` (layers, H, CHUNK, 2w), and the state's tails, before and read after the last of them."""

    key: bytes
    tokens: tuple[int, ...]
    stored: Array
    tails: Array
    before: Array
    read: Array
    users: int = 0


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Tokens asked for and found since the start; blocks held, of how many, and those being copied."""

    queries: int
    hits: int
    blocks: int
    capacity: int
    in_use: int


class PrefixCache:
    """Blocks of one model, shared by threads. `capacity` is in blocks; 0 keeps none."""

    def __init__(self, capacity: int = 256) -> None:
        self._capacity = capacity
        self._blocks: OrderedDict[bytes, Block] = OrderedDict()
        self._lock = threading.Lock()
        self._queries = self._hits = 0

    @property
    def stats(self) -> CacheStats:
        """Counts at this moment."""
        with self._lock:
            users = sum(block.users > 0 for block in self._blocks.values())
            return CacheStats(self._queries, self._hits, len(self._blocks), self._capacity, users)

    def acquire(self, tokens: Sequence[int], domain: int) -> list[Block]:
        """The longest chain of blocks that `tokens` begin with, at least one token left over; give it to `release`."""
        found: list[Block] = []
        with self._lock:
            self._queries += len(tokens)
            for key, part in _chain(tokens[: len(tokens) - 1], domain):
                block = self._blocks.get(key)
                if block is None or block.tokens != part:
                    break
                block.users += 1
                self._blocks.move_to_end(key)
                found.append(block)
            self._hits += len(found) * CHUNK
        return found

    def release(self, blocks: Sequence[Block]) -> None:
        """The blocks are no longer being copied."""
        with self._lock:
            for block in blocks:
                block.users -= 1

    def store(self, key: bytes, tokens: Sequence[int], state: State) -> None:
        """Keep the last CHUNK tokens of `state` under `key`; nothing when it is there or every block is in use."""
        with self._lock:
            if key in self._blocks or not self._capacity:
                return
            while len(self._blocks) >= self._capacity:
                oldest = next((block for block in self._blocks.values() if not block.users), None)
                if oldest is None:
                    return
                del self._blocks[oldest.key]
            self._blocks[key] = _copied(key, tuple(tokens), state)


def read_prompt(model: Model, cache: PrefixCache, tokens: Sequence[int], state: State) -> tuple[int, list[int]]:
    """Fill a fresh `state` from the cache, and store the prompt's further whole blocks.

    Returns:
        How many tokens came from the cache, and the tokens (at least one) that are still to be read.
    """
    blocks = cache.acquire(tokens, state.domain)
    try:
        state.reserve(len(tokens))
        for block in blocks:
            _paste(block, state)
    finally:
        cache.release(blocks)
    for number, (key, part) in enumerate(_chain(tokens[: len(tokens) - 1], state.domain)):
        if number >= len(blocks):
            model.forward(part, state)
            cache.store(key, part, state)
    return len(blocks) * CHUNK, list(tokens[state.length :])


def _chain(tokens: Sequence[int], domain: int) -> list[tuple[bytes, tuple[int, ...]]]:
    """The key and tokens of each whole block."""
    key = domain.to_bytes(2, "little")
    found: list[tuple[bytes, tuple[int, ...]]] = []
    for at in range(0, len(tokens) - CHUNK + 1, CHUNK):
        part = tuple(tokens[at : at + CHUNK])
        key = hashlib.blake2b(key + np.array(part, "<i4").tobytes(), digest_size=16).digest()
        found.append((key, part))
    return found


def _copied(key: bytes, tokens: tuple[int, ...], state: State) -> Block:
    rows = [
        buffer[:, lead + state.length - CHUNK : lead + state.length]
        for buffer, lead in zip(state.stored, state.leads, strict=True)
    ]
    return Block(key, tokens, np.stack(rows), state.tails.copy(), state.before.copy(), state.read.copy())


def _paste(block: Block, state: State) -> None:
    for buffer, lead, rows in zip(state.stored, state.leads, block.stored, strict=True):
        buffer[:, lead + state.length : lead + state.length + CHUNK] = rows
    state.tails, state.before, state.read = block.tails.copy(), block.before, block.read
    state.length += CHUNK
