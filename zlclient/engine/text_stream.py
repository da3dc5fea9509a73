"""Tokens to text as they come, ended by stop sequences."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from .tokenizer import Tokenizer


class TextStream:
    """Gives out text as soon as it is certain: whole characters, and nothing that may be the start of a stop sequence.

    Its pieces, joined, are what `Tokenizer.decode` gives for the same tokens, up to the first stop sequence.
    """

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = ()) -> None:
        self._tokenizer, self._stop = tokenizer, tuple(text for text in stop if text)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._before = tokenizer.pad
        self._held = ""
        self._begun = False
        self.stopped: str | None = None  # the stop sequence that ended the text

    def push(self, token: int) -> str:
        """The text that `token` makes certain; nothing after a stop sequence."""
        data = self._tokenizer.bytes_after(self._before, token)
        self._before = self._tokenizer.carried(self._before, token)
        return self._out(self._decoder.decode(data))

    def flush(self) -> str:
        """What was held back, at the end."""
        text = self._out(self._decoder.decode(b"", final=True))
        if self.stopped is None:
            text, self._held = text + self._held, ""
        return text

    def _out(self, text: str) -> str:
        if self.stopped is not None:
            return ""
        if text and not self._begun:
            self._begun = True
            text = text.removeprefix(" ")
        self._held += text
        found = [(at, stop) for stop in self._stop if (at := self._held.find(stop)) >= 0]
        if found:
            at, self.stopped = min(found)
            out, self._held = self._held[:at], ""
            return out
        keep = max(
            (size for stop in self._stop for size in range(1, len(stop)) if self._held.endswith(stop[:size])), default=0
        )
        cut = len(self._held) - keep
        out, self._held = self._held[:cut], self._held[cut:]
        return out
