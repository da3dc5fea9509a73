"""Passes over whole sequences: surrogate pairs, terminal escapes, overstrikes, soft hyphens, and the naive recipe."""

from __future__ import annotations

import re
import unicodedata

from .edits import Edit

# Compiled when first used (re keeps them): importing this must stay cheap.
_PAIR = "[\ud800-\udbff][\udc00-\udfff]"
# CSI; OSC up to BEL or ST on the same line; and the two character-set switches that tput writes.
_ANSI = "\x1b(?:\\[[0-?]*+[ -/]*+[@-~]|\\][^\x07\x1b\n]*+(?:\x07|\x1b\\\\)|[()][B0])"
_LINE_BREAKS = frozenset("\n\r\x0b\x0c\x85\u2028\u2029")
_SOFT_HYPHENS = "\xad+"
_NAIVE_CONTROLS = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b-\u200f\ufeff]"
_BLANKS = r"\s+"


def join_pairs(text: str) -> list[Edit]:
    """A high surrogate followed by a low one becomes the character that the two encode."""
    return [
        Edit(found.start(), found.end(), _joined(found.group()), "surrogate-pair") for found in re.finditer(_PAIR, text)
    ]


def _joined(pair: str) -> str:
    return pair.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def drop_ansi(text: str) -> list[Edit]:
    """Terminal escape sequences go as wholes; an escape that begins none is left to the main pass."""
    edits: list[Edit] = []
    sequence = re.compile(_ANSI)
    at = text.find("\x1b")
    while at >= 0:
        found = sequence.match(text, at)
        if found:
            edits.append(Edit(at, found.end(), "", "ansi"))
        at = text.find("\x1b", found.end() if found else at + 1)
    return edits


def drop_overstrikes(text: str) -> list[Edit]:
    """A backspace goes with the character before it; one that has none on its line is left to the main pass."""
    edits: list[Edit] = []
    done = 0
    at = text.find("\b")
    while at >= 0:
        if at > done and text[at - 1] not in _LINE_BREAKS:
            edits.append(Edit(at - 1, at + 1, "", "overstrike"))
            done = at + 1
        at = text.find("\b", at + 1)
    return edits


def drop_soft_hyphens(text: str) -> list[Edit]:
    """Soft hyphens between two letters, where a word was broken; elsewhere they may mean something and stay."""
    if "\xad" not in text:
        return []
    return [
        Edit(found.start(), found.end(), "", "soft-hyphen")
        for found in re.finditer(_SOFT_HYPHENS, text)
        if _is_letter(text[found.start() - 1 : found.start()]) and _is_letter(text[found.end() : found.end() + 1])
    ]


def _is_letter(character: str) -> bool:
    return character.isalpha() or (character != "" and unicodedata.category(character).startswith("M"))


def naive_drop(text: str) -> list[Edit]:
    """First half of the naive recipe: controls and zero-width characters, wherever they stand."""
    return [Edit(found.start(), found.end(), "", "naive") for found in re.finditer(_NAIVE_CONTROLS, text)]


def naive_collapse(text: str) -> list[Edit]:
    """Second half: every run of white space becomes one space, none at either end."""
    edits: list[Edit] = []
    for found in re.finditer(_BLANKS, text):
        start, end = found.span()
        if start and end < len(text):
            if text[start] != " ":
                edits.append(Edit(start, start + 1, " ", "naive"))
            start += 1
        if start < end:
            edits.append(Edit(start, end, "", "naive"))
    return edits
