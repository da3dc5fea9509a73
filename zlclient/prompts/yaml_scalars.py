"""Where the characters of a YAML scalar's value stand in the file: indentation, folding, quotes and escapes undone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .offsets import OffsetMap, Piece
from .parts import Span

_ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|\r?\n[ \t]*|.)", re.DOTALL)
_HEADER = re.compile(r"[|>][-+0-9]{0,2}[ \t]*(?:#[^\r\n]*)?(?:\r?\n|\r|\Z)")
_SIMPLE = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r",
    "e": "\x1b", " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip

Written = tuple[str, int, int]


def scalar_offsets(text: str, value: str, style: str | None, span: Span) -> OffsetMap:
    """The map of a scalar's value to `text`; `span` is what the parser gave for the whole scalar, quotes included.

    Where the two cannot be matched (an unforeseen form), the whole value stands for the whole scalar: coarse, never
    wrong.
    """
    pieces = _literal_block(text, value, span) if style == "|" else None
    written = [] if pieces else list(_written(text, style, span))
    pieces = pieces or _align(value, written)
    if pieces is None:
        return OffsetMap((Piece(0, span.start, len(value), span.end - span.start),), span.end)
    return OffsetMap.joined(pieces, pieces[0][1] if pieces else span.start)


def _literal_block(text: str, value: str, span: Span) -> list[Written] | None:
    """A literal block line by line, the usual case; None where a line is not its raw line without indentation."""
    header = _HEADER.match(text, span.start)
    at = header.end() if header else span.start
    pieces: list[Written] = []
    lines = value.split("\n")
    for number, line in enumerate(lines):
        found = text.find("\n", at, span.end)
        end = span.end if found < 0 else found
        start = end - len(line)
        if start < at or text[start:end] != line or text[at:start].strip(" "):
            return None if line or number < len(lines) - 1 else pieces
        has_break = number < len(lines) - 1
        if has_break and found < 0:
            return None
        at = end + has_break
        if at > start:
            pieces.append((line + "\n" * has_break, start, at))
    return pieces


def _written(text: str, style: str | None, span: Span) -> Iterator[Written]:
    """The scalar's characters as (decoded, start, end), line breaks and indentation as they are in the file."""
    start, end = span
    if style in ("|", ">"):
        header = _HEADER.match(text, start)
        yield from _plain(text, header.end() if header else start, end)
    elif style == "'":
        yield from _single(text, start + 1, end - 1)
    elif style == '"':
        yield from _double(text, start + 1, end - 1)
    else:
        yield from _plain(text, start, end)


def _plain(text: str, start: int, end: int) -> Iterator[Written]:
    for match in re.compile(r"[^\s]+|[^\S\r\n]+|\r\n|\r|\n").finditer(text, start, end):
        yield match[0], *match.span()


def _single(text: str, start: int, end: int) -> Iterator[Written]:
    for match in re.compile(r"''|[^\s']+|[^\S\r\n]+|\r\n|\r|\n").finditer(text, start, end):
        yield ("'" if match[0] == "''" else match[0]), *match.span()


def _double(text: str, start: int, end: int) -> Iterator[Written]:
    position = start
    for match in _ESCAPE.finditer(text, start, end):
        yield from _plain(text, position, match.start())
        code = match[0][1:]
        if code[0] in "xuU" and len(code) > 1:
            number = int(code[1:], 16)
            yield (chr(number) if number < 0x110000 else "\ufffd"), *match.span()
        else:
            yield _SIMPLE.get(code, ""), *match.span()
        position = match.end()
    yield from _plain(text, position, end)


def _align(value: str, written: list[Written]) -> list[Written] | None:
    """Pair runs of white space with runs of white space, and everything else character by character."""
    pieces: list[Written] = []
    at = 0
    index = 0
    while index < len(written):
        decoded, start, end = written[index]
        if decoded and not decoded.isspace():
            if not value.startswith(decoded, at):
                return None
            pieces.append((decoded, start, end))
            at += len(decoded)
            index += 1
            continue
        run = index
        while run < len(written) and (not written[run][0] or written[run][0].isspace()):
            run += 1
        stop = at
        while stop < len(value) and value[stop].isspace():
            stop += 1
        pieces += _blank(value[at:stop], written[index:run])
        at, index = stop, run
    return pieces if at == len(value) else None


def _blank(blank: str, written: list[Written]) -> list[Written]:
    if not blank:
        return []
    if blank == "".join(decoded for decoded, _, _ in written):
        return written
    lines = blank.split("\n")
    breaks = [index for index, (decoded, _, _) in enumerate(written) if decoded in ("\n", "\r\n", "\r")]
    if len(breaks) == len(lines) - 1:
        return _by_lines(lines, written, breaks)
    return [(blank, written[0][1], written[-1][2])]


def _by_lines(lines: list[str], written: list[Written], breaks: list[int]) -> list[Written]:
    # A block scalar's line: its indentation is dropped at the left, so what is kept is at the right of each line.
    pieces: list[Written] = []
    bounds = [-1, *breaks, len(written)]
    for number, kept in enumerate(lines):
        line = written[bounds[number] + 1 : bounds[number + 1]]
        raw = "".join(decoded for decoded, _, _ in line)
        if kept and line:
            high = line[-1][2]
            exact = raw.endswith(kept) and high - line[0][1] == len(raw)
            pieces.append((kept, high - len(kept) if exact else line[0][1], high))
        if number < len(breaks):
            pieces.append(("\n", *written[breaks[number]][1:]))
    return pieces
