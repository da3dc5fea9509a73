"""Mustache, Handlebars and `str.format` templates read with positions; which dialect a text is written in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import jinja
from .offsets import OffsetMap
from .parts import Dialect, Problem, Span, Tag, TemplateText, Variable, span_in_file

_MUSTACHE = re.compile(
    r"(?P<escaped>\\\{\{)|(?P<long>\{\{~?!--)|\{\{\{(?P<triple>[^{}]*)\}\}\}"
    r"|\{\{~?(?P<sigil>[#/^>!&]?)(?P<body>(?:[^{}]|\{(?!\{)|\}(?!\}))*?)~?\}\}",
    re.DOTALL,
)
_FORMAT = re.compile(r"\{\{|\}\}|\{(?P<name>[^\W\d]\w*)(?P<rest>(?:\.\w+|\[[^\]{}]*\])*(?:![rsa])?(?::[^{}\n]*)?)\}")
_WORD = re.compile(r"\"[^\"]*\"|'[^']*'|\|[^|]*\||[()]|(?P<key>[\w-]+)=|(?P<path>[@\w./-]+)")
_HANDLEBARS_ONLY = re.compile(
    r"\{\{~?(?:#(?:if|each|unless|with|role|section|ifEquals|unlessEquals)\b|else\b|>|role\s|history\b|media\s|json\s)"
)
_SECTION = re.compile(r"\{\{[#^/]\s*[\w.]+\s*\}\}")
_DOUBLE = re.compile(r"\{\{-?[ \t]{0,8}[^\W\d][\w.]*(?:[ \t]{0,8}\}\}|[ \t]{0,8}\||\[|\()")
_SINGLE = re.compile(r"(?<![{$\\\w])\{[^\W\d]\w*\}(?!\})")
_STATEMENT = re.compile(r"\{%[-+]?\s{0,8}[a-z]+\b")
_LITERALS = frozenset(["true", "false", "null", "undefined", "this", "else", "as"])
_HELPERS = frozenset(["role", "history", "section", "media", "json", "else", "this"])
_SCOPED = frozenset(["each", "with"])


def sniff(text: str) -> Dialect:
    """The dialect a text without a declared one is written in, from its tags alone."""
    if "{" not in text:
        return "none"
    if _STATEMENT.search(text):
        return "jinja2"
    if _HANDLEBARS_ONLY.search(text):
        return "handlebars"
    if _SECTION.search(text):
        return "mustache"
    if _DOUBLE.search(text):
        return "jinja2"
    if any(match["name"] and not _is_code(text, match.start()) for match in _FORMAT.finditer(text)):
        return "format"
    return "none"


def _is_code(text: str, start: int) -> bool:
    # ${x} of a shell, \frac{a} of LaTeX.
    before = text[max(0, start - 60) : start]
    return before.endswith("$") or re.search(r"\\[A-Za-z]+(?:\{[^{}]*\})*$", before) is not None


def read_template(text: str, offsets: OffsetMap, dialect: Dialect | None = None) -> TemplateText:
    """Read one template; `dialect` None asks `sniff`."""
    is_guess = dialect is None
    dialect = dialect or sniff(text)
    if dialect == "jinja2":
        tags, variables, problems = jinja.read(text, offsets)
        if problems and is_guess and not _STATEMENT.search(text):
            # {{ is str.format's escape of a brace, or a placeholder of some simpler engine.
            return read_template(text, offsets, "format" if has_single_field(text) else "mustache")
    elif dialect in ("mustache", "handlebars"):
        tags, variables, problems = _read_mustache(text, offsets, dialect)
    elif dialect in ("format", "f-string"):
        tags, variables, problems = *_read_format(text, offsets), []
    else:
        tags, variables, problems = [], [], []
    return TemplateText(text, offsets, dialect, tuple(tags), tuple(variables), tuple(problems))


def has_single_field(text: str) -> bool:
    """Whether `text` has a `{name}` of `str.format`, neither `{{name}}`, `${name}` nor LaTeX's `\\frac{a}`."""
    return _SINGLE.search(text) is not None


def _read_format(text: str, offsets: OffsetMap) -> tuple[list[Tag], list[Variable]]:
    tags: list[Tag] = []
    variables: list[Variable] = []
    for match in _FORMAT.finditer(text):
        name = match["name"]
        if not name or _is_code(text, match.start()):
            continue
        tags.append(Tag("output", *match.span(), Span(match.start() + 1, match.end() - 1)))
        variables.append(
            Variable(name, *span_in_file(offsets, *match.span("name")), span_in_file(offsets, *match.span()), True)
        )
    return tags, variables


def scan_mustache(text: str) -> tuple[list[tuple[Tag, str]], list[Problem]]:
    """((tag, sigil) in order, problems) of a Mustache or Handlebars template; offsets of `text`."""
    found: list[tuple[Tag, str]] = []
    problems: list[Problem] = []
    end = 0
    while match := _MUSTACHE.search(text, end):
        problems += _loose(text, end, match.start())
        start, end = match.span()
        sigil = match["sigil"] or ""
        if match["escaped"]:
            continue
        if match["long"]:
            close = text.find("--}}", end)
            if close < 0:
                return found, [*problems, Problem("template-tag-unclosed", "{{!-- is never closed by --}}", start, end)]
            found.append((Tag("comment", start, close + 4, Span(end, close)), "!"))
            end = close + 4
        elif match["triple"] is not None:
            found.append((Tag("output", start, end, Span(*match.span("triple"))), "&"))
        elif sigil == "!":
            found.append((Tag("comment", start, end, Span(*match.span("body"))), "!"))
        else:
            word = match["body"].split(None, 1)
            is_output = sigil in ("", "&") and word[:1] not in (["else"], ["role"])
            found.append((Tag("output" if is_output else "statement", start, end, Span(*match.span("body"))), sigil))
    return found, problems + _loose(text, end, len(text))


def _loose(text: str, start: int, end: int) -> list[Problem]:
    at = text.find("{{", start, end)
    if at < 0 or (at > 0 and text[at - 1] == "\\"):
        return []
    return [Problem("template-tag-unclosed", "{{ is never closed by }}", at, at + 2)]


def _read_mustache(text: str, offsets: OffsetMap, dialect: Dialect) -> tuple[list[Tag], list[Variable], list[Problem]]:
    found, problems = scan_mustache(text)
    variables: list[Variable] = []
    open_blocks: list[tuple[str, Tag, set[str]]] = []
    for tag, sigil in found:
        words = text[tag.inner.start : tag.inner.end].split()
        head = words[0] if words else ""
        if sigil == "/":
            if open_blocks and open_blocks[-1][0] == head:
                open_blocks.pop()
            else:
                message = f"{{{{/{head}}}}} closes a block that is not open"
                problems.append(Problem("template-block-unmatched", message, tag.start, tag.end))
            continue
        if tag.kind == "comment":
            continue
        bound = {name for block in open_blocks for name in block[2]}
        if dialect == "mustache":
            found_names = _mustache_name(text, tag, sigil)
        else:
            found_names = _paths(text, tag, sigil, any(block[0] in _SCOPED for block in open_blocks))
        for name, start, end in found_names:
            if name not in bound:
                span = span_in_file(offsets, tag.start, tag.end)
                variables.append(Variable(name, *span_in_file(offsets, start, end), span, tag.kind == "output"))
        if sigil in ("#", "^") and head:
            open_blocks.append((head, tag, _block_names(text, tag)))
    for head, tag, _ in open_blocks:
        message = f"the block {{{{#{head}}}}} is never closed"
        problems.append(Problem("template-block-unclosed", message, tag.start, tag.end))
    in_file = [Problem(p.code, p.message, *span_in_file(offsets, p.start, p.end)) for p in problems]
    return [tag for tag, _ in found], variables, in_file


def _mustache_name(text: str, tag: Tag, sigil: str) -> Iterator[tuple[str, int, int]]:
    inner = text[tag.inner.start : tag.inner.end]
    name = inner.strip().split(".", 1)[0].strip()
    if name and sigil != ">":
        start = tag.inner.start + inner.index(name)
        yield name, start, start + len(name)


def _block_names(text: str, tag: Tag) -> set[str]:
    names = re.search(r"\bas\s*\|([^|]*)\|", text[tag.inner.start : tag.inner.end])
    return set(names[1].split()) if names else set()


def _paths(text: str, tag: Tag, sigil: str, is_relative: bool) -> Iterator[tuple[str, int, int]]:
    """Inputs a tag reads. Inside each and with, only @root and ../ reach the inputs."""
    words = list(_WORD.finditer(text, tag.inner.start, tag.inner.end))
    for index, word in enumerate(words):
        path = word["path"]
        if path is None:
            continue
        after_paren = index > 0 and words[index - 1][0] == "("
        is_call = index == 0 and len(words) > 1 and not word["key"]
        is_partial = index == 0 and sigil == ">"
        if after_paren or is_call or is_partial or path[0].isdigit():
            continue
        reaches_root = path.startswith(("@root.", "../"))
        if not reaches_root and (is_relative or path[0] in "@."):
            continue
        name = re.split(r"[./]", path.removeprefix("@root.").lstrip("./"), maxsplit=1)[0]
        if not name or name in _LITERALS or (index == 0 and name in _HELPERS):
            continue
        start = word.start("path") + path.index(name)
        yield name, start, start + len(name)
