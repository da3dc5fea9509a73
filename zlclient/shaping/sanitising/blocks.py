"""A long text in blocks of code points, for numpy; a block and what is made from it stay in the second-level cache."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from . import code_points
from .code_points import RTL, policy

BLOCK = 1 << 16  # characters
RTL_BIT = 0x80  # beside rule numbers, which stay below it
REACH = 2  # characters before a place that may matter there; one after it may

Octets = NDArray[np.uint8]
Points = NDArray[np.uint8] | NDArray[np.uint32]


def windows(text: str, block: int = BLOCK) -> Iterator[tuple[int, str]]:
    """Each block's offset, and its text with REACH characters before it and one after, NUL beyond the ends."""
    for start in range(0, len(text), block):
        stop = start + block
        window = text[max(start - REACH, 0) : stop + 1]
        if start < REACH:
            window = "\0" * (REACH - start) + window
        yield start, window + "\0" if stop >= len(text) else window


def points(window: str) -> Points:
    """Its code points, in one byte each where they fit."""
    try:
        return np.frombuffer(window.encode("latin-1"), np.uint8)
    except UnicodeEncodeError:
        return np.frombuffer(window.encode("utf-32-le", "surrogatepass"), np.uint32)


@cache
def properties() -> Octets:
    """The property bits of every code point."""
    return np.frombuffer(code_points.properties(), np.uint8)


def has_controls(window: str) -> bool:
    """Whether the block of an ASCII window has a control other than tab and line feed; at memory speed."""
    octets = np.frombuffer(window.encode("ascii"), np.uint8)[REACH:-1]
    outside = np.count_nonzero((octets - np.uint8(0x20)) > 0x5E)
    return outside != np.count_nonzero(octets == 0x0A) + np.count_nonzero(octets == 0x09)


@cache
def classes(mode: str) -> Octets:
    """The rule number of every code point in `mode`, plus RTL_BIT where it is written from right to left."""
    number = np.frombuffer(policy(mode).number, np.uint8)
    right_to_left = (properties() & RTL != 0) & (number == 0)
    return number | (right_to_left * np.uint8(RTL_BIT))


def loose_whitespace(text: str) -> tuple[list[int], bool]:
    """Offsets of the line feeds that follow a blank, and whether three line feeds stand in a row anywhere."""
    ends: list[int] = []
    blank_lines = False
    for start, window in windows(text):
        at = points(window)[:-1]
        feed = at == 0x0A
        loose = ((at == 0x20) | (at == 0x09))[1:-1] & feed[REACH:]
        if loose.any():
            ends += (np.flatnonzero(loose) + start).tolist()
        blank_lines = blank_lines or bool((feed[:-2] & feed[1:-1] & feed[2:]).any())
    return ends, blank_lines
