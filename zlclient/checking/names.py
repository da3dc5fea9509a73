"""The proper nouns of a text, found by form: few false alarms matter more here than finding every name.

- marked: 《book titles》 and short quoted terms;
- Latin: capitalised sequences, acronyms, product names (Model 3, GPT-4o), Latin words inside Chinese text;
- Chinese: what ends like an organisation (…集团, …大学) or a place (…省, …市), and a full name before a title.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from . import lexicon
from .numbers import quantities
from .text import CJK, alternatives


class Name(NamedTuple):
    """A proper noun. `form` is marked, latin, organisation, place or person.

    `may_lose` is the number of characters at the left that may belong to the sentence and not to the name: Chinese
    has no spaces, and an English sentence capitalises its first word.
    """

    start: int
    end: int
    form: str
    may_lose: int = 0


_MARKED = re.compile(
    r"《(?P<title>[^《》\n]{1,60})》|“(?P<a>[^“”\n]{2,20})”|「(?P<b>[^「」\n]{2,20})」|『(?P<c>[^『』\n]{2,20})』"
)
_SENTENCE_MARK = re.compile(r"[。！？；，!?;,：:]")
_CAPITALISED = (
    r"(?:[A-Z][A-Za-z0-9]*(?:(?:[&.+-]|['’](?!s(?![A-Za-z])))[A-Za-z0-9]++)*+[+#]{0,2}|[a-z]{1,2}[A-Z][A-Za-z0-9]*+)"
)
_NUMBER = (
    r"[0-9]{1,3}(?:\.[0-9])?[a-z]?"
    r"(?![A-Za-z0-9%,:/]|\.[0-9]|[ ]?(?:%|[mb]illion|trillion|thousand|percent|年|月|日))"
)
_SEQUENCE = re.compile(
    rf"(?<![A-Za-z0-9_.@/-]){_CAPITALISED}(?:[ ](?:(?:of|the|de|von|van)[ ])?{_CAPITALISED}|[ ]{_NUMBER}){{0,7}}"
)
_MIXED_TOKEN = re.compile(r"(?<![A-Za-z0-9_.,@/$¥€£+-])[0-9]++[A-Z]+[A-Za-z0-9-]*+")
_WORD = re.compile("[^ ]+")
_LABEL = re.compile(r"(?m:^)[ \t>*#•-]*(?:[0-9]+[.)][ ])?\**[^\n:：*]{1,40}\**[:：]")
_HEADING = re.compile(r"(?m:^)(?:#{1,6}[ ][^\n]*|[^\n|]*\|[^\n]*\n(?=[ ]?\|?[ :]*-{2,}))")
_SENTENCE_START = re.compile(r"(?:\A|[.!?。！？:：\n\"“(*>|•-]|[0-9][.)])[ \t\"“(*_]*\Z")
# A longer run of capitals and digits is a key or a hash.
_LONGEST = 80
_HAN = re.compile(f"[{CJK}]+")


_NO_PLACE = (
    "社",
    "小",
    "园",
    "景",
    "城",
    "特",
    "禁",
    "护",
    "理",
    "发",
    "地",
    "辖",
    "矿",
    "牧",
    "库",
    "超",
    "都",
    "股",
    "上",
    "门",
    "楼",
    "全",
    "本",
    "各",
)


class _Shapes(NamedTuple):
    organisation: re.Pattern[str]
    place: re.Pattern[str]
    person: re.Pattern[str]
    leading: re.Pattern[str]
    generic: re.Pattern[str]
    ordinary: frozenset[str]
    acronyms: frozenset[str]
    sections: frozenset[str]


@cache
def _shapes() -> _Shapes:
    names = lexicon.names()
    no_people = alternatives(names.not_people)
    return _Shapes(
        organisation=re.compile(alternatives(names.organisations)),
        # 市场, 市民, 区别 and 省略 are no places.
        place=re.compile(alternatives(names.places) + "(?![场值民面况别分域间块略去心长委])"),
        person=re.compile(
            rf"(?!{no_people}){alternatives(names.surnames)}[{CJK}]{{1,2}}?(?={alternatives(names.titles)})"
        ),
        leading=re.compile(f"{alternatives(names.leading)}+"),
        generic=re.compile(f"(?:{alternatives((*names.generic, *names.organisations, *names.leading))})*+"),
        ordinary=frozenset(names.ordinary),
        acronyms=frozenset(names.common),
        sections=frozenset(names.sections),
    )


def proper_nouns(folded: str) -> list[Name]:
    """The names of a folded text in order; where two overlap, the one that begins first stays."""
    found = [*_marked(folded), *_latin(folded), *_chinese(folded)]
    found.sort(key=lambda name: (name.start, -name.end))
    kept: list[Name] = []
    for name in found:
        if not kept or name.start >= kept[-1].end:
            kept.append(name)
    return kept


def _marked(folded: str) -> list[Name]:
    found: list[Name] = []
    for match in _MARKED.finditer(folded):
        group = str(match.lastgroup)
        if group == "title" or not _SENTENCE_MARK.search(match[group]):
            found.append(Name(*match.span(group), "marked"))
    return found


def _latin(folded: str) -> list[Name]:
    layout = _layout(folded)
    found: list[Name] = []
    for match in _SEQUENCE.finditer(folded):
        if not layout[match.start()] and len(match[0]) <= _LONGEST:
            found += _trimmed(folded, match.start(), match.end())
    found += [Name(*match.span(), "latin") for match in _MIXED_TOKEN.finditer(folded) if not _is_amount(match[0])]
    return found


def _is_amount(token: str) -> bool:
    """35K and 16GB are numbers, 5G and 3D are names."""
    return any(quantity.end == len(token) for quantity in quantities(token))


def _layout(folded: str) -> bytearray:
    """Set where a capital says nothing: headings, table headers and the labels of list items."""
    mask = bytearray(len(folded))
    for pattern in (_LABEL, _HEADING):
        for match in pattern.finditer(folded):
            mask[match.start() : match.end()] = b"\x01" * (match.end() - match.start())
    return mask


def _trimmed(folded: str, start: int, end: int) -> list[Name]:
    """The names in one capitalised sequence, without the ordinary words and section labels at its left."""
    shapes = _shapes()
    words = [(start + match.start(), match[0]) for match in _WORD.finditer(folded[start:end])]
    begins_sentence = _SENTENCE_START.search(folded, max(0, start - 12), start) is not None
    while words and (_plain(words[0][1]) in shapes.ordinary or words[0][1] in ("of", "the", "de", "von", "van")):
        words.pop(0)
        begins_sentence = begins_sentence and bool(words) and _plain(words[0][1]) in shapes.ordinary
    if not words or words[0][1][0].isdigit():
        return []
    if _says_nothing([word for _, word in words], begins_sentence=begins_sentence):
        return []
    begin, stop = words[0][0], words[-1][0] + len(words[-1][1])
    return [Name(begin, stop, "latin", words[1][0] - begin if begins_sentence and len(words) > 1 else 0)]


def _says_nothing(words: list[str], *, begins_sentence: bool) -> bool:
    """A lone capitalised word, or one with a number, whose capital has another reason than being a name."""
    first, numbered = _plain(words[0]), len(words) == 2 and words[1][0].isdigit()
    shapes = _shapes()
    if len(words) > 1 and not (numbered and (begins_sentence or first in shapes.sections)):
        return False
    if first in shapes.sections or first in shapes.acronyms or len(first) < 2:
        return True
    # NOT and ALL are capitals for emphasis.
    return first.capitalize() in shapes.ordinary or (first[1:].islower() and (begins_sentence or numbered))


def _plain(word: str) -> str:
    return re.split("['’.]", word, maxsplit=1)[0]


def _chinese(folded: str) -> list[Name]:
    shapes = _shapes()
    found: list[Name] = []
    for run in _HAN.finditer(folded):
        left = run.start()
        if run.end() - left < 3:
            continue
        for match in shapes.person.finditer(folded, left, run.end()):
            found.append(Name(*match.span(), "person"))
        for suffix in _suffixes(folded, left, run.end()):
            name = _bounded(folded, left, suffix)
            if name:
                found.append(name)
            left = suffix.end()
    return found


def _suffixes(folded: str, start: int, end: int) -> list[re.Match[str]]:
    shapes = _shapes()
    found = [*shapes.organisation.finditer(folded, start, end), *shapes.place.finditer(folded, start, end)]
    return sorted(found, key=lambda match: match.start())


def _bounded(folded: str, left: int, suffix: re.Match[str]) -> Name | None:
    """The name that ends with `suffix`, cut at the last word that begins no name; None for a common noun."""
    shapes = _shapes()
    is_place = suffix.re is shapes.place
    run_start = left
    left = max(left, suffix.start() - (3 if is_place else 12))
    if left >= suffix.start():
        return None
    core_start, bounded = left, left == run_start
    for match in shapes.leading.finditer(folded, left, suffix.start()):
        core_start, bounded = match.end(), True
    core = folded[core_start : suffix.start()]
    if len(core) < 2 or shapes.generic.fullmatch(core) or "某" in core:
        return None
    if is_place and (not bounded or core.endswith(_NO_PLACE)):
        return None
    return Name(core_start, suffix.end(), "place" if is_place else "organisation", len(core) - 1)
