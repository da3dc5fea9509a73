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

import numpy as np
from numpy.typing import NDArray

from . import blocks, contexts, controls
from .blocks import BLOCK, REACH, Octets, Points
from .code_points import HAN, JOINING, KEYCAP, MODIFIER, PICTOGRAPHIC, UNSPACED, VARIATION_BASE, Policy
from .edits import Edit, apply_edits

_Pass = Callable[[str], list[Edit]]
_Bools = NDArray[np.bool_]
_Offsets = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class _Found:
    """The suspicious code points of a text: where, which rule, and the properties of their neighbours."""

    at: _Offsets
    rule: Octets
    before_that: Octets
    before: Octets
    after: Octets
    surrogate_pairs: bool


def clean(text: str, policy: Policy, sequences: tuple[_Pass, ...], block: int = BLOCK) -> str:
    """`text` after surrogate pairs are joined, then `sequences`, then `policy`; the same object when clean."""
    edited = text
    if sequences and ("\x1b" in text or "\b" in text):
        edited = apply_edits(edited, controls.join_pairs(edited))
        for make in sequences:
            edited = apply_edits(edited, make(edited))
        found = _find(edited, policy, block)
    else:
        found = _find(edited, policy, block)
        if found is not None and found.surrogate_pairs:
            edited = apply_edits(edited, controls.join_pairs(edited))
            found = _find(edited, policy, block)
    return edited if found is None else _apply(edited, found, policy)


def _find(text: str, policy: Policy, block: int) -> _Found | None:
    number = np.frombuffer(policy.number, np.uint8)
    pieces: list[_Found] = []
    for start, window in blocks.windows(text, block):
        if window.isascii() and not blocks.has_controls(window):
            continue
        points = blocks.points(window)
        numbers = number.take(points[REACH:-1], mode="wrap")
        places = np.flatnonzero(numbers != 0)
        if places.size:
            pieces.append(_neighbours(points, places, numbers[places], start))
    if not pieces:
        return None
    return _Found(
        *(np.concatenate([getattr(piece, name) for piece in pieces]) for name in _Found.__slots__[:-1]),
        surrogate_pairs=any(piece.surrogate_pairs for piece in pieces),
    )


def _neighbours(points: Points, places: _Offsets, rule: Octets, start: int) -> _Found:
    properties = blocks.properties()
    point, after = points[places + REACH], points[places + REACH + 1]
    pairs = (point >= 0xD800) & (point < 0xDC00) & (after >= 0xDC00) & (after < 0xE000)
    return _Found(
        at=places + start,
        rule=rule,
        before_that=properties.take(points[places], mode="wrap"),
        before=properties.take(points[places + 1], mode="wrap"),
        after=properties.take(after, mode="wrap"),
        surrogate_pairs=bool(pairs.any()),
    )


def _apply(text: str, found: _Found, policy: Policy) -> str:
    conditional = np.array([name is not None for name in policy.keep])[found.rule]
    context = contexts.Context(text, policy)
    kept, settled = _tests(found, policy, context)
    doubtful = _in_doubt(found.at, conditional, kept, settled)
    edited = ~doubtful & ~kept
    new = _replacements(text, found, edited, policy)
    if doubtful.any():
        judged = contexts.judge(text, found.at[doubtful].tolist(), policy, context)
        for place, edit in zip(np.searchsorted(found.at, [edit.start for edit in judged]), judged, strict=True):
            edited[place], new[place] = True, edit.new
    if not edited.any():
        return text
    return _splice(text, found.at[edited].tolist(), [new[place] for place in np.flatnonzero(edited).tolist()])


def _tests(found: _Found, policy: Policy, context: contexts.Context) -> tuple[_Bools, _Bools]:
    """Which suspicious code points stay by what is beside them, and for which of them that is the whole answer."""
    kept = np.zeros(found.at.size, np.bool_)
    settled = np.ones(found.at.size, np.bool_)
    for number in np.flatnonzero(np.bincount(found.rule, minlength=1)).tolist():
        name = policy.keep[number]
        if name is None:
            continue
        mine = found.rule == number
        test = _test(name, found.before_that[mine], found.before[mine], found.after[mine])
        if test is not None:
            kept[mine] = test != 0
        elif name == "text-with-rtl":
            kept[mine] = context.in_text_with_rtl()
        else:
            settled[mine] = False
    return kept, settled


def _test(name: str, before_that: Octets, before: Octets, after: Octets) -> Octets | None:
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
    return None


def _in_doubt(at: _Offsets, conditional: _Bools, kept: _Bools, settled: _Bools) -> _Bools:
    """Members of the clusters that `judge` has to look at."""
    first = np.flatnonzero(np.concatenate(([True], np.diff(at) > REACH)))
    sizes = np.diff(np.append(first, at.size))

    def somewhere(members: _Bools) -> _Bools:
        return np.logical_or.reduceat(members, first)

    doubtful = somewhere(~settled) | ((sizes > 1) & somewhere(conditional) & somewhere(~kept))
    return np.repeat(doubtful, sizes)


def _replacements(text: str, found: _Found, edited: _Bools, policy: Policy) -> list[str]:
    """What is written at each suspicious code point that is `edited`: empty for a deletion."""
    new = [""] * found.at.size
    writes = edited & np.array([rule.replacement != "" for rule in policy.rules])[found.rule]
    places = np.flatnonzero(writes).tolist()
    for place, at, rule in zip(places, found.at[writes].tolist(), found.rule[writes].tolist(), strict=True):
        character = text[at]
        if not (character == "\r" and text.startswith("\n", at + 1)):
            new[place] = policy.replacement(rule, character)
    return new


def _splice(text: str, at: list[int], new: list[str]) -> str:
    """`text` with the character at each offset of `at` replaced."""
    parts = [""] * (2 * len(at) + 1)
    parts[0::2] = map(text.__getitem__, map(slice, [0, *(offset + 1 for offset in at)], [*at, len(text)]))
    parts[1::2] = new
    return "".join(parts)
