"""What stands around a value in a template, and what keeps a value inside it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from .segments import Fence

_ELEMENT = re.compile(r"<(?P<close>/?)(?P<name>[A-Za-z_\u4e00-\u9fff][\w.-]*)(?P<rest>[^<>\n]*)>")
_CODE = re.compile(r"^[ \t]*(`{3,}|~{3,})", re.MULTILINE)
_QUOTES = re.compile(r'"""')
_OPEN_ATTRIBUTE = re.compile(r"<[A-Za-z_][\w.-]*\s[^<>]*$")
# Elements that hold the author's own words: a value among them is not fenced by them.
_NOT_FENCES = frozenset(
    ["instructions", "instruction", "rules", "task", "system", "prompt", "format", "output", "example", "examples"]
)
_OWN_WORDS = 200


@dataclass(frozen=True)
class _Pair:
    kind: str
    name: str
    start: int
    end: int


class FenceMap:
    """Fences of a template's text. `masked` has the template's tags blanked, so that only literal text counts."""

    def __init__(self, text: str, tags: Iterable[tuple[int, int]]) -> None:
        pieces: list[str] = []
        at = 0
        for start, end in tags:
            pieces += [text[at:start], "\0" * (end - start)]
            at = end
        self._masked = "".join(pieces) + text[at:]
        self._pairs = sorted(_pairs(self._masked), key=lambda pair: pair.start)
        self._starts = [pair.start for pair in self._pairs]

    def at(self, start: int, end: int) -> Fence:
        """The fence around the tag at [start, end)."""
        masked = self._masked
        line_start = masked.rfind("\n", 0, start) + 1
        line_end = masked.find("\n", end)
        line_end = len(masked) if line_end < 0 else line_end
        if _OPEN_ATTRIBUTE.search(masked[max(line_start, start - 200) : start]):
            return Fence("attribute")
        is_block = not masked[line_start:start].strip() and not masked[end:line_end].strip()
        # Innermost first: the latest opening that is still open here.
        for index in range(bisect_right(self._starts, start) - 1, max(-1, bisect_right(self._starts, start) - 51), -1):
            pair = self._pairs[index]
            if pair.end >= end:
                kind = "tag" if pair.kind == "tag" else "code" if pair.kind == "code" else "quote"
                return Fence(kind, pair.name, is_block)
        return Fence("none", "", is_block)


def _pairs(masked: str) -> list[_Pair]:
    pairs: list[_Pair] = []
    opened: list[tuple[str, int]] = []
    for match in _ELEMENT.finditer(masked):
        # `<doc>` in backticks only speaks of the element.
        if match["rest"].endswith("/") or masked[max(0, match.start() - 1) : match.start()] == "`":
            continue
        if not match["close"]:
            opened.append((match["name"], match.end()))
        elif any(name == match["name"] for name, _ in opened[-20:]):
            while opened:
                name, start = opened.pop()
                if name == match["name"]:
                    if _is_fence(name, masked[start : match.start()]):
                        pairs.append(_Pair("tag", name, start, match.start()))
                    break
    fences = list(_CODE.finditer(masked))
    for first, second in zip(fences[::2], fences[1::2], strict=False):
        if first[1][0] == second[1][0]:
            pairs.append(_Pair("code", first[1][0] * 3, first.end(), second.start()))
    quotes = list(_QUOTES.finditer(masked))
    pairs += [
        _Pair("quote", '"""', first.end(), second.start())
        for first, second in zip(quotes[::2], quotes[1::2], strict=False)
    ]
    return pairs


def _is_fence(name: str, inside: str) -> bool:
    own_words = len(_ELEMENT.sub("", inside).replace("\0", "").strip())
    return name.lower() not in _NOT_FENCES and own_words <= _OWN_WORDS


def keep_inside(text: str, fence: Fence) -> str:
    """`text` with whatever would end its fence early made harmless, and nothing else changed."""
    if fence.kind == "tag":
        return re.sub(rf"<(?=\s*/?\s*{re.escape(fence.name)}\b)", "&lt;", text, flags=re.IGNORECASE)
    if fence.kind in ("code", "quote"):
        return text.replace(fence.name, "'''")
    if fence.kind == "attribute":
        text = text.replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;").replace("'", "&#39;")
        return re.sub(r"\s+", " ", text)
    return text


def wrap(text: str, source: str, fence: Fence) -> str:
    """`text` in an element named after its input; on lines of its own where it has several or stands alone."""
    name = re.sub(r"[^\w.-]", "_", source) or "value"
    inside = keep_inside(text, Fence("tag", name))
    if fence.is_block or "\n" in inside:
        return f"<{name}>\n{inside.strip(chr(10))}\n</{name}>"
    return f"<{name}>{inside}</{name}>"
