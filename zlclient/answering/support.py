"""Where a text supports a statement: by the words they share, weighed by rarity. It compares words, not meaning.

Terms are pairs of neighbouring characters for Chinese and words without their endings for English. A statement's score
in a span is the weighted share of its terms that the span has, from 0 to 1; a term that stands in few sentences of the
document weighs more, and one that stands in none weighs most.
"""

from __future__ import annotations

import heapq
import math
import re
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from ..checking.sentences import sentences
from ..checking.text import fold, lower
from ..shaping.outline import Node

ENOUGH = 0.5
"""The score from which shared words count as support; see tests/benchmarks/citations.py for what it lets through."""

_CANDIDATES = 8  # sentences looked at closely for each statement
_WINDOW = 3  # sentences a span may hold
_WORD = re.compile(r"[a-z]+(?:['’][a-z]+)?|[\u3400-\u9fff]+")
_ENDINGS = ("ingly", "edly", "ing", "ies", "ied", "ers", "er", "ed", "es", "s", "ly")


def terms(text: str) -> set[str]:
    """The terms of `text`; numbers are none, as the fidelity check compares those by value."""
    found: set[str] = set()
    for run in _WORD.findall(lower(fold(text))):
        if run[0] < "\u3400":
            found.add(_stem(run))
        elif len(run) == 1:
            found.add(run)
        else:
            found.update(run[at : at + 2] for at in range(len(run) - 1))
    return found


def _stem(word: str) -> str:
    word = word.removesuffix("'s").removesuffix("’s")
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


class Sentence(NamedTuple):
    """One sentence of the document, the division it stands in, and which terms of the statements it has."""

    start: int
    end: int
    division: int
    terms: frozenset[str]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the document within one division, and a statement's score in it."""

    start: int
    end: int
    path: tuple[str, ...]
    score: float


class Source:
    """A document's sentences, as far as given statements share words with them."""

    def __init__(
        self, text: str, spans: Iterable[tuple[int, int]], outline: Sequence[Node], statements: Iterable[str]
    ) -> None:
        """`spans` are the stretches of `text` to look at, in order; no span reaches across their borders."""
        self._text, self._outline = text, outline
        self._wanted = frozenset[str]().union(*map(terms, statements))
        starts = [node.start for node in outline]
        self._sentences: list[Sentence] = []
        self._breaks: set[int] = set()  # positions in the list at which a stretch begins
        for first, last in spans:
            self._breaks.add(len(self._sentences))
            for start, end in sentences(text[first:last]):
                start, end = first + start, first + end  # noqa: PLW2901 - placed in the whole text
                division = bisect_right(starts, start) - 1
                self._sentences.append(Sentence(start, end, division, self._of(text[start:end])))
        counts = Counter(term for sentence in self._sentences for term in sentence.terms)
        total = len(self._sentences) + 1
        self._weights = {term: math.log(1 + total / (1 + counts[term])) for term in self._wanted}
        self._places: dict[str, list[int]] = {}
        for place, sentence in enumerate(self._sentences):
            for term in sentence.terms:
                self._places.setdefault(term, []).append(place)
        self._labels: dict[int, frozenset[str]] = {}

    def _of(self, text: str) -> frozenset[str]:
        return self._wanted & terms(text)

    def path(self, division: int) -> tuple[str, ...]:
        """The labels from the outermost division down to this one."""
        return self._outline[division].path if division >= 0 else ()

    def candidates(self, statement: str) -> list[Span]:
        """Spans of one to three sentences that share the most with `statement`: the best first, the shorter before."""
        own = terms(statement)
        total = sum(self._weights[term] for term in own)
        if not total:
            return []
        shares: dict[int, float] = {}
        for term in own:
            for place in self._places.get(term, ()):
                shares[place] = shares.get(place, 0.0) + self._weights[term]
        best = heapq.nlargest(_CANDIDATES, shares, key=lambda place: (shares[place], -place))
        windows = {window for place in best for window in self._windows(place)}
        found = [self._span(first, last, own, total) for first, last in windows]
        # A sentence more must add something: each costs a little of the score.
        return [span for _, span in sorted(found, key=lambda pair: (-pair[0], pair[1].start, pair[1].end))]

    def _windows(self, place: int) -> Iterable[tuple[int, int]]:
        """(first, last) of each run of sentences around `place` that stays in its division and stretch."""
        division = self._sentences[place].division
        for size in range(1, _WINDOW + 1):
            for first in range(max(0, place - size + 1), place + 1):
                last = first + size - 1
                inside = last < len(self._sentences) and not any(
                    at in self._breaks for at in range(first + 1, last + 1)
                )
                if inside and all(self._sentences[at].division == division for at in range(first, last + 1)):
                    yield first, last

    def _span(self, first: int, last: int, own: set[str], total: float) -> tuple[float, Span]:
        run = self._sentences[first : last + 1]
        division = run[0].division
        has = self._label(division).union(*(sentence.terms for sentence in run))
        score = sum(self._weights[term] for term in own & has) / total
        span = Span(run[0].start, run[-1].end, self.path(division), min(1.0, score))
        return score - 0.05 * (last - first), span

    def _label(self, division: int) -> frozenset[str]:
        known = self._labels.get(division)
        if known is None:
            known = self._labels[division] = self._of(" ".join(self.path(division)))
        return known


def turned_around(statement: str, span: str) -> bool:
    """Whether `statement` denies something and `span` has no word to deny it with."""
    pattern = _negations()
    return bool(pattern.search(lower(statement))) and not pattern.search(lower(span))


@cache
def _negations() -> re.Pattern[str]:
    words = tomllib.loads((files("zlclient.answering") / "data" / "negations.toml").read_text("utf-8"))
    english = "|".join(map(re.escape, words["en"]))
    return re.compile(rf"{'|'.join(map(re.escape, words['zh']))}|\b(?:{english})\b|n['’]t\b")
