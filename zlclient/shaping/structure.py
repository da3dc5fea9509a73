"""Which lines of a document are headings, by the rules of a structure.

A rule matches at the start of a line, after white space. A structure's rules become one regular expression that begins
with the newline itself, followed by a set of possible first characters: the search runs at the speed of finding
newlines, and only lines that could be headings are looked at twice. The rules are data: see `structure_data`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

_INDENT = r"[ \t\u3000\u00a0\ufeff\f]{0,16}+"
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})([^\n]*)")
_CLOSING_HASHES = re.compile(r"[ \t]+#+$")
_TAG = re.compile(r"<[^>]{0,200}>")
# 总 则: spaces between single Han characters are typesetting, not words.
_LETTERSPACED = re.compile(r"[\u4e00-\u9fff](?: [\u4e00-\u9fff])+")


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of heading. `unit` headings are small and may share a segment with their neighbours.

    `first` lists what the line may begin with, single characters or longer prefixes. `pattern` matches lines that begin
    with a Markdown mark, `plain` all others, so that most lines are told apart by their first character.
    `depth` adds to `level` what the heading itself shows: `dots` of the number, `hashes`, or an HTML `tag`'s digit.
    `setext` marks a Markdown underline, whose heading is the line before.
    """

    kind: str
    level: int
    first: tuple[str, ...]
    pattern: str
    plain: str
    depth: str = ""
    unit: bool = False
    setext: bool = False


class Heading(NamedTuple):
    """A recognised heading: its line starts at `start`, number and title end at `end`; the rest is body.

    `label` is number and title as a path shows them.
    """

    kind: str
    level: int
    number: str
    title: str
    start: int
    end: int
    unit: bool
    label: str


@dataclass(frozen=True)
class Structure:
    """A named set of rules, and what must be found for a text to be taken for it."""

    name: str
    rules: tuple[Rule, ...]
    order: int = 500
    detect_kinds: frozenset[str] = frozenset()
    detect_headings: int = 1
    cues: str = ""
    cue_count: int = 0

    def headings(self, text: str) -> list[Heading]:
        """Return the headings of `text` in order; none inside a fenced block."""
        if not self.rules:
            return []
        scan = with_newlines(text)
        at_start, after_newline, slots = _compile(self.rules)
        found: list[Heading] = []
        first = at_start.match(scan)
        if first is not None:
            _add(found, first, 0, slots, scan)
        for match in after_newline.finditer(scan):
            slot = slots[match.lastgroup]  # pyright: ignore[reportArgumentType]
            number = match[slot.number]
            if slot.simple and number and number.isalnum() and not (slot.title and match[slot.title]):
                rule = slot.rule
                start, end = match.span()
                found.append(Heading(rule.kind, rule.level, number, "", start + 1, end, rule.unit, number))
            else:
                _add(found, match, match.start() + 1, slots, scan)
        fences = fence_spans(scan)
        return _outside(found, fences) if fences else found

    def matches(self, sample: str) -> bool:
        """Say whether `sample` shows this structure's headings and, where it needs them, its cue words."""
        if self.cues and len(re.findall(self.cues, sample)) < self.cue_count:
            return False
        if not self.detect_headings:
            return True
        return sum(h.kind in self.detect_kinds for h in self.headings(sample)) >= self.detect_headings


class _Slots(NamedTuple):
    """A rule and the numbers of its groups in the joined expression; 0 where it has none.

    A heading of a `simple` rule needs nothing but its number looked at, if it shows no title.
    """

    rule: Rule
    number: int
    title: int
    depth: int
    simple: bool


@cache
def _compile(rules: tuple[Rule, ...]) -> tuple[re.Pattern[str], re.Pattern[str], dict[str, _Slots]]:
    """Join the rules: for the text's start, for every later line, and where each rule's groups are."""
    marked = "|".join(_named(rule.pattern, f"{i}m") for i, rule in enumerate(rules))
    plain = "|".join(_named(rule.plain, f"{i}p") for i, rule in enumerate(rules))
    body = f"{_INDENT}{_gate(rules)}(?:(?=[#*_])(?:{marked})|(?:{plain}))"
    after_newline = re.compile("\n" + body)
    group = after_newline.groupindex.get
    slots: dict[str, _Slots] = {}
    for i, rule in enumerate(rules):
        for way in "mp":
            number, title, depth = (group(f"{name}{i}{way}", 0) for name in ("number", "title", rule.depth))
            simple = bool(number) and not rule.depth and not rule.setext
            slots[f"rule{i}{way}"] = _Slots(rule, number, title, depth, simple)
    return re.compile(body), after_newline, slots


def _gate(rules: tuple[Rule, ...]) -> str:
    """Return a look-ahead for what lines may begin with; one character refuses most lines."""
    prefixes = {prefix for rule in rules for prefix in rule.first}
    single = "".join(sorted(re.escape(p) for p in prefixes if len(p) == 1))
    longer = sorted(re.escape(p) for p in prefixes if len(p) > 1)
    first = "".join(sorted({re.escape(p[0]) for p in prefixes}))
    either = "|".join(([f"[{single}]"] if single else []) + longer)
    return f"(?=[{first}])(?={either})" if longer else f"(?=[{first}])"


def _named(pattern: str, suffix: str) -> str:
    """Return a rule's pattern as a group of its own, its inner groups made unique."""
    return f"(?P<rule{suffix}>" + re.sub(r"\(\?P<([a-z]+)>", rf"(?P<\g<1>{suffix}>", pattern) + ")"


def _add(found: list[Heading], match: re.Match[str], start: int, slots: dict[str, _Slots], scan: str) -> None:
    rule, number_group, title_group, depth_group, _ = slots[match.lastgroup]  # pyright: ignore[reportArgumentType]
    if rule.setext:
        _add_setext(found, rule, start, match.end(), scan)
        return
    number = (match[number_group] or "") if number_group else ""
    title = (match[title_group] or "") if title_group else ""
    end = match.end()
    level = rule.level
    if rule.depth:
        level += number.count(".") if rule.depth == "dots" else _depth(match[depth_group])
    if number and not number.isalnum():
        number = tidy_number(number)
    if title:
        title_start = match.start(title_group)
        end -= len(scan[title_start:end]) - len(scan[title_start:end].rstrip())  # trailing space is no heading
        title = tidy_title(title)
    if number or title:
        label = f"{number} {title}" if number and title else number or title
        found.append(Heading(rule.kind, level, number, title, start, end, rule.unit, label))


def _depth(shown: str) -> int:
    """Return how far below the first level `##` or the digit of an HTML tag is."""
    return (int(shown) if shown.isdigit() else len(shown)) - 1


def _add_setext(found: list[Heading], rule: Rule, start: int, end: int, scan: str) -> None:
    """Turn the line before `start` into a heading if it is a paragraph of one line."""
    line_start = scan.rfind("\n", 0, max(0, start - 1)) + 1
    title = scan[line_start : max(line_start, start - 1)].strip()
    alone = line_start == 0 or scan.endswith(("\n\n", "\n\r\n"), 0, line_start)
    taken = found and found[-1].start >= line_start
    if alone and not taken and 0 < len(title) <= 120 and title[0] not in "|->#=<`~":
        title = tidy_title(title)
        found.append(Heading(rule.kind, rule.level, "", title, line_start, end, rule.unit, title))


def tidy_number(number: str) -> str:
    """Return a heading's number without the spaces it was set with: 第 十 二 条 is 第十二条; `Article 5` stays."""
    if number.isascii():
        return " ".join(number.split())
    return "".join(number.split())


def tidy_title(title: str) -> str:
    """Return a heading's title as one line, without the marks around it and the spaces inside 总 则."""
    title = title.strip()
    if "<" in title:
        title = _TAG.sub("", title)
    if "#" in title:
        title = _CLOSING_HASHES.sub("", title)
    for mark in ("**", "__"):
        if title.count(mark) == 1 or (title.startswith(mark) and title.endswith(mark) and len(title) > 4):
            title = title.removeprefix(mark).removesuffix(mark).strip()
    if not title:
        return title
    if title[0] in "【[（" and title[-1] in "】]）" and title.count(title[0]) == 1:
        title = title[1:-1]
    title = " ".join(title.split())
    return _LETTERSPACED.sub(lambda m: m[0].replace(" ", ""), title) if " " in title else title


def with_newlines(text: str) -> str:
    """Return `text` with its lone carriage returns, if those are its line ends, as newlines; the length stays."""
    return text.replace("\r", "\n") if "\r" in text and "\n" not in text else text


def fence_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of fenced blocks, fence lines included; an unclosed one reaches the end (CommonMark 4.5)."""
    spans: list[tuple[int, int]] = []
    opened: re.Match[str] | None = None
    for start in sorted(_line_starts(text, "```") | _line_starts(text, "~~~")):
        fence = _FENCE.match(text, start)
        if fence is None:
            continue
        if opened is None:
            if not (fence[1][0] == "`" and "`" in fence[2]):
                opened = fence
        elif fence[1].startswith(opened[1]) and not fence[2].strip():
            spans.append((opened.start(), fence.end()))
            opened = None
    if opened is not None:
        spans.append((opened.start(), len(text)))
    return spans


def _line_starts(text: str, mark: str) -> set[int]:
    """Return where the lines start that begin with `mark`, indented by three spaces at most."""
    starts: set[int] = set()
    if mark[0] not in text:  # a single character is found ten times as fast, and most texts have none
        return starts
    at = text.find(mark)
    while at >= 0:
        start = text.rfind("\n", max(0, at - 4), at) + 1
        if (start or at < 4) and text[start:at].strip(" ") == "":
            starts.add(start)
        at = text.find(mark, at + len(mark))
    return starts


def _outside(headings: list[Heading], spans: list[tuple[int, int]]) -> list[Heading]:
    starts = [start for start, _ in spans]

    def inside(position: int) -> bool:
        nearest = bisect_right(starts, position) - 1
        return nearest >= 0 and position < spans[nearest][1]

    return [heading for heading in headings if not inside(heading.start)]
