"""Constrained decoding of quotations: an answer can only be whole sentences of the passage, or that it does not say.

The model decides which sentences; the constraint lets through no token that would misquote one. It also holds a
summary to the number of sentences that was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .tokenizer import Tokenizer


class Quotation:
    """What may come next. `sentences` maps a marker token to its sentence's tokens; `count` is how many are quoted."""

    def __init__(self, tokenizer: Tokenizer, sentences: Mapping[int, Sequence[int]], *, count: int = 1) -> None:
        self._tokenizer, self._sentences = tokenizer, sentences
        self._left = min(count, len(sentences))
        self._may_refuse = count == 1
        self._rest: list[int] = []
        self._after = -1

    def allowed(self) -> tuple[int, ...]:
        """The tokens that may come next; at least one."""
        if self._rest:
            return (self._rest[0],)
        if not self._left:
            return (self._tokenizer.end,)
        # In the order of the passage, leaving enough sentences for those still to be quoted.
        markers = sorted(marker for marker in self._sentences if marker > self._after)
        choices = markers[: len(markers) - self._left + 1]
        return (self._tokenizer.none, *choices) if self._may_refuse else tuple(choices)

    def follow(self, token: int) -> None:
        """`token` was chosen."""
        if self._rest:
            self._rest.pop(0)
        elif token in self._sentences:
            self._rest, self._after = list(self._sentences[token]), token
            self._left -= 1
            self._may_refuse = False
        else:
            self._left = 0
