"""What a segment may cost: the caller's tokens, turned into the hundredths of a token that cutting is planned in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from ..errors import InputError
from . import tokens

_SAMPLE = 1 << 15  # characters counted exactly to learn how far the estimate is off for this text
_SLACK = 0.97  # planned below the limit, since a document is not alike throughout


class Rendered(Protocol):
    """Something that is sent as one string."""

    @property
    def rendered(self) -> str:
        """The string."""
        ...


@dataclass(frozen=True)
class Budget:
    """`units` hundredths of an estimated token may be planned for what is sent, `overlap_units` of them for overlap.

    With an installed tokenizer `exact` counts the finished string against `max_tokens`; without one the estimate
    keeps its margin and is the last word.
    """

    max_tokens: int
    units: int
    overlap_units: int
    family: tokens.Family
    exact: Callable[[str], int] | None

    @classmethod
    def of(cls, max_tokens: int, overlap: int, model: str | None, sample: str) -> Budget:
        """Plan for `max_tokens` of `model`; `sample` is the document's. InputError for a senseless limit."""
        if max_tokens < 1:
            raise InputError(f"{max_tokens} is no budget", where="max_tokens")
        if not 0 <= overlap <= max_tokens // 2:
            raise InputError(f"{overlap} is not between 0 and half of max_tokens", where="overlap")
        family = tokens.family_of(model)
        exact = tokens.exact_tokenizer(model)
        if exact is None:
            factor = 1 / tokens.MARGIN
        else:
            sample = sample[:_SAMPLE]
            counted = max(1, exact(sample))
            factor = min(2.0, max(0.5, tokens.weigh(sample, family) / tokens.UNIT / counted)) * _SLACK
        units, overlap_units = (tokens.UNIT * int(limit * factor) for limit in (max_tokens, overlap))
        return cls(max_tokens, units, overlap_units, family, exact)

    def keeps(self, made: Iterable[Rendered]) -> bool:
        """Say whether every finished string keeps the limit, as far as can be counted."""
        return self.exact is None or all(self.exact(segment.rendered) <= self.max_tokens for segment in made)
