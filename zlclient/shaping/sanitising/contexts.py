"""The main pass: each suspicious code point, judged by the characters that stand beside it in the result.

Decisions run from left to right. What stands before is taken from the result, what stands after from the text with
everything that is dropped in any case already gone. A code point is kept only for the sake of neighbours that are
never dropped themselves, so what was kept once is kept again: the pass is idempotent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from . import code_points, scan
from .code_points import HAN, JOINING, KEYCAP, MODIFIER, PICTOGRAPHIC, RTL, UNSPACED, VARIATION_BASE, Policy
from .edits import Edit

BLACK_FLAG = "\U0001f3f4"
_FLAGS = tuple(
    "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f" for region in ("gbeng", "gbsct", "gbwls")
)
_BREAK = "[\n\r\x0b\x0c\x85\u2028\u2029]"
_BIDI = "[\u202a-\u202e\u2066-\u2069]"
_POP_EMBEDDING, _POP_ISOLATE = "\u202c", "\u2069"
_OVERRIDES = "\u202d\u202e"
_CLOSES = dict.fromkeys("\u202a\u202b\u202d\u202e", _POP_EMBEDDING) | dict.fromkeys("\u2066\u2067\u2068", _POP_ISOLATE)


def judge(text: str, positions: Iterable[int], policy: Policy, context: Context | None = None) -> list[Edit]:
    """The edits at `positions`, the ascending offsets of suspicious code points.

    Positions may be left out if nothing within two characters of them changes; that is how the vectorised pass hands
    over only what needs a closer look.
    """
    number, keep, rules = policy.number, policy.keep, policy.rules
    context = context or Context(text, policy)
    edits: list[Edit] = []
    end = -1
    before = before_that = ""
    for at in positions:
        character = text[at]
        if at != end:
            before_that = before if at == end + 1 else text[at - 2 : at - 1] if at > 1 else ""
            before = text[at - 1] if at else ""
        end = at + 1
        rule = number[ord(character)]
        name = keep[rule]
        if name is None:
            new = policy.written(rule, text, at)
        elif _TESTS[name](context, at, before, before_that):
            new = character
        else:
            new = ""
        if new != character:
            edits.append(Edit(at, end, new, rules[rule].name))
        if new:
            before_that, before = (before, new) if len(new) == 1 else (new[-2], new[-1])
    return edits


class Context:
    """The context tests that rules name, over one text.

    Each says whether the code point at `at` stays, with `before_that` and `before` as the last characters kept.
    """

    def __init__(self, text: str, policy: Policy, has_rtl: bool | None = None) -> None:
        self._text, self._policy = text, policy
        self._properties = code_points.properties()
        self._has_rtl = has_rtl
        self._flag_end = -1
        self._paragraph_end = -1
        self._balanced: frozenset[int] = frozenset()

    def in_text_with_rtl(self, at: int = 0, before: str = "", before_that: str = "") -> bool:
        """Whether any character of the text is written from right to left."""
        del at, before, before_that
        if self._has_rtl is None:
            self._has_rtl = scan.has_rtl(self._text)
        return self._has_rtl

    def after_joining_script(self, at: int, before: str, before_that: str) -> bool:
        """After a character of a cursive or Indic script."""
        del at, before_that
        return bool(self._is(before) & JOINING)

    def in_emoji(self, at: int, before: str, before_that: str) -> bool:
        """Between two pictographs, the first with at most one modifier."""
        base = self._is(before)
        if base & MODIFIER:
            base = self._is(before_that)
        return bool(base & PICTOGRAPHIC and self._is(self._after(at)) & PICTOGRAPHIC)

    def in_emoji_or_after_joining_script(self, at: int, before: str, before_that: str) -> bool:
        """Either of the two."""
        return bool(self._is(before) & JOINING) or self.in_emoji(at, before, before_that)

    def between_unspaced(self, at: int, before: str, before_that: str) -> bool:
        """Between two characters of scripts that are written without spaces."""
        del before_that
        return bool(self._is(before) & UNSPACED and self._is(self._after(at)) & UNSPACED)

    def after_emoji_base(self, at: int, before: str, before_that: str) -> bool:
        """After a pictograph or the first character of a keycap."""
        del at, before_that
        return bool(self._is(before) & (PICTOGRAPHIC | KEYCAP))

    def changes_presentation(self, at: int, before: str, before_that: str) -> bool:
        """Where the selector asks for the other picture than the character has by itself."""
        del before_that
        as_emoji = self._text[at] == "\ufe0f"
        if self._is(before) & KEYCAP:
            return as_emoji and self._after(at) == "\u20e3"
        already = before in code_points.characters("emoji_by_default")
        return bool(self._is(before) & PICTOGRAPHIC) and already is not as_emoji

    def after_han(self, at: int, before: str, before_that: str) -> bool:
        """After an ideograph."""
        del at, before_that
        return bool(self._is(before) & HAN)

    def after_variation_base(self, at: int, before: str, before_that: str) -> bool:
        """After a character with standardized variants."""
        del at, before_that
        return bool(self._is(before) & VARIATION_BASE)

    def in_subdivision_flag(self, at: int, before: str, before_that: str) -> bool:
        """In the tags of the flags of England, Scotland and Wales."""
        del before_that
        if at >= self._flag_end and before == BLACK_FLAG and self._text.startswith(_FLAGS, at):
            self._flag_end = at + len(_FLAGS[0])
        return at < self._flag_end

    def next_to_jamo(self, at: int, before: str, before_that: str) -> bool:
        """Beside a Hangul letter; a lone final consonant is spelt with both fillers before it."""
        del before_that
        jamo = code_points.characters("jamo")
        if before in jamo or self._after(at) in jamo:
            return True
        return self._text.startswith("\u115f\u1160", at) and self._text[at + 2 : at + 3] in jamo

    def after_mongolian(self, at: int, before: str, before_that: str) -> bool:
        """After a Mongolian letter; the vowel separator also after a letter's selector."""
        selected = self._text[at] == "\u180e" and "\u180b" <= before <= "\u180f"
        return (before_that if selected else before) in code_points.characters("mongolian")

    def balanced_in_rtl_paragraph(self, at: int, before: str, before_that: str) -> bool:
        """One of a pair inside a paragraph that reads from right to left."""
        del before, before_that
        if not self.in_text_with_rtl():
            return False
        if at >= self._paragraph_end:
            start = max(self._paragraph_end, 0)
            breaks = re.compile(_BREAK)
            found = breaks.search(self._text, start)
            while found and found.start() < at:
                start = found.end()
                found = breaks.search(self._text, start)
            self._paragraph_end = found.start() if found else len(self._text)
            self._balanced = self._balanced_in(start, self._paragraph_end)
        return at in self._balanced

    def _is(self, character: str) -> int:
        return self._properties[ord(character)] if character else 0

    def _after(self, at: int) -> str:
        """The next character of the result, or a code point that is judged by its own context."""
        text, policy = self._text, self._policy
        for index in range(at + 1, len(text)):
            character = text[index]
            rule = policy.number[ord(character)]
            if not rule or policy.keep[rule] is not None:
                return character
            new = policy.written(rule, text, index)
            if new:
                return new[0]
        return ""

    def _balanced_in(self, start: int, end: int) -> frozenset[int]:
        """Offsets of the embeddings and isolates of a paragraph that pair up as UAX #9 (BD9 to BD11) pairs them."""
        if not self._reads_right_to_left(start, end):
            return frozenset()
        balanced: set[int] = set()
        unclosed: list[tuple[int, str]] = []
        isolates = 0
        for found in re.compile(_BIDI).finditer(self._text, start, end):
            at, character = found.start(), found.group()
            if character in _CLOSES:
                unclosed.append((at, character))
                isolates += _CLOSES[character] == _POP_ISOLATE
            elif character == _POP_ISOLATE and isolates:
                isolates -= 1
                opener, kind = unclosed.pop()
                while _CLOSES[kind] != _POP_ISOLATE:  # an isolate closes the embeddings left open inside it
                    opener, kind = unclosed.pop()
                balanced |= {opener, at}
            elif character == _POP_EMBEDDING and unclosed and _CLOSES[unclosed[-1][1]] == character:
                opener, kind = unclosed.pop()
                if kind not in _OVERRIDES:
                    balanced |= {opener, at}
        return frozenset(balanced)

    def _reads_right_to_left(self, start: int, end: int) -> bool:
        """By the first strong character (UAX #9, P2), those inside isolates included."""
        policy = self._policy
        for at in range(start, end):
            character = self._text[at]
            rule = policy.number[ord(character)]
            if rule:
                if policy.keep[rule] is not None:
                    continue
                character = policy.written(rule, self._text, at)
            if character and self._is(character[0]) & RTL:
                return True
            if character.isalpha():
                return False
        return False


_TESTS: dict[str, Callable[[Context, int, str, str], bool]] = {
    "text-with-rtl": Context.in_text_with_rtl,
    "joining-script": Context.after_joining_script,
    "emoji-sequence": Context.in_emoji,
    "emoji-or-joining-script": Context.in_emoji_or_after_joining_script,
    "word-boundary-script": Context.between_unspaced,
    "emoji-base": Context.after_emoji_base,
    "emoji-presentation": Context.changes_presentation,
    "han": Context.after_han,
    "variation-base": Context.after_variation_base,
    "subdivision-flag": Context.in_subdivision_flag,
    "next-to-jamo": Context.next_to_jamo,
    "mongolian": Context.after_mongolian,
    "balanced-in-rtl-paragraph": Context.balanced_in_rtl_paragraph,
}
