"""Text out of DOCX and PDF: headings as Markdown headings, table rows as rows, page ends as form feeds."""

from __future__ import annotations

import io
import zipfile
from typing import Any
from xml.etree import ElementTree

from ..errors import ConfigError, InputError

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_LARGEST = 512 << 20  # bytes unpacked; more is taken for a zip bomb


def docx_text(data: bytes) -> tuple[str, str]:
    """Return the text of a DOCX file and its title.

    Automatic numbering is not in a file's text and does not appear. Raises InputError for a broken file.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            body = _part(archive, "word/document.xml")
            styles = _part(archive, "word/styles.xml")
            core = _part(archive, "docProps/core.xml")
    except (zipfile.BadZipFile, ElementTree.ParseError) as error:
        raise InputError(f"not a readable DOCX file: {type(error).__name__}", where="data") from None
    if body is None:
        raise InputError("not a DOCX file: it has no word/document.xml", where="data")
    levels = _heading_levels(styles)
    lines: list[str] = []
    for block in body.find(f"{_W}body") or ():
        if block.tag == f"{_W}p":
            lines += [_paragraph(block, levels), ""]
        elif block.tag == f"{_W}tbl":
            lines += [_row(row) for row in block.iter(f"{_W}tr")] + [""]
    title = "" if core is None else (core.findtext("{http://purl.org/dc/elements/1.1/}title") or "")
    return "\n".join(lines).strip("\n") + "\n", " ".join(title.split())


def pdf_text(data: bytes) -> tuple[str, str]:
    """Return the text of a PDF file, a form feed between its pages, and its title.

    Raises ConfigError without pypdf and InputError for a file it cannot read, or that needs a password.
    """
    try:
        from pypdf import PdfReader  # pyright: ignore
        from pypdf.errors import PyPdfError  # pyright: ignore
    except ImportError:
        raise ConfigError("reading PDF needs pypdf: pip install 'zlclient[documents]'") from None
    try:
        reader: Any = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise InputError("the PDF file needs a password", where="data")
        pages: list[str] = [page.extract_text() for page in reader.pages]
        title = str(getattr(reader.metadata, "title", None) or "")
    except InputError:
        raise
    except (PyPdfError, ValueError, KeyError, RecursionError) as error:
        raise InputError(f"not a readable PDF file: {type(error).__name__}", where="data") from None
    return "\n\f".join(pages) + "\n", " ".join(title.split())


def _part(archive: zipfile.ZipFile, name: str) -> ElementTree.Element | None:
    if name not in archive.namelist():
        return None
    if archive.getinfo(name).file_size > _LARGEST:
        raise InputError(f"{name} unpacks to more than {_LARGEST} bytes", where="data")
    source = archive.read(name)
    if b"<!DOCTYPE" in source:  # Word writes none, and entities could grow without bound
        raise InputError(f"{name} holds a document type", where="data")
    return ElementTree.fromstring(source)  # noqa: S314


def _heading_levels(styles: ElementTree.Element | None) -> dict[str, int]:
    """Return the heading level of each style: by its name, or by the outline level it sets."""
    levels: dict[str, int] = {}
    for style in () if styles is None else styles.iter(f"{_W}style"):
        key = style.get(f"{_W}styleId") or ""
        named = style.find(f"{_W}name")
        name = ("" if named is None else named.get(f"{_W}val") or "").lower()
        outline = style.find(f"{_W}pPr/{_W}outlineLvl")
        if name == "title":
            levels[key] = 1
        elif name.startswith("heading ") and name[8:].isdigit():
            levels[key] = int(name[8:])
        elif outline is not None and (outline.get(f"{_W}val") or "").isdigit():
            levels[key] = int(outline.get(f"{_W}val") or 0) + 1
    return levels


def _paragraph(paragraph: ElementTree.Element, levels: dict[str, int]) -> str:
    style = paragraph.find(f"{_W}pPr/{_W}pStyle")
    level = 0 if style is None else levels.get(style.get(f"{_W}val") or "", 0)
    text = _text(paragraph)
    return f"{'#' * min(level, 6)} {text}" if level and text.strip() else text


def _text(element: ElementTree.Element) -> str:
    pieces: list[str] = []
    for node in element.iter():
        if node.tag == f"{_W}t":
            pieces.append(node.text or "")
        elif node.tag == f"{_W}tab":
            pieces.append("\t")
        elif node.tag == f"{_W}br":
            pieces.append("\f" if node.get(f"{_W}type") == "page" else "\n")
        elif node.tag == f"{_W}cr":
            pieces.append("\n")
    return "".join(pieces)


def _row(row: ElementTree.Element) -> str:
    cells = (" ".join(" ".join(_text(p) for p in cell.iter(f"{_W}p")).split()) for cell in row.iter(f"{_W}tc"))
    return f"| {' | '.join(cells)} |"
