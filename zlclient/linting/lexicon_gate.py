"""What a text must hold for a pattern to match at all, so that most word lists are dismissed without a search.

The patterns of the lexicons are simple: words, groups, optional pieces, classes, lookarounds. From each are taken the
beginnings of words (or, in a language without spaces, the runs of characters) that every match contains. A pattern of
which nothing is sure always counts as possible.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

# Words are told apart by their first four letters, so that an ending that varies does no harm.
_WORD = re.compile(r"(?<=[^a-z])(?:[a-z]{4}|[a-z]{1,3}(?=[^a-z]))")
_LETTER = re.compile(r"[a-z]|\\[wWsS]|\^")
_CODE_POINT = re.compile(r"\\u[0-9a-f]{4}")
_SPACED = bytes(code if code in b"abcdefghijklmnopqrstuvwxyz" else 32 for code in range(256))
_first_four = itemgetter(slice(4))
_OPTIONAL = ("?", "*", "{0")

Keys = frozenset[str]
Needs = tuple[Keys, ...]


class _Piece(NamedTuple):
    """A literal character, a group (its inner text), or something that matches unknown text (both empty).

    `gap` says of the latter that it is no letter, so that a word ends before it.
    """

    literal: str
    group: str
    optional: bool
    gap: bool = False


def pieces(low: str, language: str) -> frozenset[str]:
    """The cheap view of a lower-case text: the first four letters of its words, or its characters."""
    return first_letters(low) if language == "en" else frozenset(low)


def first_letters(low: str) -> frozenset[str]:
    """The first four letters of every word."""
    # Every character that is no letter becomes a blank, which is several times as fast as a regular expression.
    letters = low.encode("latin-1", "replace").translate(_SPACED).decode("ascii")
    return frozenset(map(_first_four, set(letters.split())))


def begins_with_letters(pattern: str) -> bool:
    """Whether every match begins with one of a few letters, rather than with something optional."""
    return all(
        bool(first.literal or (first.group and begins_with_letters(first.group))) and not first.optional
        for first in (next(_pieces(branch)) for branch in _split(pattern))
    )


def piece_needs(pattern: str, language: str) -> Needs:
    """What every match of a pattern holds of `pieces`: of each set, one. Empty where nothing is sure."""
    if language == "en":
        return _needs(pattern, language)
    return tuple(frozenset(key[0] for key in keys) for keys in run_needs(pattern, language))


def run_needs(pattern: str, language: str) -> Needs:
    """The runs of characters that every match of a pattern holds: of each set, one. Empty where nothing is sure.

    In a spaced language runs only add to what words tell, so those that every text holds are left out.
    """
    shortest = 5 if language == "en" else 1
    found = [keys for keys in _needs(pattern, "zh") if min(map(len, keys)) >= shortest]
    # What dismisses most texts at the least cost is asked for first.
    return tuple(sorted(found, key=lambda keys: (len(keys), -min(map(len, keys)))))


def _needs(pattern: str, language: str) -> Needs:
    found: list[Needs] = [tuple(_candidates(branch, language, left=True, right=True)) for branch in _split(pattern)]
    return found[0] if len(found) == 1 else ()


def holds_pieces(needed: Needs, found: frozenset[str]) -> bool:
    """Whether a text with these `pieces` may match."""
    for keys in needed:  # noqa: SIM110 - called for every list and file: a generator doubles its time
        if keys.isdisjoint(found):
            return False
    return True


def holds_runs(needed: Needs, low: str) -> bool:
    """Whether a lower-case text with these runs of characters may match."""
    for keys in needed:
        for key in keys:
            if key in low:
                break
        else:
            return False
    return True


def _alternatives(pattern: str, language: str, *, left: bool, right: bool) -> Keys | None:
    found: set[str] = set()
    for branch in _split(pattern):
        keys = _sequence(branch, language, left=left, right=right)
        if keys is None:
            return None
        found |= keys
    return frozenset(found)


def _sequence(branch: str, language: str, *, left: bool, right: bool) -> Keys | None:
    """The best of the candidates: the one with the longest words."""
    candidates = _candidates(branch, language, left=left, right=right)
    return max(candidates, key=lambda keys: min(map(len, keys)), default=None)


def _candidates(branch: str, language: str, *, left: bool, right: bool) -> list[Keys]:
    """The keys of one sequence: of its literal runs, and of its mandatory groups."""
    pieces = list(_pieces(branch))
    candidates: list[Keys] = []
    run = " " if left else ""
    for index, piece in enumerate(pieces):
        if piece.literal and not piece.optional:
            run += piece.literal
            continue
        candidates += _run_keys(run + " " if piece.gap else run, language)
        if piece.group and not piece.optional:
            before = run.endswith(" ")
            after = pieces[index + 1].literal == " " if index + 1 < len(pieces) else right
            keys = _alternatives(piece.group, language, left=before, right=after)
            candidates += [keys] if keys else []
        # After an optional `very ` a word begins as surely as before it.
        keeps = run.endswith(" ") and piece.optional and _ends_in_space(piece.group)
        run = " " if keeps else ""
    return candidates + _run_keys(run + " " if right else run, language)


def _ends_in_space(group: str) -> bool:
    return bool(group) and all(branch.endswith(" ") for branch in _split(group))


def _run_keys(run: str, language: str) -> list[Keys]:
    if language == "zh":
        stripped = run.strip()
        return [frozenset((stripped,))] if stripped else []
    return [frozenset((word,)) for word in _WORD.findall(run)]


def _split(pattern: str) -> Iterator[str]:
    """The branches at the outermost level."""
    start, index = 0, 0
    while index < len(pattern):
        char = pattern[index]
        if char == "\\":
            index += 1
        elif char == "[":
            index = _class_end(pattern, index) - 1
        elif char == "(":
            index = _group_end(pattern, index) - 1
        elif char == "|":
            yield pattern[start:index]
            start = index + 1
        index += 1
    yield pattern[start:]


def _pieces(branch: str) -> Iterator[_Piece]:
    index = 0
    while index < len(branch):
        char = branch[index]
        literal = group = ""
        gap = False
        if char == "(":
            end = _group_end(branch, index)
            inner = branch[index + 1 : end - 1]
            group = inner[2:] if inner.startswith("?:") else "" if inner.startswith("?") else inner
        elif char == "[":
            end = _class_end(branch, index)
            gap = _LETTER.search(_CODE_POINT.sub("", branch[index:end])) is None
        elif char == "\\":
            end = index + (6 if branch[index + 1] == "u" else 2)
        else:
            end = index + 1
            literal = "" if char in ".^$" else char
        rest = branch[end:]
        quantifier = re.match(r"[?*+]|\{[\d,]*\}", rest)
        if quantifier:
            end += quantifier.end()
        yield _Piece(literal, group, rest.startswith(_OPTIONAL), gap and not quantifier)
        if quantifier and not rest.startswith(_OPTIONAL):
            yield _Piece("", "", True)
        index = end


def _class_end(pattern: str, index: int) -> int:
    index += 2 if pattern[index + 1] in "^]" else 1
    while pattern[index] != "]":
        index += 2 if pattern[index] == "\\" else 1
    return index + 1


def _group_end(pattern: str, index: int) -> int:
    depth = 0
    while index < len(pattern):
        char = pattern[index]
        if char == "\\":
            index += 1
        elif char == "[":
            index = _class_end(pattern, index) - 1
        elif char in "()":
            depth += 1 if char == "(" else -1
            if depth == 0:
                return index + 1
        index += 1
    return index
