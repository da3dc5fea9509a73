"""Constrained decoding of quotations: what is generated can only be sentences of the passage, or a part of one.

The model decides which; the constraint lets through no token that would misquote one. It also holds a summary to the
number of sentences that was asked for, and an excerpt to whole words and numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .tokenizer import Tokenizer

_INSIDE = re.compile(r"[A-Za-z0-9]{2}|[0-9]%")
_IN_NUMBER = re.compile(r"[0-9][.,:][0-9]")
_LAST = re.compile(r"[^\W_]|[%％°℃)）》」”]")
_NUMERAL = re.compile(r"[0-9〇零一二两三四五六七八九十百千万亿]")


class Quotation:
    """What may come next. `sentences` maps a marker token to its sentence's tokens; `count` is how many are quoted."""

    def __init__(self, tokenizer: Tokenizer, sentences: Mapping[int, Sequence[int]], *, count: int = 1) -> None:
        self._tokenizer, self._sentences = tokenizer, sentences
        self._left = min(count, len(sentences))
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
        return tuple(markers[: len(markers) - self._left + 1])

    def follow(self, token: int) -> None:
        """`token` was chosen."""
        if self._rest:
            self._rest.pop(0)
        elif token in self._sentences:
            self._rest, self._after = list(self._sentences[token]), token
            self._left -= 1


class Excerpt:
    """Lets through a part of one sentence as it stands there, after the sentence's marker.

    A part begins and ends where a word or a number does; with `number`, it begins with a digit or a Chinese numeral.
    """

    def __init__(self, tokenizer: Tokenizer, marker: int, tokens: Sequence[int], *, number: bool = False) -> None:
        self._end, self._told = tokenizer.end, _Told(tokenizer, marker, tokens, number)
        self._at: tuple[int, ...] | None = None  # where the part may have come to; several while it is ambiguous

    @property
    def possible(self) -> bool:
        """Whether the sentence has such a part."""
        return bool(self._told.starts)

    def allowed(self) -> tuple[int, ...]:
        """The tokens that may come next; at least one."""
        told = self._told
        if self._at is None:
            return tuple({told.tokens[at]: None for at in told.starts}) or (self._end,)
        going = {told.tokens[at + 1]: None for at in self._at if at < told.last}
        ending = (self._end,) if any(at in told.ends for at in self._at) else ()
        return (*ending, *going) or (self._end,)

    def follow(self, token: int) -> None:
        """`token` was chosen."""
        told = self._told
        if self._at is None:
            self._at = tuple(at for at in told.starts if told.tokens[at] == token)
        else:
            self._at = tuple(at + 1 for at in self._at if told.tokens[at + 1 : at + 2] == (token,))


def has_number(text: str) -> bool:
    """Whether there is a digit or a Chinese numeral in `text`."""
    return _NUMERAL.search(text) is not None


class _Told:
    """A sentence's tokens, and where in them a part may begin and end."""

    def __init__(self, tokenizer: Tokenizer, marker: int, tokens: Sequence[int], number: bool) -> None:
        self.tokens = tuple(tokens)
        words = [at for at, token in enumerate(self.tokens) if token != marker]
        texts = [tokenizer.raw(self.tokens[: at + 1]).decode("utf-8", "ignore") for at in words]
        whole = texts[-1] if texts else ""
        lengths = [0, *map(len, texts)]
        self.starts: list[int] = []
        self.ends: set[int] = set()
        for at, start, end in zip(words, lengths, lengths[1:], strict=False):
            begins = whole[start:].lstrip(" ")[:1]
            blank = end > start and not whole[start:end].strip()
            held = at > 0 and tokenizer.is_capital(_before(self.tokens, at, marker))
            fits = _NUMERAL.match(begins) if number else begins.isalnum()
            if fits and not held and not blank and _apart(whole, start):
                self.starts.append(at)
            if end > start and _LAST.match(whole[end - 1]) and _apart(whole, end):
                self.ends.add(at)
        self.last = max(self.ends, default=-1)


def _before(tokens: Sequence[int], at: int, marker: int) -> int:
    """The token before `at` that is no marker."""
    return next((token for token in reversed(tokens[:at]) if token != marker), marker)


def _apart(text: str, at: int) -> bool:
    """Whether no ASCII word or number goes on across place `at` of `text`."""
    if _INSIDE.match(text[max(0, at - 1) : at + 1]):
        return False
    return not _IN_NUMBER.match(text[max(0, at - 1) : at + 2]) and not _IN_NUMBER.match(text[max(0, at - 2) : at + 1])
