"""The last prompt's keys and values, kept for the next: a conversation's next turn starts with all that came before.

Only whole chunks are kept. A prompt is always read in chunks counted from its start, so what is taken over is, bit for
bit, what reading it again would give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from ..safetensors import Array


@dataclass(slots=True)
class State:
    """What was read: keys and values (layers, key heads, rows, head), of which the first `length` rows are filled."""

    keys: Array
    values: Array
    length: int = 0


@dataclass(frozen=True, slots=True)
class PrefixStats:
    """Prompt tokens looked up, and taken over from the prompt before."""

    queries: int = 0
    hits: int = 0


class LastPrompt:
    """Not locked: one thread's."""

    def __init__(self, chunk: int) -> None:
        self._chunk = chunk
        self._tokens: tuple[int, ...] = ()
        self._state: State | None = None

    def fill(self, state: State, prompt: Sequence[int]) -> None:
        """Take over into an empty `state` as many of `prompt`'s first tokens as are known, all but one at most."""
        if self._state is None:
            return
        pairs = zip(self._tokens, prompt[:-1], strict=False)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)) // self._chunk * self._chunk
        state.keys[:, :, :common] = self._state.keys[:, :, :common]
        state.values[:, :, :common] = self._state.values[:, :, :common]
        state.length = common

    def keep(self, state: State, prompt: Sequence[int]) -> None:
        """Remember what was read of `prompt`, in place of the prompt before."""
        whole = min(state.length, len(prompt)) // self._chunk * self._chunk
        if whole:
            keys, values = (np.ascontiguousarray(side[:, :, :whole]) for side in (state.keys, state.values))
            self._tokens, self._state = tuple(prompt[:whole]), State(keys, values, whole)
