"""Files that cannot be linted, and comments to the linter itself. The engine raises most of these findings."""

# ruff: noqa: D101, D102 - what a rule does is said in texts/, for people who read no code

from __future__ import annotations

from collections.abc import Iterable

from ..diagnostic import Edit, Finding, Fix
from ..document import Document
from ..rule import Rule
from ..suppression import Directive

_BOMS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def other_encoding(data: bytes) -> str | None:
    """None for UTF-8; else what the bytes look like."""
    for mark, name in _BOMS.items():
        if data.startswith(mark):
            return f"; it looks like {name}"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        if b"\0" in data[:8192]:
            return None
        hint = f" (byte {error.start})"
        try:
            text = data.decode("gb18030")
        except UnicodeDecodeError:
            return hint
        chinese = sum("\u4e00" <= char <= "\u9fff" for char in text)
        return f"{hint}; it looks like GBK" if chinese * 3 >= sum(not char.isascii() for char in text) else hint
    return None


class _Raised(Rule):
    """A finding that the engine makes."""

    def check(self, doc: Document) -> Iterable[Finding]:
        del doc
        return ()


class NotUtf8(_Raised):
    code, slug, severity = "ZL001", "not-utf8", "error"
    message = "The file is not UTF-8{hint}; it was not linted"


class Binary(_Raised):
    code, slug, severity = "ZL002", "binary-file", "error"
    message = "The file holds binary data; it was not linted"


class TooLarge(_Raised):
    code, slug, severity = "ZL003", "file-too-large", "error"
    message = "The file has {size} bytes, more than max-size = {limit}; it was not linted"


class Empty(Rule):
    code, slug = "ZL004", "empty-prompt"
    message = "The file holds no prompt text"

    def check(self, doc: Document) -> Iterable[Finding]:
        written = any(block.text.strip() for block in doc.blocks)
        if not written and not doc.source.problems and doc.source.format not in ("python", "yaml", "promptfoo"):
            yield self.found((0, 0))


class UnusedSuppression(_Raised):
    code, slug, severity, fix = "ZL005", "unused-suppression", "info", "safe"
    message = "This comment silences nothing{codes}"

    def unused(self, directive: Directive, removal: Edit, enabled: set[str]) -> Finding | None:
        """The finding for a directive without effect; a rule that did not run may yet need it."""
        if directive.used and not directive.codes:
            return None
        idle = {code for code in directive.codes - directive.used if any(rule.startswith(code) for rule in enabled)}
        if directive.codes and not idle:
            return None
        partly = directive.codes - idle
        fix = None if partly else Fix("Remove the comment", (removal,))
        codes = f": {', '.join(sorted(idle))}" if idle else ""
        return self.found((directive.start, directive.end), fix, codes=codes)


class Unreadable(_Raised):
    code, slug, severity = "ZL006", "unreadable-file", "error"
    message = "The file cannot be read: {reason}"


class RuleFailed(_Raised):
    code, slug, severity = "ZL007", "rule-failed", "error"
    message = "{rule} failed on this file ({error}); please report it"


class PythonSyntax(Rule):
    code, slug, severity = "ZL008", "python-syntax", "error"
    message = "The Python file does not compile, so its prompts were not linted: {problem}"

    def check(self, doc: Document) -> Iterable[Finding]:
        for problem in doc.source.problems:
            if problem.code == "python-syntax":
                yield self.found((problem.start, problem.end), problem=problem.message)
