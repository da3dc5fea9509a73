"""Which characters of a prompt's text instruct, and which only show, quote or carry data. Positions are kept.

A content rule that reads a quoted sentence, a code sample, a worked example or a pasted document as an instruction is
wrong; so each character gets a kind, and rules see a text of the same length in which all else is masked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from zlclient.prompts.parts import Part

from .lexicon import lowered
from .wordset import words_of

INSTRUCTION, EXAMPLE, QUOTED, CODE, DATA, TAG = range(6)
NAMES: Final = ("instruction", "example", "quoted", "code", "data", "tag")
# A control character that no language uses: it parts words, and what is masked in ASCII stays ASCII, and so fast.
MASK: Final = "\x1a"

_FENCE = re.compile(r"^[ \t]{0,12}(?:>[ \t]?)?(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)$", re.MULTILINE)
# Patterns that are searched in the whole text begin with a letter or sign of their own, not with a look behind: so they
# are found many times faster. For the same reason there is a pattern for each character that opens a quotation.
_INLINE_CODE = re.compile(r"(`(?<!``)`?)(?!`)[^`\n]{1,400}?\1(?!`)")
_QUOTED: Final = {
    '"': re.compile(r"\"[^\"\n]{1,3000}\""),
    "“": re.compile(r"“[^”\n]{1,3000}”"),
    "「": re.compile(r"「[^」\n]{1,400}」"),
    "『": re.compile(r"『[^』\n]{1,400}』"),
    "《": re.compile(r"《[^》\n]{1,100}》"),
    "'": re.compile(r"'(?<![\w']')(?=[^\s'])[^'\n]{1,200}(?<=[^\s'])'(?![\w'])"),
    "‘": re.compile(r"‘[^’\n]{1,200}’(?!\w)"),
}
_TRIPLE = re.compile(r"\"\"\"[^\"]{1,20000}?\"\"\"|'''[^']{1,20000}?'''")
_URL = re.compile(r"http(?<!\whttp)s?://[^\s<>\"'）】」]+")
_INSIDE_ASIDE = r"(?:e\.g\.|i\.e\.|for example|for instance|such as|例如|比如|譬如)[^()（）\n]{0,300}[)）]"
_AFTER_ASIDE = r"(?=[^\n])[^\n。]{0,200}?(?=\.\s|[。\n]|$)"
_ASIDE = re.compile(
    rf"\({_INSIDE_ASIDE}|（{_INSIDE_ASIDE}|e(?<!\we)\.g\.{_AFTER_ASIDE}"
    rf"|f(?<!\wf)or (?:example|instance),{_AFTER_ASIDE}"
    rf"|例如[，：]?{_AFTER_ASIDE}|比如[，：]?{_AFTER_ASIDE}|譬如{_AFTER_ASIDE}"
)
_ASIDE_WORDS = ("e.g.", "i.e.", "for example", "for instance", "(such as", "（such as", "例如", "比如", "譬如")
_EXAMPLE_TITLE = re.compile(
    r"(?:[\w'-]{1,20}[ \t]){0,4}(?:examples?|samples?|few[- ]shot|demonstrations?)(?:[ \t]#?\w{1,12}){0,3}"
    r"|.{0,12}(?:示例|样例|例子|范例|举例|案例).{0,6}",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"^[ \t]{0,3}(?:(?P<level>#{1,6})[ \t]*(?P<title>[^\n]*?)|(?P<bold>\*\*[^*\n]{1,80}\*\*[:：]?))[ \t]*$"
)
_EXAMPLE_NUMBER = re.compile(r"[ \t*]*(?:Example|Sample|示例|样例|例)[ \t]?\d{1,2}\b[^\n]{0,60}$")
_LEAD_IN = re.compile(
    r"(?:\b(?:for example|for instance|examples?|sample)\b[^\n.]{0,60}|(?:例如|比如|示例|样例|举例|例子)[^\n。]{0,20})"
    r"[:：][ \t*]*$",
    re.IGNORECASE,
)
_EXAMPLE_TAG = re.compile(
    r"<(?P<name>(?:good_|bad_|few_shot_)?examples?(?:[_-]?\w{1,20})?|sample(?:s|_\w{1,20})?|shots?|demo|示例|例子)(?:\s[^<>\n]{0,200})?>",
    re.IGNORECASE,
)
_DATA_TAG = re.compile(
    r"<(?P<name>documents?|docs?|article|transcript|email|passage|sources?|quotes?|data|diff|logs?|search_results|code"
    r"|conversation|history|文档|资料|原文|数据)(?:\s[^<>\n]{0,200})?>",
    re.IGNORECASE,
)
_TABLE_ROW = re.compile(r"^[ \t]*\|.*\|[ \t]*$")
_JSON_LINE = re.compile(
    r"^[ \t]*(?:[\"'“][^\"'”\n]{0,80}[\"'”][ \t]*[:：].*|[\[\]{}][\[\]{}(),;\s]*|\"[^\"\n]*\",?)[ \t]*$"
)
_CALL_LINE = re.compile(
    r"^[ \t]*(?:\$ |>>> |\w{1,40}\([^()\n]*\)[;:]?[ \t]*$|(?:import|from|def|class|return|print)\b.*[:()=])"
)
# What a line must begin or end with to be anything but an instruction, where nothing above it says so.
_TELLING_START = frozenset("#*>|\"'“[]{}$ES示样例")
_TELLING_END = frozenset(":：*);")
# A speaker's turn goes on until the next one where it begins below its label.
_SPEAKERS = words_of("user human person assistant ai bot chatgpt gpt gpt-4 claude gemini 用户 助手 客户 客服")
_LABELS = _SPEAKERS | words_of(
    "agent customer q a question answer input submission output query response thought "
    "action observation 问 答 问题 答案 输入 输出 思考 观察"
)
_AROUND_LABEL = " \t\r\xa0\u3000>*-0123456789０１２３４５６７８９"
_TURN = re.compile(
    rf"^[ \t>*-]{{0,6}}(?:\*\*)?(?P<label>{'|'.join(sorted(_LABELS))})\s?\d{{0,3}}(?:\*\*)?[ \t]*[:：](?P<rest>.*)$",
    re.IGNORECASE,
)


class Kinds:
    """The kind of every character of a text, as bytes; later marks win over earlier ones."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.codes = bytearray(len(text))

    def mark(self, kind: int, start: int, end: int) -> None:
        """Give `kind` to the characters from `start` to `end`."""
        if end > start:
            self.codes[start:end] = bytes((kind,)) * (end - start)

    def mark_all(self, kind: int, pattern: re.Pattern[str], text: str | None = None) -> None:
        """Give `kind` to every match of `pattern` that begins in an instruction; `text` stands for the own one."""
        codes = self.codes
        for match in pattern.finditer(self.text if text is None else text):
            if codes[match.start()] == INSTRUCTION:
                self.mark(kind, *match.span())

    def masked(self, *kept: int) -> str:
        """The text with every character of another kind masked; line breaks stay."""
        pieces: list[str] = []
        at = 0
        hides = self.codes.translate(_hiding(kept))
        start = hides.find(1)
        while start >= 0:
            end = hides.find(0, start)
            end = len(hides) if end < 0 else end
            hidden = self.text[start:end]
            pieces.append(self.text[at:start])
            pieces.append(
                "\n".join([MASK * len(line) for line in hidden.split("\n")]) if "\n" in hidden else MASK * (end - start)
            )
            at = end
            start = hides.find(1, end)
        if not pieces:
            return self.text
        pieces.append(self.text[at:])
        return "".join(pieces)

    def runs(self) -> list[tuple[str, int, int]]:
        """(kind's name, start, end) of each run, in order."""
        found = re.finditer(rb"(?s)(.)\1*", bytes(self.codes))
        return [(NAMES[match[0][0]], *match.span()) for match in found]


@cache
def _hiding(kept: tuple[int, ...]) -> bytes:
    """The table that makes each code 0 if it is `kept`, else 1."""
    return bytes(code not in kept for code in range(256))


def classify(part: Part) -> Kinds:
    """The kinds of a part's characters."""
    kinds = Kinds(part.text)
    text = part.text
    if part.role in ("assistant", "tool"):
        kinds.mark(EXAMPLE, 0, len(text))
    else:
        _by_line(kinds, text)
        if "<" in text:
            _by_tag(kinds, text)
            _comments(kinds, text)
        _inline(kinds, text)
    for start, end in _template_tags(part):
        kinds.mark(TAG, start, end)
    return kinds


def _template_tags(part: Part) -> Iterable[tuple[int, int]]:
    return ((tag.start, tag.end) for tag in part.tags)


def _inline(kinds: Kinds, text: str) -> None:
    if "`" in text:
        kinds.mark_all(CODE, _INLINE_CODE)
    if '"""' in text or "'''" in text:
        kinds.mark_all(QUOTED, _TRIPLE)
    for opening, pattern in _QUOTED.items():
        if opening in text:
            kinds.mark_all(QUOTED, pattern)
    if "://" in text:
        kinds.mark_all(DATA, _URL)
    low = lowered(text)
    if any(word in low for word in _ASIDE_WORDS):
        kinds.mark_all(EXAMPLE, _ASIDE, low)


def _comments(kinds: Kinds, text: str) -> None:
    start = text.find("<!--")
    while start >= 0 and (end := text.find("-->", start)) >= 0:
        kinds.mark(CODE, start, end + 3)
        start = text.find("<!--", end + 3)


def _by_tag(kinds: Kinds, text: str) -> None:
    for pattern, kind in ((_EXAMPLE_TAG, EXAMPLE), (_DATA_TAG, DATA)):
        position = 0
        while match := pattern.search(text, position):
            position = match.end()
            if kinds.codes[match.start()] != INSTRUCTION:
                continue
            close = text.find(f"</{match['name']}>", position)
            if close >= 0:
                kinds.mark(kind, position, close)
                position = close


def _by_line(kinds: Kinds, text: str) -> None:
    """Fences, example sections, transcripts, tables, JSON: what is told by whole lines."""
    lines = text.split("\n")
    state = _Lines(kinds, _turns(lines))
    has_fences = "```" in text or "~~~" in text
    at = 0
    for line in lines:
        stripped = line.strip()
        # Most lines only instruct, and are passed over at once.
        if (
            state.is_busy
            or (stripped and (stripped[0] in _TELLING_START or stripped[-1] in _TELLING_END or "=" in stripped))
            or (has_fences and ("```" in line or "~~~" in line))
        ):
            state.line(line, stripped, at)
        at += len(line) + 1


def _turns(lines: list[str]) -> frozenset[str]:
    """The lines that begin a turn (user: … assistant: …) where those alternate, so that they are a transcript."""
    colons = [line for line in lines if ":" in line or "：" in line]
    turns = [match for line in colons if _may_label(line) and (match := _TURN.match(line))]
    labels = [match["label"].lower() for match in turns if match["rest"].strip()]
    alternate = len(set(labels)) >= 2 and len(labels) >= 3
    # `Input:` alone on its line may also ask for an input; four such lines are examples.
    alternate = alternate or (len(turns) >= 4 and len({match["label"].lower() for match in turns}) >= 2)
    return frozenset(match.string for match in turns) if alternate else frozenset()


def _may_label(line: str) -> bool:
    # A third of the time of the pattern.
    return line.partition(":")[0].partition("：")[0].strip(_AROUND_LABEL).lower() in _LABELS


class _Lines:
    def __init__(self, kinds: Kinds, turns: frozenset[str]) -> None:
        self.kinds = kinds
        self.turns = turns
        self.fence = ""
        self.example_level = 0
        self.in_lead = False
        self.lead_lines = 0
        self.is_turn = self.is_long_turn = False
        self.is_busy = bool(turns)
        """Whether a line can be anything but an instruction though nothing in it says so."""

    def line(self, line: str, stripped: str, start: int) -> None:
        self._line(line, stripped, start, start + len(line))
        self.is_busy = bool(self.fence or self.example_level or self.in_lead or self.turns)

    def _line(self, line: str, stripped: str, start: int, end: int) -> None:
        if (self.fence or "```" in line or "~~~" in line) and self._in_fence(line, start, end):
            return
        if not stripped:
            self.is_turn = self.is_turn and self.is_long_turn
            if self.in_lead and self.lead_lines:
                self.in_lead = False
            return
        heading = _HEADING.match(line) if stripped[0] in "#*" else None
        if heading:
            self._heading(heading, start, end)
            return
        kind = self._kind(line, stripped)
        if kind != INSTRUCTION:
            self.kinds.mark(kind, start, end)
        elif stripped[0] in "ES示样例" and _EXAMPLE_NUMBER.match(line):
            self.kinds.mark(EXAMPLE, start, end)
            self.in_lead, self.lead_lines = True, 0
        elif stripped[-1] in ":：*" and _LEAD_IN.search(line):
            self.in_lead, self.lead_lines = True, 0

    def _in_fence(self, line: str, start: int, end: int) -> bool:
        fence = _FENCE.match(line)
        if self.fence:
            self.kinds.mark(CODE, start, end)
            if fence and fence["fence"].startswith(self.fence) and not fence["info"].strip():
                self.fence = ""
            return True
        if fence and (fence["fence"][0] == "~" or "`" not in fence["info"]) and self._closes(fence["fence"], end):
            self.kinds.mark(CODE, start, end)
            self.fence = fence["fence"]
            return True
        return False

    def _closes(self, fence: str, end: int) -> bool:
        # An unclosed fence must not hide the rest of the prompt from the rules; it is a finding of its own.
        return (
            re.compile(rf"^[ \t]{{0,12}}(?:>[ \t]?)?{fence}+[ \t]*\r?$", re.MULTILINE).search(
                self.kinds.text, min(end + 1, len(self.kinds.text))
            )
            is not None
        )

    def _heading(self, heading: re.Match[str], start: int, end: int) -> None:
        level = len(heading["level"]) if heading["level"] else 7
        title = (heading["title"] if heading["level"] else heading["bold"]) or ""
        self.in_lead = self.is_turn = False
        if self.example_level and level > self.example_level:
            self.kinds.mark(EXAMPLE, start, end)
            return
        self.example_level = level if _EXAMPLE_TITLE.fullmatch(title.strip(" *#:：")) else 0

    def _kind(self, line: str, stripped: str) -> int:
        if self.example_level:
            return EXAMPLE
        if self.in_lead:
            self.lead_lines += 1
            return EXAMPLE
        if stripped[0] == ">" and stripped[:2] in ("> ", ">"):
            return QUOTED
        if stripped[0] == "|" and _TABLE_ROW.match(line):
            return DATA
        if stripped[0] in "\"'“[]{}" and _JSON_LINE.match(line):
            return DATA
        if (stripped[-1] in ":);" or stripped[0] in "$>" or "=" in stripped) and _CALL_LINE.match(line):
            return CODE
        if self.turns:
            if line in self.turns:
                self.is_turn = True
                self.is_long_turn = stripped.strip("*:： ").lower() in _SPEAKERS
            return EXAMPLE if self.is_turn else INSTRUCTION
        return INSTRUCTION
