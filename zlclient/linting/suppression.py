"""`zl: noqa` comments in the host's own comment syntax, and which findings they silence.

    {# zl: noqa ZL012 #}           Jinja            {{! zl: noqa ZL012 }}   Handlebars, Mustache
    # zl: noqa ZL012, ZL301        YAML, Python     <!-- zl: noqa -->       Markdown, text, anywhere in a prompt

Without codes every rule is silenced. On a line of its own a comment counts for the next line, otherwise for its own;
`noqa-file` counts for the whole file. Beside a Python literal (on the line where it ends or before the one where it
begins) and in the head of a YAML block it counts for the whole string, which can hold no comment itself.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass, field

from zlclient.prompts.offsets import LineIndex
from zlclient.prompts.parts import PromptSource

from .diagnostic import Diagnostic, Edit

_CODES = r"(?P<codes>(?:[:\s]\s*[A-Z]{2}\d{1,3}(?:[,\s]\s*[A-Z]{2}\d{1,3})*)?)"
_DIRECTIVE = re.compile(
    r"(?P<open>\{#-?|\{\{~?!(?:--)?|<!--|#)[ \t]*zl:[ \t]*noqa(?P<file>-file)?" + _CODES + r"[ \t]*"
    r"(?P<close>-?#\}|--\}\}|~?\}\}|-->|)",
    re.IGNORECASE,
)
_CLOSERS = {"{#": "#}", "{{": "}}", "<!": "-->", "#": ""}
_CODE = re.compile(r"[A-Z]{2}\d{1,3}", re.IGNORECASE)
_LINE_END = re.compile(r"[\r\n]")
_BLOCK_HEAD_END = re.compile(r"[|>][-+0-9]{0,2}[ \t]*$")
_BLOCK_HEAD = re.compile(r"[|>][-+0-9]{0,2}[ \t]*#")


@dataclass
class Directive:
    """One comment: what it silences on which lines, and whether anything was silenced."""

    start: int
    end: int
    codes: frozenset[str]
    first: int
    last: int
    is_alone: bool
    used: set[str] = field(default_factory=set[str])

    def silences(self, diagnostic: Diagnostic) -> bool:
        """Whether it speaks of this finding."""
        on_line = self.first <= diagnostic.line <= self.last
        return on_line and (not self.codes or any(diagnostic.code.startswith(code) for code in self.codes))


def find_directives(source: PromptSource) -> list[Directive]:
    """The file's directives in order."""
    text = source.text
    if "noqa" not in text:
        return []
    comments = _python_comments(text) if source.format == "python" else None
    return [
        _directive(source, match)
        for match in _DIRECTIVE.finditer(text)
        if _CLOSERS[match["open"][:2] if match["open"] != "#" else "#"] in match["close"]
        and _counts(source, match, comments)
    ]


def _python_comments(text: str) -> frozenset[int]:
    """Where the comments of a Python file begin: a docstring may show one."""
    lines = LineIndex(text)
    found: set[int] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if token.type == tokenize.COMMENT:
                found.add(lines.offset(token.start[0], token.start[1] + 1))
    except (tokenize.TokenError, SyntaxError):
        pass  # what was read up to there counts
    return frozenset(found)


def _counts(source: PromptSource, match: re.Match[str], comments: frozenset[int] | None) -> bool:
    """A # begins a comment only outside of the prompt's own text, and only up to the end of its line."""
    in_part = any(part.start <= match.start() < part.end for part in source.parts)
    if comments is not None:
        return match.start() in comments if match["open"] == "#" else in_part
    if match["open"] != "#":
        return True
    if match["close"] or (source.format in ("markdown", "text") and source.front is None):
        return False
    if source.format in ("prompty", "jinja", "dotprompt", "markdown", "text"):
        return source.front is not None and source.front.start <= match.start() < source.front.end
    return not in_part


def _directive(source: PromptSource, match: re.Match[str]) -> Directive:
    text = source.text
    line_start = text.rfind("\n", 0, match.start()) + 1
    line_end = text.find("\n", match.end())
    line_end = len(text) if line_end < 0 else line_end
    is_alone = not text[line_start : match.start()].strip() and not text[match.end() : line_end].strip()
    line = source.line_col(match.start())[0]
    first = last = line
    if match["file"]:
        first, last = 1, source.line_col(len(text))[0]
    elif is_alone:
        first = last = _next_line(source, line_end, line)
    if not match["file"] and match["open"] == "#":
        first, last = _around_part(source, text[line_start:line_end], first, last)
    codes = frozenset(code.upper() for code in _CODE.findall(match["codes"]))
    return Directive(*match.span(), codes, first, last, is_alone)


def _next_line(source: PromptSource, line_end: int, line: int) -> int:
    following = re.compile(r"\S").search(source.text, line_end)
    return source.line_col(following.start())[0] if following else line


def _around_part(source: PromptSource, line_text: str, first: int, last: int) -> tuple[int, int]:
    for part in source.parts:
        begins, ends = source.line_col(part.start)[0], source.line_col(part.end)[0]
        is_head = _BLOCK_HEAD.search(line_text) is not None and begins == last + 1
        if begins <= last <= ends or is_head:
            return min(first, begins), max(last, ends)
    return first, last


def apply_directives(diagnostics: Iterable[Diagnostic], directives: list[Directive]) -> list[Diagnostic]:
    """The findings that no directive silences; directives learn what they silenced."""
    kept: list[Diagnostic] = []
    for diagnostic in diagnostics:
        hits = [directive for directive in directives if directive.silences(diagnostic)]
        for directive in hits:
            directive.used.update(code for code in directive.codes if diagnostic.code.startswith(code))
            directive.used.add("any")
        if not hits:
            kept.append(diagnostic)
    return kept


def removal(text: str, directive: Directive) -> Edit:
    """The edit that takes a directive out: with its line where it stands alone, else with the blanks before it."""
    start, end = directive.start, directive.end
    line_start = text.rfind("\n", 0, start) + 1
    if directive.is_alone:
        line_end = text.find("\n", end)
        return Edit(line_start, len(text) if line_end < 0 else line_end + 1, "")
    while start > line_start and text[start - 1] in " \t":
        start -= 1
    return Edit(start, end, "")


def noqa_comment(source: PromptSource, line: int, codes: Iterable[str]) -> Edit | None:
    """The edit that silences `codes` on `line`, None where no comment can stand there."""
    text = source.text
    listed = ", ".join(sorted(set(codes)))
    at = source.lines.offset(line)
    in_front = source.front is not None and source.front.start <= at < source.front.end
    if in_front or source.format in ("yaml", "github-models", "promptfoo", "python"):
        line = line if in_front else _outside(source, line)
        comment = f"  # zl: noqa {listed}"
    elif source.dialect == "jinja2" or source.format in ("prompty", "jinja"):
        comment = f"{{# zl: noqa {listed} #}}"
    elif source.dialect in ("handlebars", "mustache"):
        comment = f"{{{{! zl: noqa {listed} }}}}"
    else:
        comment = f" <!-- zl: noqa {listed} -->"
    start = source.lines.offset(line)
    end = start + len(_line(text, start))
    if "zl: noqa" in text[start:end]:
        return None
    return Edit(end, end, comment)


def _outside(source: PromptSource, line: int) -> int:
    """The line whose end is outside of every string that is on `line`, so that a comment there is no part of it."""
    for part in source.parts:
        begins, ends = source.line_col(part.start)[0], source.line_col(max(part.start, part.end - 1))[0]
        if begins <= line <= ends:
            head = _line(source.text, source.lines.offset(begins - 1)) if begins > 1 else ""
            is_block = source.format != "python" and _BLOCK_HEAD_END.search(head)
            return begins - 1 if is_block else source.line_col(part.end)[0]
    return line


def _line(text: str, start: int) -> str:
    end = _LINE_END.search(text, start)
    return text[start : end.start() if end else len(text)]
