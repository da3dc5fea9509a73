"""A part of a prompt as rules see it: its text, what of it instructs, sentences, paragraphs, languages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from zlclient.prompts.parts import Part, Span

from .kinds import CODE, EXAMPLE, INSTRUCTION, MASK, TAG, Kinds, classify
from .lexicon import latin_words, lowered
from .wordset import words_of

# One class of first characters, then the three cases: a choice of three patterns is searched far more slowly.
_SENTENCE_END = re.compile(r"[.!?。！？；\n](?:(?<=[.!?])[\"')\]]*(?=\s)|(?<=[!?。！？；])[。！？；!?]*|(?<=\n))")
_NOTHING = MASK + " \t\r\n"
_BLANK = re.compile(r"\n[ \t]*(?:\r?\n[ \t]*)+")
_ITEM = re.compile(r"\n(?P<indent>[ \t]*)(?P<number>\d{1,3})[.)、](?!\d)(?:[ \t]*(?P<text>\S))?")
_CJK = re.compile(r"[\u4e00-\u9fff]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_ENGLISH = words_of("the and to of is you your in that for with be this are it if not on as do from a an or")
_OTHER = words_of(
    "und der die das nicht ist ein eine zu les des est une pas dans que el los las para una por "
    "con não il della le la en un et du mit auf den von sie wie être você são niet het een"
)


class Sentence(NamedTuple):
    """A sentence of instruction: `text` is masked where it quotes; offsets are of the block's text."""

    text: str
    start: int
    end: int


class Item(NamedTuple):
    """A numbered line: where it begins, its indentation, its digits, and the end of its first character of text."""

    start: int
    indent: str
    digits: Span
    number: int
    end: int | None


@dataclass(frozen=True)
class Block:
    """One part. `prose` is its text with all but instructions masked, `markup` with code and template tags masked."""

    part: Part
    prompt: int
    """Which prompt of the file it belongs to: blocks of one conversation share the number."""

    @property
    def text(self) -> str:
        """The part's own text."""
        return self.part.text

    @property
    def role(self) -> str | None:
        """The part's role."""
        return self.part.role

    @cached_property
    def kinds(self) -> Kinds:
        """The kind of each character."""
        return classify(self.part)

    @cached_property
    def prose(self) -> str:
        """Instructions only, at their offsets."""
        return self.kinds.masked(INSTRUCTION)

    @cached_property
    def markup(self) -> str:
        """All but code and template tags, at their offsets."""
        return self.kinds.masked(*(kind for kind in range(6) if kind not in (CODE, TAG)))

    @cached_property
    def shown(self) -> str:
        """Instructions and examples, at their offsets."""
        return self.kinds.masked(INSTRUCTION, EXAMPLE)

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """The sentences of instruction, without those that are masked as a whole."""
        return tuple(self.sentences_in(0, len(self.text)))

    def sentences_in(self, low: int, high: int) -> list[Sentence]:
        """The sentences of the lines from `low` to `high`: none runs on over a line's end."""
        prose = self.prose
        found: list[Sentence] = []
        at = low
        for end in [*[match.end() for match in _SENTENCE_END.finditer(prose, low, high)], high]:
            piece = prose[at:end]
            if piece.strip(_NOTHING):
                text = piece.lstrip()
                start = end - len(text)
                text = text.rstrip()
                found.append(Sentence(text, start, start + len(text)))
            at = end
        return found

    @cached_property
    def numbered(self) -> tuple[Item, ...]:
        """The lines of instruction that begin with a number."""
        # A break before the text gives every line one: a pattern that opens with it is found at once.
        return tuple(_item(match) for match in _ITEM.finditer("\n" + self.prose))

    def sentence_at(self, offset: int) -> Sentence | None:
        """The sentence around an offset of the text."""
        for sentence in self.sentences_in(*self.line_at(offset)):
            if sentence.start <= offset < sentence.end:
                return sentence
        return None

    @cached_property
    def paragraphs(self) -> tuple[Span, ...]:
        """Spans of paragraphs, blank lines between them."""
        spans: list[Span] = []
        at = 0
        for match in _BLANK.finditer(self.text):
            spans.append(Span(at, match.start()))
            at = match.end()
        spans.append(Span(at, len(self.text)))
        return tuple(span for span in spans if self.text[span.start : span.end].strip())

    @cached_property
    def chinese(self) -> int:
        """How many Chinese characters the instructions have."""
        return 0 if self.prose.isascii() else len(_CJK.findall(self.prose))

    @cached_property
    def languages(self) -> frozenset[str]:
        """ "zh" and "en", where the instructions hold enough of it; word lists are only used for their language."""
        prose = self.prose
        found: set[str] = set()
        chinese = self.chinese
        if chinese >= 2 and not _KANA.search(prose):
            found.add("zh")
        words = latin_words(lowered(prose))
        if words and len(words) * 6 >= chinese:
            if _is_english(words):
                found.add("en")
        elif len(words) >= 3 and chinese and sum(map(_ENGLISH.__contains__, words)) >= 2:
            found.add("en")
        return frozenset(found)

    def span(self, start: int, end: int) -> Span:
        """The file's span of `text[start:end]`."""
        return self.part.span(start, end)

    def line_at(self, offset: int) -> Span:
        """The line of `text` around `offset`, without its break."""
        start = self.text.rfind("\n", 0, offset) + 1
        end = self.text.find("\n", offset)
        return Span(start, len(self.text) if end < 0 else end)


def _item(match: re.Match[str]) -> Item:
    start, end = match.span("number")
    after = match.end() - 1 if match["text"] else None
    return Item(match.start(), match["indent"], Span(start - 1, end - 1), int(match["number"]), after)


def _is_english(words: list[str]) -> bool:
    if _OTHER.isdisjoint(words) and not _ENGLISH.isdisjoint(words):
        return True
    other = sum(map(_OTHER.__contains__, words))
    english = sum(map(_ENGLISH.__contains__, words))
    return english > other or (english == other and all(word.isascii() for word in words))
