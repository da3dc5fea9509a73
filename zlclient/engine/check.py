"""Legacy's fidelity check loop, in numpy.

After the logits of a token it compares, in a few dimensions, each of the best candidates with the hidden state
(semantic consistency), with the mean of what was read (anchor match) and with the hidden state before (no jump); a
small network turns that into three ratings, which rescore the candidates. The verdict is the best candidate's worst
rating. Where it is poor, the hidden state is moved towards the candidates and the logits are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from .config import ModelConfig
from .safetensors import Array

POOR = 0.5  # a verdict under it asks for another round


class FidelityCheck:
    """The loop with its weights; pure, so one instance serves all sequences.

    Whatever multiplies a row by a matrix does so row by row: no row's result depends on the other rows."""

    def __init__(self, config: ModelConfig, tensors: Mapping[str, Array], embedding: Array) -> None:
        self.rounds, self._count = config.check_rounds, config.check_candidates
        self._embedding = embedding
        self._state, self._candidate = tensors["check.state"].T, tensors["check.candidate"].T
        self._back = tensors["check.back"].T
        self._inner, self._inner_bias = tensors["check.inner.weight"].T, tensors["check.inner.bias"]
        self._rating, self._rating_bias = tensors["check.rating.weight"].T, tensors["check.rating.bias"]
        self._weight = tensors["check.weight"]

    def __call__(
        self, y: Array, logits: Array, before: Array, read: Array, head: Callable[[Array], Array] | None
    ) -> tuple[Array, Array, Array]:
        """Check N tokens.

        Args:
            y: (N, d) final hidden states; logits: (N, V) theirs, changed in place.
            before: (N, d) the hidden states one token earlier; read: (N, d) mean embeddings of what was read.
            head: gives poor verdicts further rounds: logits (n, V) of hidden states (n, d); None for no further ones.

        Returns:
            The rescored logits (N, V), the verdicts (N,) from 0 to 1, and each row's further rounds (N,).
        """
        anchor, jump = _each(read, self._candidate), _each(before, self._state)
        verdict, share, seen = self._round(y, logits, anchor, jump)
        further = np.zeros(len(y), np.int64)
        for _ in range(self.rounds if head else 0):
            poor = np.flatnonzero(verdict < POOR)
            if not poor.size or head is None:
                break
            further[poor] += 1
            y = y.copy()
            y[poor] += (share[poor][:, None] @ seen[poor] @ self._back)[:, 0]
            renewed = head(y[poor])
            verdict[poor], share[poor], seen[poor] = self._round(y[poor], renewed, anchor[poor], jump[poor])
            logits[poor] = renewed
        return logits, verdict, further

    def _round(self, y: Array, logits: Array, anchor: Array, jump: Array) -> tuple[Array, Array, Array]:
        """Rescore `logits` in place; verdicts (N,), the candidates' shares (N, K) and projections (N, K, r)."""
        rows = np.arange(len(logits))
        candidates = self._best(logits, rows)
        best = logits[rows[:, None], candidates]
        total = np.log(np.exp(logits - best[:, :1]).sum(-1, keepdims=True)) + best[:, :1]
        seen = self._embedding[candidates] @ self._candidate
        features = np.concatenate(
            [
                seen * _each(y, self._state)[:, None],
                seen * anchor[:, None],
                seen * jump[:, None],
                (best - total)[..., None],
                (best - best[:, :1])[..., None],
                np.broadcast_to(best[:, :1] - total, best.shape)[..., None],
            ],
            axis=-1,
        )
        inner = np.maximum(features @ self._inner + self._inner_bias, 0)
        ratings = -np.logaddexp(0, -(inner @ self._rating + self._rating_bias))  # log sigmoid
        changed = best + ratings @ self._weight
        logits[rows[:, None], candidates] = changed
        share = np.exp(changed - changed.max(-1, keepdims=True))
        share /= share.sum(-1, keepdims=True)
        chosen = changed.argmax(-1)
        return np.exp(ratings[rows, chosen].min(-1)), share, seen

    def _best(self, logits: Array, rows: Array) -> Array:
        """The K best candidates of each row, best first; K passes of argmax are faster here than a partition."""
        found = np.empty((len(logits), self._count), np.int64)
        kept = np.empty((len(logits), self._count), logits.dtype)
        for at in range(self._count):
            found[:, at] = logits.argmax(-1)
            kept[:, at] = logits[rows, found[:, at]]
            logits[rows, found[:, at]] = -np.inf
        for at in range(self._count):
            logits[rows, found[:, at]] = kept[:, at]
        return found


def _each(rows: Array, matrix: Array) -> Array:
    """rows (N, d) @ matrix (d, r), one product a row."""
    return (rows[:, None] @ matrix)[:, 0]
