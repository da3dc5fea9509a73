"""What a run may spend, in requests, tokens and money: it stops cleanly before it is passed.

A request reserves what it is expected to use before it is sent and gives the difference back when it is answered. The
expectation is its estimated input, corrected by the most that an estimate was too low so far, and the largest answer so
far, or before the first answer all that it may use. The first request of a run is sent even where that is more than the
budget, so that a small one is not refused whole. A budget is thus passed only by what requests in flight use beyond
what was expected of them, and by their retries.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import ConfigError
from ..models.prices import cost
from ..reply import Usage


@dataclass(frozen=True, slots=True)
class Spend:
    """Requests sent, tokens in and out, US dollars."""

    requests: int = 0
    tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: Spend) -> Spend:
        return Spend(self.requests + other.requests, self.tokens + other.tokens, self.cost + other.cost)

    def __sub__(self, other: Spend) -> Spend:
        return Spend(self.requests - other.requests, self.tokens - other.tokens, self.cost - other.cost)


@dataclass(frozen=True, slots=True)
class Expected:
    """What is known of a request before it is sent: `input` tokens are estimated, `output` is the most it may give."""

    provider: str
    model: str
    input: int
    output: int
    discount: float = 1.0


@dataclass(frozen=True, slots=True)
class Reserved:
    """What was set aside for one request, and the input that was estimated for it."""

    spend: Spend
    input: int = 0


@dataclass(slots=True)
class Budget:
    """Bounds of one run; None for no bound."""

    requests: int | None = None
    tokens: int | None = None
    cost: float | None = None
    spent: Spend = field(default_factory=Spend, init=False)
    _reserved: Spend = field(default_factory=Spend, init=False)
    _largest: int = field(default=0, init=False)
    _too_low: int = field(default=0, init=False)

    @property
    def counts_tokens(self) -> bool:
        """Whether a request's size matters."""
        return self.tokens is not None or self.cost is not None

    def reserve(self, expected: Expected | None) -> Reserved | None:
        """What is set aside for one more request, or None where it may not be sent now.

        `expected` may be None where sizes do not matter.

        Raises:
            ConfigError: money is bounded and the model's price is not known.
        """
        asked = self._asked(expected)
        is_first = not self.spent.requests and not self._reserved.requests
        if not is_first and not self._holds(self.spent + self._reserved + asked):
            return None
        self._reserved += asked
        return Reserved(asked, expected.input if expected else 0)

    def settle(self, reserved: Reserved, requests: int, usage: Usage, cost: float | None) -> None:
        """The request that `reserved` was set aside for was sent `requests` times and took `usage` at `cost`."""
        self._reserved -= reserved.spend
        self.spent += Spend(requests, usage.total_input + usage.output, cost or 0.0)
        self._largest = max(self._largest, usage.output)
        self._too_low = max(self._too_low, usage.total_input - reserved.input)

    def _asked(self, expected: Expected | None) -> Spend:
        if expected is None:
            return Spend(1)
        output = min(expected.output, self._largest) if self._largest else expected.output
        tokens = Usage(expected.input + self._too_low, output)
        price = cost(expected.provider, expected.model, tokens)
        if price is None and self.cost is not None:
            raise ConfigError(f"the price of {expected.model} is not known, so no budget in money can be kept")
        return Spend(1, tokens.input + output, (price or 0.0) * expected.discount)

    def _holds(self, spend: Spend) -> bool:
        return (
            (self.requests is None or spend.requests <= self.requests)
            and (self.tokens is None or spend.tokens <= self.tokens)
            and (self.cost is None or spend.cost <= self.cost)
        )
