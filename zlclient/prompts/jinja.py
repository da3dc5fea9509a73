"""Jinja2 read with positions: tags, the tree, and where each input is used. Renders nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from .jinja_scope import GLOBALS, undeclared_names
from .parts import Problem, Span, Tag, Variable, span_in_file

if TYPE_CHECKING:
    from jinja2 import Environment, nodes

    from .offsets import OffsetMap

_OPEN = re.compile(r"\{\{|\{%|\{#")
_CLOSERS = {"{{": "}}", "{%": "%}", "{#": "#}"}
_RAW = re.compile(r"\{%[-+]?\s{0,40}raw\s{0,40}[-+]?%\}")
_END_RAW = re.compile(r"\{%[-+]?\s{0,40}endraw\s{0,40}[-+]?%\}")
# What matters for finding a tag's end: strings and brackets, which may hold the closing delimiter.
_INSIDE = re.compile(r"""(?s:"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*')|[\[\](){}]|%(?=\})""")
_TOKEN = re.compile(
    r"""(?P<string>(?s:"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*'))|(?P<name>[^\W\d]\w*)|(?P<number>\d[\w.]*)"""
    r"""|(?P<operator>==|\S)"""
)
# `{{ name }}`, `{{- a.b }}`: a template of nothing else is read without Jinja2, which costs twenty times as much.
_PLAIN = re.compile(r"\{\{-?\s*(?P<name>[a-z_]\w*)(?:\.[a-z_]\w*)*\s*-?\}\}", re.ASCII | re.IGNORECASE)
_OPERATORS = frozenset(["and", "or", "not", "in", "is", "if", "else", "true", "false", "none", "True", "False", "None"])
# Words of statements, which are also good names of inputs: left out only where no tree tells them apart.
_STATEMENT_WORDS = frozenset(
    (
        *("for", "set", "elif", "with", "as", "import", "from", "include", "extends", "without", "context", "macro"),
        *("call", "filter", "print", "do", "recursive", "scoped", "required", "ignore", "missing", "loop", "self"),
    )
)


@cache
def environment() -> Environment:
    """Jinja2's parser with the extensions that templates in the wild use; it never renders."""
    from jinja2 import Environment

    return Environment(  # noqa: S701 - a parser only; prompts are not HTML
        extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"], keep_trailing_newline=True
    )


def parse(text: str) -> nodes.Template | tuple[str, int]:
    """The tree of `text`, or (message, line) where Jinja2 rejects it; line from 1."""
    from jinja2 import TemplateSyntaxError

    try:
        return environment().parse(text)
    except TemplateSyntaxError as error:
        return error.message or "invalid template", error.lineno
    except (RecursionError, MemoryError):
        return "nested too deeply", 1
    except (ValueError, OverflowError, SyntaxError, UnicodeError) as error:
        # Literals that Python itself refuses, such as a number of 5,000 digits.
        return str(error).splitlines()[0], 1


def scan(text: str) -> tuple[list[Tag], list[Problem]]:
    """All tags of `text` in order, and those that never end. Offsets are of `text`."""
    tags: list[Tag] = []
    position = 0
    while match := _OPEN.search(text, position):
        start, opener = match.start(), match[0]
        if opener == "{%" and (raw := _RAW.match(text, start)):
            tags.append(Tag("raw", start, raw.end(), Span(start + 2, raw.end() - 2)))
            end_raw = _END_RAW.search(text, raw.end())
            if not end_raw:
                return tags, [Problem("template-raw-unclosed", "{% raw %} has no {% endraw %}", *raw.span())]
            tags.append(Tag("raw", *end_raw.span(), Span(end_raw.start() + 2, end_raw.end() - 2)))
            position = end_raw.end()
            continue
        end = text.find("#}", start + 2) + 2 if opener == "{#" else _tag_end(text, start + 2, _CLOSERS[opener])
        if end < start + 4:
            message = f"{opener} is never closed by {_CLOSERS[opener]}"
            return tags, [Problem("template-tag-unclosed", message, start, start + 2)]
        kind = "comment" if opener == "{#" else "output" if opener == "{{" else "statement"
        tags.append(Tag(kind, start, end, _inner(text, start, end)))
        position = end
    return tags, []


def _tag_end(text: str, position: int, closer: str) -> int:
    # Jinja2 ends a tag at its closer only where no bracket is open: {{ {"a": {}} }}.
    depth = 0
    for match in _INSIDE.finditer(text, position):
        found, at = match[0], match.start()
        if depth == 0 and text.startswith(closer, at):
            return at + 2
        if found in ("(", "[", "{"):
            depth += 1
        elif found in (")", "]", "}"):
            depth = max(0, depth - 1)
    return -1


def _inner(text: str, start: int, end: int) -> Span:
    low = start + 2 + (text[start + 2] in "-+" and end - start > 4)
    high = end - 2 - (end - 3 >= low and text[end - 3] in "-+")
    return Span(low, high)


def read(text: str, offsets: OffsetMap) -> tuple[list[Tag], list[Variable], list[Problem]]:
    """Tags (offsets of `text`), variables and problems (offsets of the file) of one template."""
    tags, problems = scan(text)
    problems = [Problem(p.code, p.message, *span_in_file(offsets, p.start, p.end)) for p in problems]
    if not tags and not problems:
        return [], [], []
    names = None if problems else _plain_names(text, tags)
    if names is None:
        tree = parse(text)
        if not isinstance(tree, tuple):
            names = undeclared_names(tree)
        elif not problems:
            message, line = tree
            at = _line_start(text, line)
            problems = [Problem("template-syntax", message, *span_in_file(offsets, at, _line_end(text, at)))]
    return tags, list(_uses(text, tags, names, offsets)), problems


def _plain_names(text: str, tags: list[Tag]) -> set[str] | None:
    """The inputs of a template that only writes names and attributes of names; None for any other."""
    found: set[str] = set()
    for tag in tags:
        if tag.kind == "comment":
            continue
        plain = _PLAIN.fullmatch(text, tag.start, tag.end)
        if not plain or plain["name"] in _OPERATORS:
            return None
        found.add(plain["name"])
    return found - GLOBALS


def _uses(text: str, tags: list[Tag], names: set[str] | None, offsets: OffsetMap) -> Iterator[Variable]:
    bound = _STATEMENT_WORDS.union(*(_bound(text, tag) for tag in tags)) if names is None else set[str]()
    for tag in tags:
        if tag.kind not in ("output", "statement"):
            continue
        for name, start, end in input_names(text, tag):
            if name in bound or (names is not None and name not in names):
                continue
            tag_span = span_in_file(offsets, tag.start, tag.end)
            yield Variable(name, *span_in_file(offsets, start, end), tag_span, tag.kind == "output")


def input_names(text: str, tag: Tag) -> Iterator[tuple[str, int, int]]:
    """Names that a tag reads: no attributes, filters, tests, keywords, keyword arguments or called block names."""
    tokens = [
        (match.lastgroup, match[0], match.start(), match.end())
        for match in _TOKEN.finditer(text, tag.inner.start, tag.inner.end)
    ]
    skip = 0
    if tag.kind == "statement" and tokens:
        word = tokens[0][1]
        skip = 2 if word in ("block", "macro", "filter") else 1
        if word.startswith("end") or word in ("else", "raw"):
            return
    depth = 0
    for index, (kind, value, start, end) in enumerate(tokens):
        depth += (value in ("(", "[", "{")) - (value in (")", "]", "}"))
        if kind != "name" or index < skip or value in _OPERATORS:
            continue
        before = tokens[index - 1][1] if index else ""
        earlier = tokens[index - 2][1] if index > 1 else ""
        after = tokens[index + 1][1] if index + 1 < len(tokens) else ""
        is_test = before == "is" or (before == "not" and earlier == "is")
        if before in (".", "|") or is_test or (depth > 0 and after == "="):
            continue
        yield value, start, end


def _bound(text: str, tag: Tag) -> set[str]:
    """Names a statement binds, read from its words: used only where the template does not parse."""
    if tag.kind != "statement":
        return set()
    words = re.findall(r"\w+|\S", text[tag.inner.start : min(tag.inner.end, tag.inner.start + 400)])
    if not words:
        return set()
    stop = {"for": "in", "set": "=", "macro": ")", "with": "="}.get(words[0])
    if stop is None:
        return set()
    taken = words[1 : words.index(stop)] if stop in words else words[1:]
    return {word for word in taken if word.isidentifier()} | ({"loop"} if words[0] == "for" else set())


def _line_start(text: str, line: int) -> int:
    position = 0
    for match in re.finditer(r"\r\n?|\n", text):
        line -= 1
        if line < 1:
            break
        position = match.end()
    return position


def _line_end(text: str, start: int) -> int:
    match: Any = re.compile(r"\r|\n|\Z").search(text, start)
    return match.start()
