"""A document of any length: its text, its outline, and the segments it is sent in.

doc = Document.from_path("民法典.txt")
for segment in doc.segments(max_tokens=2000):
    print(segment.anchor, segment.start, segment.end, segment.path)
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO

from ..errors import InputError
from .encodings import decode, detect_encoding
from .html_text import html_text
from .outline import Node, outline
from .page_marks import PageMark, PageMarks
from .readers import docx_text, pdf_text
from .segment import Pack, Rest, Segment, Segmenter
from .segment_anchors import anchor_style
from .segment_budget import Budget
from .segment_names import Naming
from .structure import Heading, Structure
from .structure_data import find_structure

_HTML_SUFFIXES = (".html", ".htm", ".xhtml")
_HTML_START = re.compile(rb"\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL)
_STREAM_WINDOW = 4 << 20  # bytes read at a time
_STREAM_MOST = 16 << 20  # characters of one division held before it is cut for memory's sake


@dataclass(frozen=True)
class Document:
    """`source` is the text all spans refer to; for HTML, DOCX and PDF it is what was read out of the file.

    `structure` says which lines are headings, `encoding` what the bytes were in, `title` what the file calls itself.
    """

    source: str = field(repr=False)
    structure: Structure = field(repr=False)
    title: str = ""
    encoding: str | None = None

    @classmethod
    def from_text(
        cls, text: str, structure: str | Path | Structure | None = None, *, title: str = "", encoding: str | None = None
    ) -> Document:
        """Take `text` as it is; its structure is detected unless named, such as "law", or given as a TOML file."""
        return cls(text, find_structure(text, structure), title, encoding)

    @classmethod
    def from_path(
        cls, path: str | Path, structure: str | Path | Structure | None = None, *, encoding: str | None = None
    ) -> Document:
        """Read text, Markdown, HTML, PDF or DOCX; what a file is, its first bytes and then its name decide.

        Raises OSError where it cannot be read and InputError where it cannot be understood.
        """
        path = Path(path)
        return cls.from_bytes(path.read_bytes(), structure, name=path.name, encoding=encoding)

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        structure: str | Path | Structure | None = None,
        *,
        name: str = "",
        encoding: str | None = None,
    ) -> Document:
        """Read a file's bytes; `name` helps to tell HTML from text, `encoding` overrules what is detected."""
        if data.startswith(b"%PDF-"):
            text, title = pdf_text(data)
            return cls.from_text(text, structure, title=title)
        if data.startswith(b"PK\x03\x04"):
            text, title = docx_text(data)
            return cls.from_text(text, structure, title=title)
        text, encoding = decode(data, encoding)
        if name.lower().endswith(_HTML_SUFFIXES) or _HTML_START.match(data):
            text, title = html_text(text)
            return cls.from_text(text, structure, title=title, encoding=encoding)
        return cls.from_text(text, structure, encoding=encoding)

    @cached_property
    def _headings(self) -> list[Heading]:
        return self.structure.headings(self.source)

    @cached_property
    def page_marks(self) -> list[PageMark]:
        """Form feeds, and the headers and footers that repeat beside them."""
        return PageMarks(self.source).spans(self.source)

    def outline(self) -> list[Node]:
        """Return every division that was recognised, in order."""
        return outline(self._headings, len(self.source))

    def segments(
        self,
        max_tokens: int = 2000,
        *,
        model: str | None = None,
        overlap: int = 0,
        style: str = "zh",
        pack: Pack = "units",
        omit_page_marks: bool = False,
    ) -> list[Segment]:
        """Cut the document into segments whose `rendered` form takes at most `max_tokens` of `model`.

        Tokens are counted where a tokenizer for `model` is installed, and otherwise estimated with a margin of 25 %;
        without a `model` every character costs what the dearer family charges. `overlap` tokens of what came before
        are repeated in front of each further part of a divided segment. `style` is "zh", "en", "xml", or a template
        (see `anchor_style`). Small units such as articles share a segment with their siblings; `pack="sections"` lets
        whole sections share one too. `omit_page_marks` leaves page ends, headers and footers out of `rendered`, and
        each segment lists them. Raises InputError for a budget too small to hold an anchor and some text.
        """
        whole = self.title or _whole(self.source)
        segmenter = _segmenter(self.source, max_tokens, model, overlap, style, pack, omit_page_marks, whole)
        marks = self.page_marks if omit_page_marks else ()
        return list(segmenter.run(self.source, self._headings, marks))

    @staticmethod
    def stream_segments(
        path: str | Path,
        max_tokens: int = 2000,
        *,
        structure: str | Path | Structure | None = None,
        encoding: str | None = None,
        model: str | None = None,
        overlap: int = 0,
        style: str = "zh",
        pack: Pack = "units",
        omit_page_marks: bool = False,
    ) -> Iterator[Segment]:
        """Yield the segments of a text or Markdown file without holding it whole; the options are those of `segments`.

        The structure, and which headers and footers repeat, are learned from the first four megabytes. A division of
        more than sixteen million characters is numbered piece by piece; all else is as `segments` gives it.
        """
        with Path(path).open("rb") as file:
            first = file.read(_STREAM_WINDOW)
            if first.startswith((b"%PDF-", b"PK\x03\x04")):
                raise InputError("only text can be streamed; use from_path", where="path")
            texts = _texts(file, first, encoding)
            text = next(texts)
            found = find_structure(text, structure)
            marks = PageMarks(text)
            segmenter = _segmenter(text, max_tokens, model, overlap, style, pack, omit_page_marks, _whole(text))
            yield from _streamed(text, texts, found, marks, segmenter)


def _streamed(
    text: str, texts: Iterator[str], structure: Structure, marks: PageMarks, segmenter: Segmenter
) -> Iterator[Segment]:
    """Segment a growing text, dropping what has been cut off."""
    base, page, rest = 0, 0, Rest(0, (), 1)
    following: str | None = text
    text = ""
    while following is not None:
        text += following
        following = next(texts, None)
        final = following is None
        piece = text
        if not final and len(text) > _STREAM_MOST:
            piece, final = text[: text.rfind("\n") + 1] or text, True
        headings = _settled(structure.headings(piece), piece, final)
        rest = yield from segmenter.run(piece, headings, marks.spans(piece, page), rest=rest, base=base, final=final)
        base += rest.start
        page += piece.count("\f", 0, rest.start)
        text = text[rest.start :]


def _settled(headings: Sequence[Heading], text: str, final: bool) -> Sequence[Heading]:
    """Leave out headings of a last line that may not be whole yet."""
    last = text.rfind("\n")
    return headings if final else [heading for heading in headings if heading.end <= last]


def _texts(file: IO[bytes], first: bytes, encoding: str | None) -> Iterator[str]:
    """Decode the file window by window; yields at least once."""
    try:
        decoder = codecs.getincrementaldecoder(encoding or detect_encoding(first))("replace")
    except LookupError:
        raise InputError(f"Python knows no encoding {encoding!r}", where="encoding") from None
    data = first
    while True:
        following = file.read(_STREAM_WINDOW)
        yield decoder.decode(data, final=not following)
        if not following:
            return
        data = following


def _segmenter(
    sample: str, max_tokens: int, model: str | None, overlap: int, style: str, pack: Pack, omit: bool, whole: str
) -> Segmenter:
    if pack not in ("units", "sections"):
        raise InputError(f"{pack!r} is neither 'units' nor 'sections'", where="pack")
    budget = Budget.of(max_tokens, overlap, model, sample)
    naming = Naming(anchor_style(style), budget, whole)
    return Segmenter(budget, naming, pack=pack, omit=omit, model=model)


def _whole(sample: str) -> str:
    """Name text under no heading, in its own language."""
    return "正文" if re.search(r"[\u4e00-\u9fff]", sample[:4096]) else "Text"
