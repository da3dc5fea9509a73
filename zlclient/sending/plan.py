"""What the sender is handed: finished requests, and functions that give another one when a server refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..errors import SendError
    from ..prepared import Prepared
    from ..providers.base import Provider, Wire


@dataclass(frozen=True, slots=True)
class Target:
    """One prepared request and the adapter and wire that carry it."""

    prepared: Prepared
    provider: Provider
    wire: Wire


@dataclass(frozen=True, slots=True)
class Plan:
    """The routes to try in order, each prepared when its turn comes; the first is prepared already.

    `began` is when the call did, on the client's clock. `amend` gives the same request without what the server just
    refused, or None; it never counts as a retry.
    """

    began: float
    first: Target
    fallbacks: Sequence[Callable[[], Target | None]]
    amend: Callable[[Target, SendError], Target | None]
