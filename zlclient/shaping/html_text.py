"""Text out of HTML: headings as Markdown headings, items, table rows and preformatted text kept as such."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_BLOCKS = frozenset(
    re.findall(
        r"\w+",
        """address article aside blockquote body caption dd details div dl dt fieldset figcaption figure footer form
        header hr html main nav ol p section summary table tbody tfoot thead ul""",
    )
)
_SILENT = frozenset(("script", "style", "template", "noscript", "head", "svg", "iframe", "object"))
_HEADING = re.compile("h[1-6]")
_SPACE = re.compile(r"[^\S\u2028]+")
_BREAK = "\u2028"  # stands for <br> until the block ends; a newline of the source is only a space


def html_text(source: str) -> tuple[str, str]:
    """Return the text of an HTML document and its title. Broken markup is read as browsers do, as far as text goes."""
    reader = _Reader()
    reader.feed(source)
    reader.close()
    return "\n".join(reader.lines).strip("\n") + "\n", " ".join(reader.title.split())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self.title = ""
        self._pieces: list[str] = []
        self._prefix = ""
        self._silent: list[str] = []
        self._in_title = False
        self._in_pre = False
        self._row: list[str] | None = None
        self._in_cell = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag == "title" and self._silent != ["svg"]:
            self._in_title = True
        elif self._silent or tag in _SILENT:
            if tag in _SILENT:
                self._silent.append(tag)
        elif tag == "br":
            self._pieces.append(_BREAK)
        elif tag == "tr":
            self._end_row()
            self._end_block()
            self._row = []
        elif tag in ("td", "th"):
            self._end_cell()
            self._in_cell = True
        elif self._row is None and (tag in _BLOCKS or tag in ("li", "pre") or _HEADING.fullmatch(tag)):
            self._end_block()
            self._in_pre = tag == "pre"
            if _HEADING.fullmatch(tag):
                self._prefix = "#" * int(tag[1]) + " "
            elif tag == "li":
                self._prefix = "- "

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif self._silent:
            if tag == self._silent[-1] or tag == "body":
                self._silent.pop()
        elif self._row is not None:
            if tag in ("td", "th"):
                self._end_cell()
            elif tag in ("tr", "table"):
                self._end_row()
            if tag == "table":
                self.lines.append("")
        elif tag in _BLOCKS or tag in ("li", "pre") or _HEADING.fullmatch(tag):
            self._end_block()
            if tag == "table":
                self.lines.append("")
            if tag == "li" or _HEADING.fullmatch(tag):
                self._prefix = ""

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif not self._silent:
            self._pieces.append(data)

    def close(self) -> None:
        super().close()
        self._end_row()
        self._end_block()

    def _end_block(self) -> None:
        text = "".join(self._pieces).strip("\n") if self._in_pre else self._joined()
        if text and self._in_pre:
            self.lines += ["```", text, "```", ""]
        elif text:
            self.lines += [self._prefix + text, ""]
            self._prefix = ""
        self._pieces.clear()
        self._in_pre = False

    def _end_row(self) -> None:
        self._end_cell()
        if self._row is not None:
            self.lines.append(f"| {' | '.join(self._row)} |")
            self._row = None

    def _end_cell(self) -> None:
        if self._row is not None and self._in_cell:
            self._row.append(self._joined().replace("\n", " "))
            self._pieces.clear()
        self._in_cell = False

    def _joined(self) -> str:
        lines = _SPACE.sub(" ", "".join(self._pieces)).split(_BREAK)
        return "\n".join(line.strip() for line in lines).strip()
