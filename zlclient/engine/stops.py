"""Stop sequences: text as it comes, cut at the first one."""

from __future__ import annotations

from collections.abc import Sequence


class StopCutter:
    """Gives out what is certain: nothing from the first stop sequence on, and nothing that may be the start of one.

    `found` is the sequence that ended the text.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held: str = ""
        self.found: str | None = None

    def feed(self, text: str) -> str:
        """`text`, with what was held back before it, as far as it is certain."""
        if self.found is not None:
            return ""
        if not self._stops:
            return text
        text = self._held + text
        hits = [(at, stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if hits:
            at, self.found = min(hits)
            self._held: str = ""
            return text[:at]
        starts = (size for stop in self._stops for size in range(1, len(stop)) if text.endswith(stop[:size]))
        cut = len(text) - max(starts, default=0)
        self._held = text[cut:]
        return text[:cut]

    def rest(self) -> str:
        """What is still held back; nothing is, afterwards."""
        held, self._held = self._held, ""
        return held
