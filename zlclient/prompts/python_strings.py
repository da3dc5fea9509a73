"""Python string literals with the place of every character: prefixes, escapes, implicit concatenation, f-strings."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from .offsets import LineIndex
from .parts import Span

_ESCAPE = re.compile(
    r"\\(?:\r\n|[\n\r]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|N\{[^}]*\}|[0-7]{1,3}|.)|\r\n|\r", re.DOTALL
)
_OPENING = re.compile(r"(?P<prefix>[A-Za-z]{0,2})(?P<quote>'''|\"\"\"|'|\")")
_SIMPLE = {"\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

Written = tuple[str, int, int]


@dataclass(frozen=True)
class Literal:
    """One literal, implicit concatenation included. `fields` are an f-string's: (start, end, names with offsets).

    An f-string's text keeps its fields and doubled braces as they are written.
    """

    start: int
    end: int
    text: str
    pieces: tuple[Written, ...]
    is_formatted: bool
    fields: tuple[tuple[int, int, tuple[tuple[str, int], ...]], ...] = ()


def read_literals(text: str, span: Span, value: str | None) -> Iterator[Literal]:
    """The literal at `span`; `value` is what Python made of it, None for an f-string.

    Yields nothing where the two disagree, which no known form does: a wrong position is worse than none.
    """
    pieces: list[Written] = []
    fields: list[tuple[int, int, tuple[tuple[str, int], ...]]] = []
    is_formatted = False
    size = 0
    for start, end in _tokens(text, span):
        opening = _OPENING.match(text, start)
        if not opening:
            return
        prefix, quote = opening["prefix"].lower(), opening["quote"]
        body = Span(opening.end(), end - len(quote))
        decoded = list(_decode(text, body, is_raw="r" in prefix))
        if "f" in prefix:
            is_formatted = True
            fields += _fields("".join(piece for piece, _, _ in decoded), size)
        pieces += decoded
        size += sum(len(piece) for piece, _, _ in decoded)
    joined = "".join(piece for piece, _, _ in pieces)
    if value is not None and joined != value:
        return
    yield Literal(span.start, span.end, joined, tuple(pieces), is_formatted, tuple(fields))


def _tokens(text: str, span: Span) -> Iterator[Span]:
    """Each single literal of a concatenation; a parenthesis in front lets it run over lines."""
    source = "(" + text[span.start : span.end] + ")"
    lines = LineIndex(source)
    depth, opened = 0, 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(source, newline="").readline):
            name = tokenize.tok_name[token.type]
            start = lines.offset(token.start[0], token.start[1] + 1) + span.start - 1
            end = lines.offset(token.end[0], token.end[1] + 1) + span.start - 1
            if name == "STRING" and depth == 0:
                yield Span(start, end)
            elif name == "FSTRING_START":
                opened = start if depth == 0 else opened
                depth += 1
            elif name == "FSTRING_END":
                depth -= 1
                if depth == 0:
                    yield Span(opened, end)
    except (tokenize.TokenError, SyntaxError):
        return


def _decode(text: str, body: Span, *, is_raw: bool) -> Iterator[Written]:
    position = body.start
    for match in _ESCAPE.finditer(text, *body):
        if match.start() > position:
            yield text[position : match.start()], position, match.start()
        position = match.end()
        found = match[0]
        if found in ("\r\n", "\r"):
            yield "\n", *match.span()
        elif is_raw:
            yield "\\", match.start(), match.start() + 1
            yield found[1:].replace("\r\n", "\n").replace("\r", "\n"), match.start() + 1, match.end()
        else:
            yield _escaped(found[1:]), *match.span()
    if body.end > position:
        yield text[position : body.end], position, body.end


def _escaped(code: str) -> str:
    if code in ("\n", "\r\n", "\r"):
        return ""
    if code in _SIMPLE:
        return _SIMPLE[code]
    if code[0] in "xuU" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] == "N" and len(code) > 1:
        return unicodedata.lookup(code[2:-1])
    return chr(int(code, 8)) if code[0] in "01234567" else "\\" + code


def _fields(text: str, base: int) -> Iterator[tuple[int, int, tuple[tuple[str, int], ...]]]:
    position = 0
    while (start := text.find("{", position)) >= 0:
        if text.startswith("{{", start):
            position = start + 2
            continue
        end, depth = start + 1, 1
        while end < len(text) and depth:
            depth += (text[end] == "{") - (text[end] == "}")
            end += 1
        yield base + start, base + end, tuple((name, base + at) for name, at in _names(text, start + 1, end - 1))
        position = end


def _names(text: str, start: int, end: int) -> Iterator[tuple[str, int]]:
    expression = text[start:end]
    for candidate in (expression, re.split(r"![rsa]?|:", expression, maxsplit=1)[0]):
        try:
            tree = ast.parse("(" + candidate.rstrip("= ") + ")", mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.lineno == 1:
                column = len(("(" + candidate).encode()[: node.col_offset].decode("utf-8", "ignore"))
                yield node.id, start + column - 1
        return
