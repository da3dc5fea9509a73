"""Tokens to text as they come, ended by stop sequences."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from ..stops import StopCutter
from .tokenizer import Tokenizer


class TokenText:
    """Gives out text once it is certain: whole characters, and nothing that may be the start of a stop sequence."""

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = ()) -> None:
        self._pieces, self._cutter = tokenizer.pieces, StopCutter(stop)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def stopped(self) -> str | None:
        """The stop sequence that ended the text."""
        return self._cutter.found

    def push(self, token: int) -> str:
        """The text that `token` makes certain; nothing after a stop sequence."""
        return self._cutter.feed(self._decoder.decode(self._pieces[token]))

    def flush(self) -> str:
        """What was held back, at the end."""
        return self._cutter.feed(self._decoder.decode(b"", final=True)) + self._cutter.rest()
