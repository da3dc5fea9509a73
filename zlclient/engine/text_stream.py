"""Tokens to text as they come, ended by stop sequences."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from .stops import StopCutter
from .tokenizer import Tokenizer


class TextStream:
    """Gives out text as soon as it is certain: whole characters, and nothing that may be the start of a stop sequence.

    Its pieces, joined, are what `Tokenizer.decode` gives for the same tokens, up to the first stop sequence.
    """

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = ()) -> None:
        self._tokenizer, self._cutter = tokenizer, StopCutter(stop)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._before = tokenizer.pad
        self._begun = False

    @property
    def stopped(self) -> str | None:
        """The stop sequence that ended the text."""
        return self._cutter.found

    def push(self, token: int) -> str:
        """The text that `token` makes certain; nothing after a stop sequence."""
        data = self._tokenizer.bytes_after(self._before, token)
        self._before = self._tokenizer.carried(self._before, token)
        return self._out(self._decoder.decode(data))

    def flush(self) -> str:
        """What was held back, at the end."""
        return self._out(self._decoder.decode(b"", final=True)) + self._cutter.rest()

    def _out(self, text: str) -> str:
        if text and not self._begun:
            self._begun = True
            text = text.removeprefix(" ")
        return self._cutter.feed(text)
