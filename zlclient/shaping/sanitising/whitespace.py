"""White space: blanks at line ends and blank lines, outside fenced code only."""

from __future__ import annotations

import re
from bisect import bisect_right

from . import scan
from .edits import Edit, apply_edits

# CommonMark 0.31.2, section 4.5, also behind list and quote markers. A fence that is never closed runs to the end.
_FENCE = r"(?m)^(?P<prefix>(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*+)(?P<mark>`{3,}+|~{3,}+)(?P<info>[^\n]*)"


def tidy(text: str) -> str:
    """The text after `trim_lines` and `drop_blank_lines`; the same object where they have nothing to do."""
    ends, blank_lines = scan.loose_whitespace(text)
    trims = _trims(text, ends)
    # A line that was all blanks is one more blank line now.
    blank_lines = blank_lines or any(text[edit.start - 1 : edit.start] in ("", "\n") for edit in trims)
    text = apply_edits(text, trims)
    return apply_edits(text, drop_blank_lines(text)) if blank_lines else text


def trim_lines(text: str) -> list[Edit]:
    """Blanks at the ends of lines, the last line included; two spaces after text are Markdown's line break and stay."""
    return _trims(text, scan.loose_whitespace(text)[0])


def _trims(text: str, ends: list[int]) -> list[Edit]:
    edits: list[Edit] = []
    for end in [*ends, len(text)] if text.endswith((" ", "\t")) else ends:
        start = _start_of_blanks(text, end)
        after_text = start > 0 and text[start - 1] != "\n"
        stop = end - 2 if after_text and text.endswith("  ", start, end) else end
        if start < stop:
            edits.append(Edit(start, stop, "", "trailing-blanks"))
    return _outside_fences(text, edits)


def drop_blank_lines(text: str) -> list[Edit]:
    """All blank lines of a run but the first."""
    edits: list[Edit] = []
    at = 0 if text.startswith("\n\n") else text.find("\n\n\n")
    while at >= 0:
        end = at
        while text.startswith("\n", end):
            end += 1
        # At the very start the first line break is a blank line itself; elsewhere it ends a line of text.
        edits.append(Edit(at + (2 if at else 1), end, "", "blank-lines"))
        at = text.find("\n\n\n", end)
    return _outside_fences(text, edits)


def _outside_fences(text: str, edits: list[Edit]) -> list[Edit]:
    # The single characters first: they are found many times faster, and most texts have neither.
    if not edits or not (("`" in text and "```" in text) or ("~" in text and "~~~" in text)):
        return edits
    fenced = Fences(text)
    return [edit for edit in edits if not fenced.cover(edit.start)]


def _start_of_blanks(text: str, end: int) -> int:
    # In steps, so that a long run costs few slices and a short one no long slice.
    step = 16
    while end > 0:
        piece = text[max(end - step, 0) : end]
        kept = len(piece.rstrip(" \t"))
        end -= len(piece) - kept
        if kept:
            break
        step *= 2
    return end


class Fences:
    """The fenced code blocks of a text, from the start of the opening line to the end of the closing one."""

    def __init__(self, text: str) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._find(text)

    def cover(self, at: int) -> bool:
        """Whether offset `at` lies in a fenced block."""
        place = bisect_right(self._starts, at) - 1
        return place >= 0 and at < self._ends[place]

    def _find(self, text: str) -> None:
        opened = ""
        for line in re.finditer(_FENCE, text):
            mark, info = line["mark"], line["info"]
            if not opened:
                if mark[0] == "~" or "`" not in info:
                    opened = mark
                    self._starts.append(line.start())
            elif mark.startswith(opened) and not info.strip(" \t") and not line["prefix"].strip(" \t>"):
                opened = ""
                self._ends.append(line.end())
        if opened:
            self._ends.append(len(text) + 1)
