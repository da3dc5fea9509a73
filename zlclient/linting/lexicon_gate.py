"""What a text must hold for a pattern to match at all, so that most word lists are dismissed without a search.

The patterns of the lexicons are simple: words, groups, optional pieces, classes, lookarounds. From each are taken the
beginnings of words (or, in a language without spaces, the runs of characters) that every match contains. A pattern of
which nothing is sure always counts as possible.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from operator import itemgetter
from typing import NamedTuple

# Words are told apart by their first four letters, so that an ending that varies does no harm.
_WORD = re.compile(r"(?<=[^a-z])(?:[a-z]{4}|[a-z]{1,3}(?=[^a-z]))")
_LETTER = re.compile(r"[a-z]|\\[wWsS]|\^")
_CODE_POINT = re.compile(r"\\u[0-9a-f]{4}")
_SPACED = bytes(code if chr(code).islower() and (code < 0x80 or code > 0xC0) else 32 for code in range(256))
# Opening of a group, class, escape or character, and the quantifier behind all but the first.
_TOKEN = re.compile(
    r"(\(\?(?:<?[=!]|:|P<\w+>)|\(|\[\^?\]?(?:\\.|[^\]\\])*\]|\\u[0-9a-f]{4}|\\.|.)((?:[?*+]|\{[\d,]*\})?)", re.DOTALL
)
_first_four = itemgetter(slice(4))
_OPTIONAL = ("?", "*", "{0")

Keys = frozenset[str]
Needs = tuple[Keys, ...]


class _Piece(NamedTuple):
    """A literal character, a group (its branches), or something that matches unknown text (both empty).

    `gap` says of the latter that it is no letter, so that a word ends before it.
    """

    literal: str
    group: tuple[Branch, ...]
    optional: bool
    gap: bool = False


Branch = tuple[_Piece, ...]
_ANYTHING = _Piece("", (), optional=True)
_BLANK = _Piece(" ", (), optional=False)


def split_words(low: str) -> list[str]:
    """The words of a lower-case text, of letters from a to z and from à to ÿ; all else parts them."""
    # Every character that is no letter becomes a blank, which is several times as fast as a regular expression.
    return low.encode("latin-1", "replace").translate(_SPACED).decode("latin-1").split()


def first_four(words: Iterable[str]) -> frozenset[str]:
    """The first four letters of every word."""
    return frozenset(map(_first_four, set(words)))


class Gate:
    """What every match of a pattern holds, read from the pattern once."""

    def __init__(self, pattern: str) -> None:
        self._branches = _parse(pattern)

    def begins_with_letters(self) -> bool:
        """Whether every match begins with one of a few letters, rather than with something optional."""
        return _begin_with_letters(self._branches)

    def pieces(self, language: str) -> Needs:
        """What every match holds of `pieces`: of each set, one. Empty where nothing is sure."""
        if language == "en":
            return self._needs("en")
        return tuple(frozenset(key[0] for key in keys) for keys in self.runs(language))

    def runs(self, language: str) -> Needs:
        """The runs of characters that every match holds: of each set, one. Empty where nothing is sure.

        In a spaced language runs only add to what words tell, so those that every text holds are left out.
        """
        shortest = 5 if language == "en" else 1
        found = [keys for keys in self._needs("zh") if min(map(len, keys)) >= shortest]
        # What dismisses most texts at the least cost is asked for first.
        return tuple(sorted(found, key=lambda keys: (len(keys), -min(map(len, keys)))))

    def _needs(self, language: str) -> Needs:
        first, *others = self._branches
        return () if others else tuple(_candidates(first, language, left=True, right=True))


def _begin_with_letters(branches: tuple[Branch, ...]) -> bool:
    return all(
        branch
        and bool(branch[0].literal or (branch[0].group and _begin_with_letters(branch[0].group)))
        and not branch[0].optional
        for branch in branches
    )


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


def _alternatives(branches: tuple[Branch, ...], language: str, *, left: bool, right: bool) -> Keys | None:
    found: set[str] = set()
    for branch in branches:
        # Of the candidates the one with the longest words.
        keys = max(_candidates(branch, language, left=left, right=right), key=_shortest, default=None)
        if keys is None:
            return None
        found |= keys
    return frozenset(found)


def _shortest(keys: Keys) -> int:
    return min(map(len, keys))


def _candidates(pieces: Branch, language: str, *, left: bool, right: bool) -> list[Keys]:
    """The keys of one sequence: of its literal runs, and of its mandatory groups."""
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


def _ends_in_space(group: tuple[Branch, ...]) -> bool:
    return bool(group) and all(branch and branch[-1] == _BLANK for branch in group)


def _run_keys(run: str, language: str) -> list[Keys]:
    if language == "zh":
        stripped = run.strip()
        return [frozenset((stripped,))] if stripped else []
    return [frozenset((word,)) for word in _WORD.findall(run)]


def _parse(pattern: str) -> tuple[Branch, ...]:
    """The branches of a pattern that `re` compiles."""
    # Groups that are open, each with what stood before it in its branch and in its earlier branches.
    outer: list[tuple[list[Branch], list[_Piece], bool]] = []
    branches: list[Branch] = []
    pieces: list[_Piece] = []
    for item, quantifier in _TOKEN.findall(pattern):
        optional = quantifier.startswith(_OPTIONAL)
        if item == "|":
            branches.append(tuple(pieces))
            pieces = []
            continue
        if item[0] == "(" and item != "\\(":
            outer.append((branches, pieces, item in ("(", "(?:")))
            branches, pieces = [], []
            continue
        if item == ")":
            group = (*branches, tuple(pieces))
            branches, pieces, is_known = outer.pop()
            piece = _Piece("", group if is_known else (), optional)
        elif item[0] == "[":
            gap = _LETTER.search(_CODE_POINT.sub("", item)) is None
            piece = _Piece("", (), optional, gap and not quantifier)
        else:
            piece = _Piece("" if item[0] in ".^$\\" else item, (), optional)
        pieces.append(piece)
        if quantifier and not optional:
            pieces.append(_ANYTHING)
    return (*branches, tuple(pieces))
