"""The main pass for long texts, with numpy: the same result as `contexts.judge`, many times faster.

The text is read in blocks as code points. A look-up table finds the suspicious ones, and the tests that need no more
than the two characters before and the one after are done for all of them at once. These see the text as it came in,
while `contexts.judge` sees the result; the two differ only beside something dropped. So suspicious code points within
two characters of each other form a cluster, and a cluster in which anything is dropped for its context goes to `judge`
whole. Neither depends on where a block ends: neighbours are read across the border, clusters are formed afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import blocks, contexts, controls
from .blocks import BLOCK, REACH, RTL_BIT, Octets
from .code_points import HAN, JOINING, KEYCAP, MODIFIER, PICTOGRAPHIC, UNSPACED, VARIATION_BASE, Policy
from .edits import Edit, apply_edits

_Pass = Callable[[str], list[Edit]]
_Bools = NDArray[np.bool_]
_Offsets = NDArray[np.intp]
_Codes = NDArray[np.uint32]
_ESCAPE, _BACKSPACE = 0x1B, 0x08  # what the sequences begin and end with


@dataclass(frozen=True, slots=True)
class _Found:
    """The suspicious code points of a text: where, which rule, and the code points themselves and beside them."""

    at: _Offsets
    rule: Octets
    before_that: _Codes
    before: _Codes
    point: _Codes
    after: _Codes

    def where(self, members: _Bools) -> _Found:
        return _Found(*(getattr(self, name)[members] for name in _Found.__slots__))


def clean(text: str, policy: Policy, sequences: tuple[_Pass, ...], block: int = BLOCK) -> str:
    """`text` after surrogate pairs are joined, then `sequences`, then `policy`; the same object when clean."""
    search = _Search(policy, block)
    found = search.run(text)
    if search.surrogate_pairs:
        text = apply_edits(text, controls.join_pairs(text))
        found = search.run(text)
    if found is None:
        return text
    if ((found.point == _ESCAPE) | (found.point == _BACKSPACE)).any():
        for make in sequences:
            edits = make(text)
            if edits:
                text = apply_edits(text, edits)
                found = _after_deletions(found, edits, text)
    if not found.at.size:
        return text
    # `sequences` may have removed the last right-to-left character, never added the first.
    has_rtl = None if search.has_rtl else False
    return _apply(text, found, policy, contexts.Context(text, policy, has_rtl), block)


class _Search:
    """Finds what is suspicious, and notes two more facts about the text in passing."""

    def __init__(self, policy: Policy, block: int) -> None:
        self._classes = blocks.classes(policy.mode)
        self._block = block
        self.has_rtl = self.surrogate_pairs = False

    def run(self, text: str) -> _Found | None:
        pieces: list[_Found] = []
        self.has_rtl = self.surrogate_pairs = False
        for start, window in blocks.windows(text, self._block):
            if window.isascii() and not blocks.has_controls(window):
                continue
            points = blocks.points(window)
            classes = self._classes.take(points[REACH:-1], mode="wrap")
            rules = classes & np.uint8(RTL_BIT - 1)
            self.has_rtl = self.has_rtl or bool(classes.max(initial=0) >= RTL_BIT)
            if rules.any():
                places = np.flatnonzero(rules != 0)
                around = (points[places + step].astype(np.uint32) for step in range(REACH + 2))
                pieces.append(_Found(places + start, rules[places], *around))
        if not pieces:
            return None
        found = _Found(*(np.concatenate([getattr(piece, name) for piece in pieces]) for name in _Found.__slots__))
        self.surrogate_pairs = bool(((found.point >> 10 == 0x36) & (found.after >> 10 == 0x37)).any())
        return found


def _after_deletions(found: _Found, edits: list[Edit], text: str) -> _Found:
    """What is found in `text`, which `edits` have just made by deletions, from what was found before them."""
    starts = np.array([edit.start for edit in edits])
    ends = np.array([edit.end for edit in edits])
    removed = np.concatenate(([0], np.cumsum(ends - starts)))
    deletions = np.searchsorted(starts, found.at, "right")
    outside = (deletions == 0) | (found.at >= ends[deletions - 1])
    left = found.where(outside)
    at = left.at - removed[deletions[outside]]
    seams = starts - removed[:-1]  # where the characters at seam - 1 and at seam have become neighbours
    touched = np.searchsorted(seams, at - 1) < np.searchsorted(seams, at + 1, "right")
    columns = [left.before_that.copy(), left.before.copy(), left.after.copy()]
    for place in np.flatnonzero(touched).tolist():
        for column, step in zip(columns, (-2, -1, 1), strict=True):
            beside = int(at[place]) + step
            column[place] = ord(text[beside]) if 0 <= beside < len(text) else 0
    before_that, before, after = columns
    return _Found(at, left.rule, before_that, before, left.point, after)


def _apply(text: str, found: _Found, policy: Policy, context: contexts.Context, block: int) -> str:
    kept, settled = _tests(text, found, policy, context)
    if kept.all():
        return text
    conditional = np.array([name is not None for name in policy.keep])[found.rule]
    doubtful = _in_doubt(found.at, conditional, kept, settled)
    edited = ~doubtful & ~kept
    written = _written(found, policy)
    if doubtful.any():
        judged = contexts.judge(text, found.at[doubtful].tolist(), policy, context)
        places = np.searchsorted(found.at, [edit.start for edit in judged])
        edited[places] = True
        written[places] = [_code(edit.new) for edit in judged]
    if not edited.any():
        return text
    return _splice(text, found.at[edited], written[edited], block)


def _tests(text: str, found: _Found, policy: Policy, context: contexts.Context) -> tuple[_Bools, _Bools]:
    """Which suspicious code points stay by what is beside them, and for which of them that is the whole answer."""
    properties = blocks.properties()
    columns = (found.before_that, found.before, found.after)
    kept = np.zeros(found.at.size, np.bool_)
    settled = np.ones(found.at.size, np.bool_)
    for number in np.flatnonzero(np.bincount(found.rule, minlength=1)).tolist():
        name = policy.keep[number]
        if name is None:
            continue
        mine = found.rule == number
        test = _test(name, *(properties.take(column[mine], mode="wrap") for column in columns))
        if test is not None:
            kept[mine] = test != 0
        elif name == "text-with-rtl":
            kept[mine] = context.in_text_with_rtl()
        elif not _never_holds(name, text, context):
            settled[mine] = False
    return kept, settled


def _never_holds(name: str, text: str, context: contexts.Context) -> bool:
    if name == "balanced-in-rtl-paragraph":
        return not context.in_text_with_rtl()
    return name == "subdivision-flag" and contexts.BLACK_FLAG not in text


def _test(name: str, before_that: Octets, before: Octets, after: Octets) -> NDArray[np.integer[Any]] | None:
    """Non-zero where the context called `name` holds; None for the contexts that need more than three neighbours."""
    match name:
        case "joining-script":
            return before & JOINING
        case "emoji-sequence" | "emoji-or-joining-script":
            base = np.where(before & MODIFIER, before_that, before)
            joined = base & after & PICTOGRAPHIC
            return joined | (before & JOINING) if name == "emoji-or-joining-script" else joined
        case "word-boundary-script":
            return before & after & UNSPACED
        case "emoji-base":
            return before & (PICTOGRAPHIC | KEYCAP)
        case "han":
            return before & HAN
        case "variation-base":
            return before & VARIATION_BASE
        case _:
            return None


def _in_doubt(at: _Offsets, conditional: _Bools, kept: _Bools, settled: _Bools) -> _Bools:
    """Members of the clusters that `judge` has to look at."""
    first = np.flatnonzero(np.concatenate(([True], np.diff(at) > REACH)))
    sizes = np.diff(np.append(first, at.size))

    def somewhere(members: _Bools) -> _Bools:
        return np.logical_or.reduceat(members, first)

    doubtful = somewhere(~settled) | ((sizes > 1) & somewhere(conditional) & somewhere(~kept))
    return np.repeat(doubtful, sizes)


# A deletion is written as NUL, which no rule writes, and a blank line as the one character that every policy with
# that replacement removes, so that each edit is one code point until the end.
_DELETED, _BLANK_LINE = 0, 0x2029


def _code(new: str) -> int:
    return _BLANK_LINE if new == "\n\n" else ord(new) if new else _DELETED


@cache
def _cp1252() -> _Codes:
    characters = (bytes([octet]).decode("cp1252", "ignore") for octet in range(256))
    return np.array([_code(character) for character in characters], np.uint32)


def _written(found: _Found, policy: Policy) -> _Codes:
    """What each rule writes, were the code point edited; as `Policy.written`."""
    constant = [0 if rule.replacement == "cp1252" else _code(rule.replacement) for rule in policy.rules]
    written = np.array(constant, np.uint32)[found.rule]
    mapped = np.array([rule.replacement == "cp1252" for rule in policy.rules])[found.rule]
    written[mapped] = _cp1252()[found.point[mapped]]
    written[(found.point == 0x0D) & (found.after == 0x0A)] = _DELETED
    return written


def _splice(text: str, at: _Offsets, written: _Codes, block: int) -> str:
    """`text` with the character at each offset of `at` overwritten, block by block in cached memory."""
    pieces: list[str] = []
    borders = np.searchsorted(at, range(0, len(text) + block, block)).tolist()
    for number, (first, last) in enumerate(pairwise(borders)):
        start = number * block
        piece = text[start : start + block]
        if first < last:
            codes = np.frombuffer(piece.encode("utf-32-le", "surrogatepass"), np.uint32)
            places, new = at[first:last] - start, written[first:last]
            if new.any():
                codes = codes.copy()
                codes[places] = new
            stays = np.ones(codes.size, np.bool_)
            stays[places[new == _DELETED]] = False
            piece = str(codes[stays].data, "utf-32-le")
            if (new == _BLANK_LINE).any():
                piece = piece.replace("\u2029", "\n\n")
        pieces.append(piece)
    return "".join(pieces)
