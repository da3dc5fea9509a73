"""Where a character of a value stands in its file: a piecewise map, and lines and columns."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

_LINE_END = re.compile(r"\r\n?|\n")


class Piece(NamedTuple):
    """`length` characters of the value from `value`, written as `raw` characters of the file from `file`.

    Equal lengths mean character by character; different ones mean that the piece stands for its whole raw text, as
    an escape sequence, a doubled quote or a folded line break does.
    """

    value: int
    file: int
    length: int
    raw: int


@dataclass(frozen=True)
class OffsetMap:
    """Pieces in order of the value; `end` is the offset in the file just after the value's last character."""

    pieces: tuple[Piece, ...]
    end: int

    @classmethod
    def contiguous(cls, start: int, length: int) -> OffsetMap:
        """A value that stands in its file as it is."""
        return cls((Piece(0, start, length, length),), start + length)

    @classmethod
    def joined(cls, pieces: Iterable[tuple[str, int, int]], start: int) -> OffsetMap:
        """From (text, file start, file end) in order; neighbours that run on are merged."""
        merged: list[Piece] = []
        position = 0
        end = start
        for text, file_start, file_end in pieces:
            length, raw = len(text), file_end - file_start
            last = merged[-1] if merged else None
            runs_on = last and last.length == last.raw and length == raw and last.file + last.raw == file_start
            if last and runs_on:
                merged[-1] = Piece(last.value, last.file, last.length + length, last.raw + raw)
            elif length:
                merged.append(Piece(position, file_start, length, raw))
            position += length
            end = file_end
        return cls(tuple(merged) or (Piece(0, start, 0, 0),), end)

    @property
    def is_contiguous(self) -> bool:
        """Whether the value is one slice of the file."""
        return len(self.pieces) == 1 and self.pieces[0].length == self.pieces[0].raw

    @cached_property
    def _starts(self) -> list[int]:
        return [piece.value for piece in self.pieces]

    def to_file(self, offset: int) -> int:
        """The file's offset for the value's `offset`; inside an escape it is where the escape begins."""
        piece = self.pieces[max(0, bisect_right(self._starts, offset) - 1)]
        delta = offset - piece.value
        if delta >= piece.length:
            return self.end if piece is self.pieces[-1] else piece.file + piece.raw
        return piece.file + (delta if piece.length == piece.raw else 0)

    def end_to_file(self, offset: int) -> int:
        """The file's offset just after the character before `offset`: the right end of a span."""
        if offset <= 0:
            return self.to_file(0)
        piece = self.pieces[max(0, bisect_right(self._starts, offset - 1) - 1)]
        delta = offset - piece.value
        return piece.file + (min(delta, piece.raw) if piece.length == piece.raw else piece.raw)

    def slice(self, start: int, end: int) -> OffsetMap:
        """The map of `value[start:end]`."""
        cut: list[Piece] = []
        for piece in self.pieces:
            low, high = max(start, piece.value), min(end, piece.value + piece.length)
            if low >= high:
                continue
            same = piece.length == piece.raw
            file = piece.file + (low - piece.value if same else 0)
            cut.append(Piece(low - start, file, high - low, high - low if same else piece.raw))
        at = self.to_file(start)
        return OffsetMap(tuple(cut) or (Piece(0, at, 0, 0),), self.end_to_file(end) if cut else at)


class LineIndex:
    """Lines and columns of a text, both from 1; a line ends at LF, CRLF or CR. Columns count code points."""

    def __init__(self, text: str) -> None:
        if "\r" in text:
            self._starts = [0, *(end.end() for end in _LINE_END.finditer(text))]
        else:
            self._starts = [0, *accumulate(len(line) + 1 for line in text.split("\n")[:-1])]

    def line_col(self, offset: int) -> tuple[int, int]:
        """(line, column) of `offset`, both from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def offset(self, line: int, column: int = 1) -> int:
        """The offset of (line, column); a line past the end gives the last line's start."""
        return self._starts[min(max(line, 1), len(self._starts)) - 1] + column - 1
