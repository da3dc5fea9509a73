"""Choosing the next token: greedy, or by temperature within a nucleus, from a seeded generator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from .safetensors import Array


@dataclass(frozen=True, slots=True)
class Sampling:
    """`temperature` 0 is greedy and draws nothing; `top_p` keeps the fewest tokens that hold this much probability.

    `logprobs` asks for each token's log probability and for that many likeliest ones beside it; None for neither.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    logprobs: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.temperature <= 2:
            raise InputError("must be from 0 to 2", where="temperature")
        if not 0 < self.top_p <= 1:
            raise InputError("must be above 0 and at most 1", where="top_p")
        if self.logprobs is not None and not 0 <= self.logprobs <= 20:
            raise InputError("must be from 0 to 20", where="logprobs")


class Sampler:
    """One sequence's choices; the same seed and logits give the same tokens."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._random = np.random.default_rng(sampling.seed) if sampling.temperature else None

    def choose(self, logits: Array) -> int:
        """A token from logits (V,)."""
        if self._random is None:
            return int(logits.argmax())
        probabilities, top_p = softmax(logits / self._sampling.temperature), self._sampling.top_p
        # Those under this hold less than 1 - top_p together: the nucleus is among the others, which are few to sort.
        order: Array = np.flatnonzero(probabilities >= 0.999 * (1 - top_p) / len(probabilities))
        if top_p < 1:
            order = order[np.argsort(-probabilities[order], kind="stable")]
        summed: Array = probabilities[order].cumsum(dtype=np.float64)
        kept = len(summed)
        if top_p < 1:
            kept = min(int(np.searchsorted(summed, top_p * float(probabilities.sum(dtype=np.float64)))) + 1, kept)
        at = int(np.searchsorted(summed[:kept], self._random.random() * float(summed[kept - 1]), side="right"))
        return int(order[min(at, kept - 1)])


def softmax(logits: Array) -> Array:
    """Probabilities (V,) of logits (V,)."""
    shifted = np.exp(logits - logits.max())
    return shifted / shifted.sum()


def log_softmax(logits: Array) -> Array:
    """Log probabilities (V,) of logits (V,)."""
    shifted = logits - logits.max()
    return shifted - np.log(np.exp(shifted).sum())
