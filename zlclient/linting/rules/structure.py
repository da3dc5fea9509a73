"""Structure: how a prompt is cut into pieces that a model and a colleague can find again."""

# ruff: noqa: D101, D102 - what a rule does is said in texts/, for people who read no code

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from ..block import Block, Sentence
from ..diagnostic import Finding
from ..document import Document
from ..kinds import MASK
from ..lexicon import holds
from ..rule import Rule

_CJK = re.compile(r"[\u4e00-\u9fff]")
_STRUCTURE = re.compile(
    r"[ \t]*(?:[-*+•·#|<>=]|\d{1,3}[.)、]|\(?[A-Za-z][.)](?=\s)"
    r"|(?:First|Second|Third|Then|Next|Last|Final)(?:ly)?,|[（(]?[一二三四五六七八九十\d]{1,3}[）)、.]"
    r"|[^\s.:：。]{1,30}(?: [^\s.:：。]{1,20}){0,3}[:：])"
)
# A # that begins its line; a pattern that opens with ^ is tried at every character.
_HEADING = re.compile(r"(?P<level>#(?<![^\n]#)#{0,5})[ \t]+(?P<title>[^\n#]*\w[^\n]*?)[ \t#]*$", re.MULTILINE)


class WallOfText(Rule):
    code, slug = "ZL201", "wall-of-text"
    message = "{size} characters without a break; split them, or make them a list"
    latin, chinese = 1200, 500

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            # A third of a wall of Chinese is Chinese characters.
            least = self.chinese if block.chinese * 3 > self.chinese else self.latin
            for start, end in block.paragraphs:
                if end - start > least:
                    for low, high in _pieces(block, start, end):
                        prose = block.prose[low:high].replace(MASK, "")
                        limit = self.chinese if len(_CJK.findall(prose)) * 3 > len(prose) else self.latin
                        if len(prose) > limit:
                            yield self.in_block(block, low, min(high, block.line_at(low).end), size=len(prose))


def _pieces(block: Block, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A paragraph cut where a list item, heading, tag, table row or `key:` line begins: structure is no wall."""
    low = at = start
    for line in block.prose[start:end].split("\n"):
        if at > low and (_STRUCTURE.match(line) or not line.strip(MASK + " \t\r")):
            yield low, at
            low = at
        at += len(line) + 1
    yield low, end


class BuriedCritical(Rule):
    code, slug, severity, default = "ZL202", "buried-critical", "info", False
    message = "This rule stands in the middle of {size} characters; say it at the start or the end"

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            size = len(block.text)
            if size < 12_000:
                continue
            for sentence in block.sentences:
                if 0.4 * size < sentence.start < 0.6 * size and holds("critical", sentence.text, block.languages):
                    yield self.in_block(block, sentence.start, sentence.end, size=size)
                    break


class RepeatedInstruction(Rule):
    code, slug, severity = "ZL203", "repeated-instruction", "info"
    message = "The same instruction stands on line {line} already"

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            if _is_branchy(block):
                continue
            lines = block.prose.split("\n")
            keys = Counter(_key(line) for line in lines if len(line) >= 12)
            if not any(count > 1 and _is_instruction(key) for key, count in keys.items()):
                continue
            seen: dict[tuple[str, str], int] = {}
            above: list[tuple[int, str]] = []
            at = 0
            for line in lines:
                start, at = at, at + len(line) + 1
                parent = _parent(above, line)
                # A new section, or a value of the template between, is a good reason to say it again.
                if line.lstrip()[:2] in ("**", "# ", "##") or line.lstrip()[:1] == "<" or MASK in line:
                    seen.clear()
                    continue
                key = (_key(line), parent)
                if key not in seen:
                    if _is_instruction(key[0]):
                        seen[key] = start
                    continue
                first, number = (doc.source.line_col(block.part.to_file(offset))[0] for offset in (seen[key], start))
                if first != number:
                    lead = len(line) - len(line.lstrip())
                    yield self.in_block(block, start + lead, start + len(line.rstrip()), line=first)


def _parent(above: list[tuple[int, str]], line: str) -> str:
    """The line that an indented one belongs to, "" at the margin; `above` holds (indentation, line) of those open."""
    text = line.lstrip(" \t")
    indent = len(line) - len(text)
    if not text:
        return ""
    while above and above[-1][0] >= indent:
        above.pop()
    parent = above[-1][1] if above else ""
    above.append((indent, line))
    return parent


def _key(line: str) -> str:
    return line.strip(" \t\r*-.。").lower()


def _is_instruction(key: str) -> bool:
    """Whether a line is neither too short to be an instruction nor a rule of dashes."""
    return len(key) >= (12 if not key.isascii() and _CJK.search(key) else 36) and any(map(str.isalpha, key))


def _is_branchy(block: Block) -> bool:
    """Whether template branches may repeat a sentence of which only one is rendered."""
    return any(tag.kind == "statement" for tag in block.part.tags)


class NumberingGap(Rule):
    code, slug = "ZL204", "numbering-gap"
    message = "This list goes from {before} to {number}"

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            if _is_branchy(block):
                continue
            last: dict[int, tuple[int, int]] = {}
            for item in block.numbered:
                if item.end is None:
                    continue
                indent, number = len(item.indent.expandtabs(4)), item.number
                before, end = last.get(indent, (0, 0))
                between = block.prose[end : item.start]
                if before and not _ends_list(between, indent):
                    skipped = number > before + 1 and number - before <= 3
                    twice = number == before and before > 1
                    if skipped or twice:
                        yield self.in_block(block, *item.digits, before=before, number=number)
                last = {level: value for level, value in last.items() if level < indent}
                last[indent] = (number, item.end)


def _ends_list(between: str, indent: int) -> bool:
    """Whether text between two items closes the list: a heading, a masked stretch, or a paragraph at its margin."""
    if MASK in between or re.search(r"^[ \t]*(?:#|\*\*|---|<)", between, re.MULTILINE):
        return True
    after_blank = re.split(r"\n[ \t]*\n", between)[1:]
    return any(part.strip() and len(part) - len(part.lstrip(" \t\n")) <= indent for part in after_blank)


class EmptySection(Rule):
    code, slug = "ZL205", "empty-section"
    message = "The section `{title}` is empty"

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            if "#" not in block.text:
                continue
            found = [m for m in _HEADING.finditer(block.text) if block.kinds.codes[m.start()] == 0]
            empty = [_is_empty(block, found, index) for index in range(len(found))]
            for index, match in enumerate(found):
                # Empty headings in a row are the outline of an answer, and `## Goal: …` says what it has to say.
                beside = empty[max(0, index - 1) : index] + empty[index + 1 : index + 2]
                if empty[index] and not any(beside) and index and not re.search(r"[:：{]|\.\.\.|…", match["title"]):
                    yield self.in_block(block, *match.span(), title=match["title"].strip()[:40])


def _is_empty(block: Block, found: list[re.Match[str]], index: int) -> bool:
    """Whether nothing stands below a heading before the next of its level; the last one opens what follows."""
    if index + 1 == len(found):
        return False
    one, two = found[index], found[index + 1]
    return not block.text[one.end() : two.start()].strip() and len(two["level"]) <= len(one["level"])


class DuplicateHeading(Rule):
    code, slug, severity = "ZL206", "duplicate-heading", "info"
    message = "The heading `{title}` stands on line {line} already; a reference to it is ambiguous"

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            if "#" not in block.text or _is_branchy(block):
                continue
            seen: dict[tuple[str, str], int] = {}
            path: list[str] = []
            for match in _HEADING.finditer(block.text):
                if block.kinds.codes[match.start()] != 0:
                    continue
                level, title = len(match["level"]), match["title"].strip().lower()
                path = [*path[: level - 1], *[""] * (level - 1 - len(path)), title]
                line = doc.source.line_col(block.part.to_file(match.start()))[0]
                first = seen.setdefault(("/".join(path[:-1]), title), line)
                if first != line:
                    yield self.in_block(block, *match.span(), title=match["title"].strip()[:40], line=first)


class LongSentence(Rule):
    code, slug, severity = "ZL207", "long-sentence", "info"
    message = "This sentence has {size} {unit}; one instruction a sentence is followed more often"

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            for sentence in _long_sentences(block, 200):
                text = sentence.text.replace(MASK, "")
                chinese = 0 if text.isascii() else len(_CJK.findall(text))
                words = len(text.split())
                if chinese > 180 or (chinese < 20 and words > 75):
                    size, unit = (chinese, "characters") if chinese > 180 else (words, "words")
                    yield self.in_block(block, sentence.start, sentence.end, size=size, unit=unit)


def _long_sentences(block: Block, size: int) -> Iterator[Sentence]:
    # No sentence runs on over a line's end.
    at = 0
    for line in block.prose.split("\n"):
        for sentence in block.sentences_in(at, at + len(line)) if len(line) >= size else ():
            if sentence.end - sentence.start >= size:
                yield sentence
        at += len(line) + 1


class OverScripted(Rule):
    code, slug, severity = "ZL208", "over-scripted", "info"
    message = "{count} numbered steps in a row; state the goal, the limits and what counts as done instead"
    limit = 25

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            best, count, first, previous = 0, 0, 0, ("", 0)
            for item in block.numbered:
                here = (item.indent, item.number)
                count = count + 1 if here == (previous[0], previous[1] + 1) else 1
                best, first = max((best, first), (count, item.start))
                previous = here
            if best > self.limit and not holds("success", block.prose):
                yield self.in_block(block, first, block.line_at(first).end, count=best)
