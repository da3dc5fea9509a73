"""Markup: tags, fences, brackets, tables that open and do not close."""

# ruff: noqa: D101, D102 - what a rule does is said in texts/, for people who read no code

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import ClassVar

from zlclient.prompts.parts import Tag

from ..block import Block
from ..diagnostic import Finding, Fix
from ..document import Document
from ..kinds import INSTRUCTION, MASK
from ..rule import Rule
from ..wordset import words_of
from ._text import fix_in

FAMILY = "structure"
_TAG = re.compile(
    r"<(?P<close>/?)(?P<name>[A-Za-z_\u4e00-\u9fff][\w.:\u4e00-\u9fff-]{0,60})(?P<rest>(?:\s[^<>\n]{0,300})?)(?P<void>/?)>"
)
_TAG_NAME = re.compile(r"</?([\w.:\u4e00-\u9fff-]+)")
_VOID = words_of("br hr img input meta link p li td tr th b i u s string number int str null none name")
_END = re.compile(r"\[/?(?:end|stop)(?![a-z])|\[/|#|\.\.\.", re.IGNORECASE)
_STEP = re.compile(r"\{%-?\s*(?P<word>if|elif|else|endif|for|endfor)\b")


class TagUnbalanced(Rule):
    code, slug = "ZL220", "tag-unbalanced"
    message = "<{slash}{name}> is never {what}"

    def check(self, doc: Document) -> Iterable[Finding]:
        for prompt in doc.prompts:
            texts = [block for block in prompt if "<" in block.text]
            for block in texts:
                yield from self._block(block, texts)

    def _block(self, block: Block, texts: list[Block]) -> Iterator[Finding]:
        opened: Counter[str] = Counter()
        places: dict[tuple[str, bool], list[re.Match[str]]] = {}
        for match in _TAG.finditer(block.markup):
            name = match["name"]
            if match["rest"].strip() and "=" not in match["rest"]:
                continue
            if match["void"] or name.lower() in _VOID or match["rest"].rstrip().endswith("/"):
                continue
            closing = bool(match["close"])
            places.setdefault((name, closing), []).append(match)
            opened[name] += -1 if closing else 1
        for name, balance in opened.items():
            if balance == 0 or _depends_on_branch(block, places, name):
                continue
            if _mentions(texts, name) > self._count(places, name):
                continue
            if balance > 0:
                match = self._unclosed(block, places, name)
                if match:
                    yield self.in_block(block, *match.span(), slash="", name=name, what="closed")
            elif not places.get((name, False)):
                match = places[name, True][0]
                if block.text[: match.start()].rstrip(" \t")[-1:] in ("\n", "") or MASK not in block.markup:
                    yield self.in_block(block, *match.span(), slash="/", name=name, what="opened")

    def _count(self, places: dict[tuple[str, bool], list[re.Match[str]]], name: str) -> int:
        return len(places.get((name, False), ())) + len(places.get((name, True), ()))

    def _unclosed(
        self, block: Block, places: dict[tuple[str, bool], list[re.Match[str]]], name: str
    ) -> re.Match[str] | None:
        """The tag that opens a section and lacks an end; a tag inside a sentence only mentions a name."""
        opens = [m for m in places[name, False] if not block.text[block.line_at(m.start()).start : m.start()].strip()]
        opens = [m for m in opens if _is_section(block, m)]
        closes = places.get((name, True), [])
        return opens[-1] if len(opens) > len(closes) else None


def _mentions(blocks: list[Block], name: str) -> int:
    """How often a tag is begun or ended anywhere in a prompt, whatever follows its name."""
    return sum(found == name for block in blocks if name in block.markup for found in _TAG_NAME.findall(block.markup))


def _is_section(block: Block, match: re.Match[str]) -> bool:
    """Whether a tag begins a section: alone on its line, or before a template's value, and not a blank to fill in."""
    after = block.text[match.end() : block.line_at(match.start()).end].strip()
    if block.kinds.codes[match.start()] != INSTRUCTION or ("_" in match["name"] and match["name"].isupper()):
        return False
    below = block.text[match.end() :].lstrip()
    # Where an end or a heading follows at once, the name stands for what is to be written there.
    return (not after and bool(below) and not _END.match(below)) or after.startswith("{{")


def _depends_on_branch(block: Block, places: dict[tuple[str, bool], list[re.Match[str]]], name: str) -> bool:
    """Whether the tag stands inside template branches, where counting proves nothing."""
    spans = _branches(block.part.tags, block.text)
    found = (*places.get((name, False), ()), *places.get((name, True), ()))
    return any(start <= match.start() < end for match in found for start, end in spans)


def _branches(tags: Iterable[Tag], text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    stack: list[int] = []
    for tag in tags:
        step = _STEP.match(text, tag.start) if tag.kind == "statement" else None
        if not step:
            continue
        if step["word"] in ("if", "for"):
            stack.append(tag.end)
        elif step["word"] in ("endif", "endfor") and stack:
            spans.append((stack.pop(), tag.start))
    return spans


class FenceUnclosed(Rule):
    code, slug, fix = "ZL221", "fence-unclosed", "safe"
    message = "This code fence is never closed, so the rest of the message reads as code"
    _pattern = re.compile(r"^(?P<indent>[ \t]{0,12})(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)$", re.MULTILINE)

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            if "```" not in block.text and "~~~" not in block.text:
                continue
            opening: re.Match[str] | None = None
            for match in self._pattern.finditer(block.text):
                if opening is None:
                    opening = match
                elif match["fence"].startswith(opening["fence"]) and not match["info"].strip():
                    opening = None
            if opening and (not _continues(doc, block)) and block.text[opening.end() :].strip():
                yield self.in_block(block, *opening.span(), _close(doc, block, opening))


def _continues(doc: Document, block: Block) -> bool:
    """Whether a literal goes on in the next one (concatenation), which may close the fence."""
    return doc.source.format == "python" and any(
        other is not block and other.part.name == block.part.name and "```" in other.text for other in doc.blocks
    )


def _close(doc: Document, block: Block, opening: re.Match[str]) -> Fix | None:
    body = block.text.rstrip()
    line = "\n" + opening["indent"] + opening["fence"]
    return fix_in(doc, block, len(body) - 1, len(body), body[-1] + line, "Close it at the end") if body else None


class UnpairedBracket(Rule):
    code, slug, severity = "ZL222", "unpaired-bracket", "info"
    message = "`{char}` has no partner in this paragraph"
    _pairs: ClassVar[dict[str, str]] = {"【": "】", "「": "」", "《": "》", "“": "”", "『": "』"}

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            if not any(char in block.text for pair in self._pairs.items() for char in pair):
                continue
            for start, end in block.paragraphs:
                text = block.markup[start:end]
                for left, right in self._pairs.items():
                    if text.count(left) == text.count(right):
                        continue
                    if left == "“" and text.count(left) + text.count(right) > 1:
                        continue  # keyboards produce “…“ and ”…” alike
                    char = left if text.count(left) > text.count(right) else right
                    at = start + (text.rfind(char) if char == left else text.find(char))
                    if block.kinds.codes[at] in (0, 2) and not any(t.kind == "statement" for t in block.part.tags):
                        yield self.in_block(block, at, at + 1, char=char)


class UnevenTable(Rule):
    code, slug = "ZL223", "uneven-table"
    message = "This row has {count} cells, the table's head {head}"
    _rule = re.compile(r"^[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-{2,}:?[ \t]*)*\|?[ \t]*$")

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            if "|" not in block.text or "--" not in block.text:
                continue
            lines = block.text.split("\n")
            at = 0
            head = 0
            for number, line in enumerate(lines):
                if self._rule.match(line) and number and "|" in lines[number - 1] and "|" in line:
                    head = _cells(lines[number - 1])
                elif head and "|" in line and line.strip().startswith("|"):
                    count = _cells(line)
                    if count != head and "{" not in line and "..." not in line:
                        yield self.in_block(block, at, at + len(line), count=count, head=head)
                elif "|" not in line:
                    head = 0
                at += len(line) + 1


def _cells(line: str) -> int:
    return len(re.sub(r"\\\||`[^`]*`", "x", line).strip().strip("|").split("|"))


class MissingTag(Rule):
    code, slug = "ZL224", "missing-tag"
    message = "The prompt speaks of the text in <{name}>, and there is no <{name}>"
    _pointers = ("tag below", "tags below", "tag above", "tags above", "标签的", "标签中的", "标签内的")
    _pattern = re.compile(
        r"(?:\b(?:inside|within|enclosed in|wrapped in|delimited by|provided in|given in"
        r"|contained in)(?: the)? |(?:位于|包含在|放在|写在))"
        r"<(?P<name>[A-Za-z_][\w-]{0,40})>(?:</(?P=name)>)?\s*(?:(?:XML )?tags? (?:below|above)|标签(?:中|内)?的)",
        re.IGNORECASE,
    )

    def check(self, doc: Document) -> Iterable[Finding]:
        if doc.source.format == "python":
            return
        for prompt in doc.prompts:
            whole = "".join(block.text for block in prompt)
            low = whole.lower() if "<" in whole else ""
            if not any(words in low for words in self._pointers):
                continue
            for block in prompt:
                for match in self._pattern.finditer(block.shown):
                    if f"</{match['name']}>" not in whole.replace(match[0], ""):
                        yield self.in_block(block, *match.span(), name=match["name"])
