"""Tokens to text as they come, ended by stop sequences."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from .tokenizer import Tokenizer


class TokenText:
    """Gives out text once it is certain: whole characters, and nothing that may be the start of a stop sequence."""

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = ()) -> None:
        self._pieces, self._stop = tokenizer.pieces, tuple(text for text in stop if text)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self.stopped: str | None = None  # the stop sequence that ended the text

    def push(self, token: int) -> str:
        """The text that `token` makes certain; nothing after a stop sequence."""
        return self._certain(self._decoder.decode(self._pieces[token]))

    def flush(self) -> str:
        """What was held back, at the end."""
        text = self._certain(self._decoder.decode(b"", final=True))
        held, self._held = self._held, ""
        return text + held

    def _certain(self, text: str) -> str:
        if self.stopped is not None:
            return ""
        text = self._held + text
        found = [(at, stop) for stop in self._stop if (at := text.find(stop)) >= 0]
        if found:
            cut, self.stopped = min(found)
            self._held = ""
            return text[:cut]
        starts = (size for stop in self._stop for size in range(1, len(stop)) if text.endswith(stop[:size]))
        cut = len(text) - max(starts, default=0)
        self._held = text[cut:]
        return text[:cut]
