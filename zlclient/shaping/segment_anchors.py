"""What is put around a segment: the anchor's style, and the escape that keeps the source from forging one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from string import Formatter
from typing import NamedTuple

from ..errors import InputError

FIELDS = ("index", "names", "path", "part", "parts")
_ESCAPE_UNITS = 103  # a backslash costs as much as any punctuation mark, the dearer family's weight


class Place(NamedTuple):
    """Where a segment stands: its path's labels, the names an anchor shows, and which part of how many it is."""

    ordinal: int
    path: tuple[str, ...]
    names: tuple[str, ...]
    part: tuple[int, int] | None = None

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names an anchor shows, the part last."""
        return self.names if self.part is None else (*self.names, f"{self.part[0]}/{self.part[1]}")


@dataclass(frozen=True)
class AnchorStyle:
    """How an anchor is written, what follows the body, and what in a source could be taken for an anchor.

    `opener` matches the first character of a forged anchor. It is escaped with a backslash, and backslashes right
    before it are doubled, so `unescape(escape(text)) == text` for every text.
    """

    name: str
    write: Callable[[Place], str]
    opener: str
    suffix: str = ""

    def escape(self, text: str) -> str:
        r"""Mark what could be taken for an anchor: `【` becomes `\【`."""
        return re.sub(self.opener, lambda m: "\\" * (1 + _backslashes_before(m)) + m[0], text)

    def unescape(self, text: str) -> str:
        """Undo `escape`."""
        return re.sub(rf"(?<!\\)(\\++)(?={self.opener})", lambda m: "\\" * ((len(m[1]) - 1) // 2), text)

    def surcharges(self, text: str) -> list[tuple[int, int]]:
        """Return (position, hundredths of a token) for each character that escaping makes dearer."""
        return [(m.start(), _ESCAPE_UNITS * (1 + _backslashes_before(m))) for m in re.finditer(self.opener, text)]


def _backslashes_before(match: re.Match[str]) -> int:
    text, start = match.string, match.start()
    first = start
    while first > 0 and text[first - 1] == "\\":
        first -= 1
    return start - first


def _zh(place: Place) -> str:
    return f"【{'｜'.join(map(_plain, place.all_names))}】"


def _en(place: Place) -> str:
    return f"[{' | '.join(map(_plain, place.all_names))}]"


def _xml(place: Place) -> str:
    part = f' part="{place.part[0]}/{place.part[1]}"' if place.part else ""
    names = " | ".join(place.names).translate(_ENTITIES)
    return f'<document index="{place.ordinal}" section="{names}"{part}>'


def _plain(name: str) -> str:
    """Return a name without what would end the anchor or divide it."""
    return name if name.isalnum() else name.translate(_PLAIN)


_PLAIN = str.maketrans({"【": "〔", "】": "〕", "[": "(", "]": ")", "｜": "/", "|": "/", "\n": " ", "\r": " "})
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": " ", "\r": " "})
STYLES = {
    "zh": AnchorStyle("zh", _zh, "【"),
    # A bracketed line or list of names; links, checkboxes and citations in running text are left alone.
    "en": AnchorStyle("en", _en, r"\[(?=[^\[\]\n]*\|[^\[\]\n]*\]|[^\[\]\n]*\][ \t\r]*(?:\n|\Z))"),
    "xml": AnchorStyle("xml", _xml, r"<(?=/?[dD][oO][cC][uU][mM][eE][nN][tT]\b)", "\n</document>"),
}


def anchor_style(style: str) -> AnchorStyle:
    """Return a bundled style, or make one of a template such as `"<<{names} {part}/{parts}>>"`.

    A template may use the names in `FIELDS`; it must begin with a mark of its own, because that mark is what is
    escaped in the source. Raises InputError for anything else.
    """
    if style in STYLES:
        return STYLES[style]
    try:
        pieces = list(Formatter().parse(style))
    except ValueError as error:
        raise InputError(f"not a template: {error}", where="style") from None
    used = [name for _, name, _, _ in pieces if name is not None]
    wrong = [name for name in used if name not in FIELDS] + [s for _, _, s, c in pieces if s or c]
    if not used or wrong:
        raise InputError(
            f"use one of {', '.join(STYLES)}, or a template with the fields {', '.join(FIELDS)}", where="style"
        )
    mark = pieces[0][0].strip()
    if not mark or "\\" in mark or "\n" in mark:
        raise InputError("a template must begin with a mark of its own, such as <<", where="style")

    def write(place: Place) -> str:
        part, parts = place.part or (1, 1)
        path = " / ".join(place.path).translate(_PLAIN)
        names = " ".join(place.names).translate(_PLAIN)
        return style.format(index=place.ordinal, names=names, path=path, part=part, parts=parts)

    return AnchorStyle("template", write, re.escape(mark))
