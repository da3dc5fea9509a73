"""A long text in blocks of code points, for numpy; a block and what is made from it stay in the second-level cache."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from . import code_points
from .code_points import RTL

BLOCK = 1 << 16  # characters
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


def has_rtl(text: str) -> bool:
    """Whether any character is written from right to left."""
    table = properties()
    return any(
        bool((table.take(points(window), mode="wrap") & RTL).any())
        for _, window in windows(text)
        if not window.isascii()
    )


def has_loose_whitespace(text: str) -> bool:
    """Whether a blank stands before a line feed, or three line feeds in a row."""
    for _, window in windows(text):
        at = points(window)
        feed = at == 0x0A
        blank = (at == 0x20) | (at == 0x09)
        if (blank[:-1] & feed[1:]).any() or (feed[:-2] & feed[1:-1] & feed[2:]).any():
            return True
    return False
