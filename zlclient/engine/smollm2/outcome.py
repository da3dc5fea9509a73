"""How an answer went."""

from __future__ import annotations

from dataclasses import dataclass

from .. import request


@dataclass(slots=True)
class Outcome(request.Outcome):
    """Complete once the answer's text has ended; `tokens` holds the one that ended it too.

    `finish`: end (the model ended it), stop (a stop sequence, which is `stop`), length (no more tokens were allowed),
    cancelled (nobody read on).
    """

    stop: str | None = None
