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
from .state import State, Step

COPIES = 32  # blocks copied in one turn, in about the time that one takes to compute


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

    def asked(self, tokens: int) -> None:
        """Count a prompt of `tokens` that is going to be looked up."""
        with self._lock:
            self._queries += tokens

    def acquire(self, key: bytes, tokens: Sequence[int]) -> Block | None:
        """The block under `key` if it holds `tokens`; it stays until it is given to `release`."""
        with self._lock:
            block = self._blocks.get(key)
            if block is None or block.tokens != tuple(tokens):
                return None
            block.users += 1
            self._blocks.move_to_end(key)
            self._hits += CHUNK
            return block

    def release(self, block: Block) -> None:
        """The block is no longer being copied."""
        with self._lock:
            block.users -= 1

    def clear(self) -> None:
        """Forget all blocks, with a fresh lock: for a forked child, where another thread may have held it."""
        self._lock = threading.Lock()
        self._blocks = OrderedDict()

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


class Reading:
    """A prompt on its way into a fresh state, one turn at a time: from the cache where it can be, else by computing.

    Cut always at whole blocks, so that a prompt gives the same bits from the cache as without it.
    """

    def __init__(self, model: Model, cache: PrefixCache, tokens: Sequence[int], state: State) -> None:
        """`tokens` are at least one; the last is always computed."""
        self._model, self._cache, self._tokens, self._state = model, cache, tokens, state
        self._key = state.domain.to_bytes(2, "little")
        self.cached = 0  # tokens that came from the cache
        cache.asked(len(tokens))
        state.reserve(len(tokens))

    @property
    def whole_blocks(self) -> bool:
        """Whether a whole block is still to come before the last token."""
        return len(self._tokens) - self._state.length > CHUNK

    def turn(self) -> Step | None:
        """Copy up to COPIES blocks, or compute at most CHUNK tokens; the step after the last token, else None."""
        state = self._state
        if not self.whole_blocks:
            return self._model.forward(self._tokens[state.length :], state)
        for copied in range(COPIES):
            part = tuple(self._tokens[state.length : state.length + CHUNK])
            key = hashlib.blake2b(self._key + np.array(part, "<i4").tobytes(), digest_size=16).digest()
            block = self._cache.acquire(key, part)
            if block is None and copied:
                return None
            self._key = key
            if block is None:
                self._model.forward(part, state)
                self._cache.store(key, part, state)
                return None
            try:
                _paste(block, state)
            finally:
                self._cache.release(block)
            self.cached += CHUNK
            if not self.whole_blocks:
                return None
        return None


def read_prompt(model: Model, cache: PrefixCache, tokens: Sequence[int], state: State) -> tuple[int, list[int]]:
    """Fill a fresh `state` from the cache, and store the prompt's further whole blocks.

    Returns:
        How many tokens came from the cache, and the tokens (at least one) that are still to be read.
    """
    reading = Reading(model, cache, tokens, state)
    while reading.whole_blocks:
        reading.turn()
    return reading.cached, list(tokens[state.length :])


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
