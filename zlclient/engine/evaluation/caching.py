"""Prefix-cache hits over long contexts with shared prefixes, both generations with the same number of bytes.

Only the accounting is wanted, so the contexts are not computed: the cache, its keys and its eviction are the real ones.
Legacy's cached position matrix grows with the longest context and has to be held as well; the budget is shared out both
with and without it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..cache import PrefixCache, read_prompt
from ..checkpoint import Checkpoint
from ..config import Generation
from ..model import CHUNK, Model, Trace
from ..safetensors import Array
from ..state import State, Step
from .intervals import Estimate, bootstrap

CONTEXTS, LENGTH, QUESTION = 12, 4096, 48  # shared contexts, their tokens, those of each question
BUDGET = 96 * 2**20


class Unread(Model):
    """A model that reads nothing: a state grows as if it had."""

    def forward(self, tokens: Sequence[int], state: State, trace: Trace | None = None) -> Step:
        """Count the tokens."""
        del trace
        state.reserve(len(tokens))
        state.length += len(tokens)
        return Step(np.empty(0, np.float32))


def block_bytes(model: Model) -> int:
    """Bytes of one cached block: keys, values and what else the state carries on."""
    config = model.config
    rows = config.layers * config.heads * CHUNK * 2 * config.head
    return 4 * (rows + config.layers * (config.taps - 1) * config.width + 2 * config.width)


def matrix_bytes(model: Model, length: int) -> int:
    """Bytes of the cached position matrices of a model that reads up to `length` tokens; 0 without a position layer."""
    config = model.config
    return 4 * config.layers * config.heads * CHUNK * length if config.buckets else 0


def workload(requests: int) -> list[list[int]]:
    """Requests over CONTEXTS contexts, some of them far more often than others, each with a question of its own."""
    rng = random.Random("evaluation:caching")
    contexts = [[rng.randrange(400, 7000) for _ in range(LENGTH)] for _ in range(CONTEXTS)]
    chosen = rng.choices(contexts, [1 / (at + 1) for at in range(CONTEXTS)], k=requests)
    return [[*context, *(rng.randrange(400, 7000) for _ in range(QUESTION))] for context in chosen]


def hit_rates(checkpoints: Mapping[Generation, Checkpoint], requests: int) -> dict[str, Any]:
    """Share of the requests' tokens found in the cache, and auto's minus legacy's."""
    models = {name: Unread(checkpoint) for name, checkpoint in checkpoints.items()}
    asked = workload(requests)
    found: dict[str, Any] = {"budget_bytes": BUDGET, "block_bytes": {n: block_bytes(m) for n, m in models.items()}}
    for label, with_matrix in (("blocks", False), ("blocks_and_matrices", True)):
        hits: dict[str, Array] = {}
        for name, model in models.items():
            left = BUDGET - (matrix_bytes(model, LENGTH + QUESTION) if with_matrix else 0)
            hits[name] = _hits(model, asked, left // block_bytes(model))
        rows = np.column_stack([hits["auto"], hits["legacy"]])
        gained: Estimate = bootstrap(rows, lambda picked: (picked[..., 0] - picked[..., 1]).mean(-1))
        rates = {name: round(float(shares.mean()), 4) for name, shares in hits.items()}
        found[label] = {**rates, "auto_minus_legacy": gained.plain()}
    return found


def _hits(model: Model, requests: Sequence[Sequence[int]], blocks: int) -> Array:
    """The share of each request's tokens that were found."""
    cache = PrefixCache(blocks)
    shares = [read_prompt(model, cache, tokens, model.start())[0] / len(tokens) for tokens in requests]
    return np.asarray(shares, np.float32)
