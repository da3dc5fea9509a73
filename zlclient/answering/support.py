"""Where a text supports a statement: by the words they share, weighed by rarity. It compares words, not meaning.

Terms are pairs of neighbouring characters for Chinese and words without their endings for English. A statement's score
in a span is the weighted share of its terms that the span has, from 0 to 1; a term that stands in few sentences of the
document weighs more, and one that stands in none weighs most. Numbers and the question only help to choose the
sentences looked at; a statement of a word or two ("Three years.") says nothing without its question, and is scored
together with it.
"""

from __future__ import annotations

import heapq
import math
import re
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from operator import add
from typing import Any, NamedTuple

from ..checking.sentences import sentences
from ..checking.text import fold, lower
from ..shaping.outline import Node
from .places import PLACE

ENOUGH = 0.45
"""The score from which shared words count as support; see tests/benchmarks/citations.py for what it lets through."""

_CANDIDATES = 8  # sentences looked at closely for each statement
_WINDOW = 3  # sentences a span may hold
_EACH = 0.05  # what each sentence after the first must add to the score
_SHORT = 3  # terms; a statement with fewer is scored with its question
_ASIDE = 0.3  # what a term of the question counts beside one of the statement, in choosing sentences
_NUMERAL = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_LATIN = re.compile(r"[a-z]+(?:['’][a-z]+)?")
_HAN = re.compile(r"[\u3400-\u9fff]+")
_ENDINGS = ("ingly", "edly", "ing", "ies", "ied", "ers", "er", "ed", "es", "s", "ly")


def plain(text: str) -> str:
    """`text` as terms are read from it: folded and in lower case, every offset as before."""
    return lower(fold(text))


def terms(text: str) -> set[str]:
    """The terms of plain `text`; numbers and numbered places are none, as those are compared by value."""
    found = _words(text)
    for run in _HAN.findall(PLACE.sub(" ", text)):
        found.update(map(add, run, run[1:]))
    return found - _lexicon().stop


def numerals(text: str) -> set[str]:
    """The numbers of plain `text` in digits, without their thousands' commas."""
    return {found.replace(",", "") for found in _NUMERAL.findall(text)}


def _words(text: str) -> set[str]:
    stop = _lexicon().stop
    return {_stem(word) for word in _LATIN.findall(text) if word not in stop}


def _stem(word: str) -> str:
    word = word.removesuffix("'s").removesuffix("’s")
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


class Sentence(NamedTuple):
    """One sentence of the document, the division it stands in, and which of the wanted terms and numbers it has."""

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
        self,
        text: str,
        spans: Iterable[tuple[int, int]],
        outline: Sequence[Node],
        statements: Iterable[str],
        question: str,
    ) -> None:
        """`spans` are the stretches of `text` to look at, in order; no span reaches across their borders."""
        self._outline = outline
        self._asked = terms(_lexicon().interrogative.sub(" ", plain(question)))
        told = "\n".join(map(plain, statements))
        self._wanted = frozenset(terms(told) | numerals(told) | self._asked)
        starts = [node.start for node in outline]
        self._sentences: list[Sentence] = []
        self._breaks: set[int] = set()  # positions in the list at which a stretch begins
        for first, last in spans:
            self._breaks.add(len(self._sentences))
            stretch = text[first:last]
            read = plain(stretch)
            for start, end in sentences(stretch):
                division = bisect_right(starts, first + start) - 1
                self._sentences.append(Sentence(first + start, first + end, division, self._of(read[start:end])))
        counts = Counter(term for sentence in self._sentences for term in sentence.terms)
        total = len(self._sentences) + 1
        self._weights = {term: math.log(1 + total / (1 + counts[term])) for term in self._wanted}
        self._places: dict[str, list[int]] = {}
        for place, sentence in enumerate(self._sentences):
            for term in sentence.terms:
                self._places.setdefault(term, []).append(place)
        self._labels: dict[int, frozenset[str]] = {}

    def _of(self, text: str) -> frozenset[str]:
        """The wanted terms and numbers of plain `text`, without making those that nobody wants."""
        found = self._wanted.intersection(map(add, text, text[1:]))
        return found.union(self._wanted & _words(text), self._wanted & numerals(text))

    def path(self, division: int) -> tuple[str, ...]:
        """The labels from the outermost division down to this one."""
        return self._outline[division].path if division >= 0 else ()

    def candidates(self, statement: str) -> list[Span]:
        """Spans of one to three sentences that share the most with `statement`, the best first.

        Of equals the one comes first that has more of the statement's numbers and of the question; a sentence more
        must add something.
        """
        statement = plain(statement)
        own, numbers = terms(statement), numerals(statement)
        if not (own or numbers):
            return []  # "Yes." has nothing to compare
        if len(own) < _SHORT:
            own |= self._asked
        if not own:
            return []
        pull = dict.fromkeys(self._asked, _ASIDE) | dict.fromkeys(own | numbers, 1.0)
        pulls: dict[int, float] = {}
        for term, factor in pull.items():
            for place in self._places.get(term, ()):
                pulls[place] = pulls.get(place, 0.0) + factor * self._weights[term]
        best = heapq.nlargest(_CANDIDATES, pulls, key=lambda place: (pulls[place], -place))
        ranked: dict[Span, tuple[float, float]] = {}
        for first, last in {window for place in best for window in self._windows(place)}:
            span = self._span(first, last, own)
            ranked[span] = (
                _EACH * (last - first) - span.score,
                -sum(pulls.get(at, 0.0) for at in range(first, last + 1)),
            )
        return sorted(ranked, key=lambda span: (*ranked[span], span.start))

    def _windows(self, place: int) -> Iterable[tuple[int, int]]:
        """(first, last) of each run of sentences around `place` that stays in its division and stretch."""
        division = self._sentences[place].division
        for size in range(1, _WINDOW + 1):
            for first in range(max(0, place - size + 1), place + 1):
                last = first + size - 1
                inside = last < len(self._sentences) and self._breaks.isdisjoint(range(first + 1, last + 1))
                if inside and all(self._sentences[at].division == division for at in (first, last)):
                    yield first, last

    def _span(self, first: int, last: int, own: set[str]) -> Span:
        run = self._sentences[first : last + 1]
        division = run[0].division
        has = self._label(division).union(*(sentence.terms for sentence in run))
        shared = sum(self._weights[term] for term in own & has)
        score = shared / sum(self._weights[term] for term in own)
        return Span(run[0].start, run[-1].end, self.path(division), min(1.0, score))

    def _label(self, division: int) -> frozenset[str]:
        known = self._labels.get(division)
        if known is None:
            known = self._labels[division] = self._of(plain(" ".join(self.path(division))))
        return known


def denials(text: str) -> set[str]:
    """The kinds of denial in `text`, each by the first word of its group, or 不 with the character after it."""
    lexicon = _lexicon()
    return {lexicon.groups.get(found, found) for found in lexicon.denial.findall(plain(text))}


@dataclass(frozen=True, slots=True)
class _Lexicon:
    stop: frozenset[str]
    interrogative: re.Pattern[str]
    denial: re.Pattern[str]
    groups: Mapping[str, str]


@cache
def _lexicon() -> _Lexicon:
    data: dict[str, Any] = tomllib.loads((files("zlclient.answering") / "data" / "support.toml").read_text("utf-8"))
    chinese: list[list[str]] = data["denials"]["zh"]
    english: list[list[str]] = data["denials"]["en"]
    words = sorted((word for group in chinese for word in group), key=len, reverse=True)
    latin = "|".join(word for group in english for word in group if word.isalpha())
    return _Lexicon(
        stop=frozenset([*data["stop_en"].split(), *data["stop_zh"].split()]),
        interrogative=re.compile("|".join(data["interrogatives_zh"].split())),
        denial=re.compile(rf"{'|'.join(words)}|不[\u3400-\u9fff]|\b(?:{latin})\b|n['’]t\b"),
        groups={word: group[0] for group in (*chinese, *english) for word in group},
    )
