"""Lint one file: read it, parse it, run the rules, apply suppressions. Broken files are findings, not tracebacks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from zlclient.prompts.source import PromptSource, parse_source

from .diagnostic import Diagnostic, Finding
from .document import Document
from .lint_settings import LintSettings
from .rule import Rule
from .rules import file as file_rules
from .suppression import apply_directives, find_directives, removal

UNREADABLE = frozenset(["ZL001", "ZL002", "ZL003", "ZL006", "ZL007"])


@dataclass(frozen=True, slots=True)
class FileReport:
    """The findings of one file; `text` is what was linted, None where it could not be read."""

    path: str
    diagnostics: tuple[Diagnostic, ...]
    text: str | None = None

    @property
    def is_unreadable(self) -> bool:
        """Whether the file could not be linted at all."""
        return any(diagnostic.code in UNREADABLE for diagnostic in self.diagnostics)


def lint_file(path: str | Path, settings: LintSettings) -> FileReport:
    """Lint the file at `path`."""
    name = str(path)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        return FileReport(name, (_whole(name, file_rules.Unreadable(), reason=error.strerror or "cannot be read"),))
    return lint_bytes(data, name, settings)


def lint_bytes(data: bytes, path: str, settings: LintSettings) -> FileReport:
    """Lint the content of a file."""
    rule, words = _refuse(data, settings.max_size)
    if rule:
        return FileReport(path, (_whole(path, rule, **words),))
    text = data.decode("utf-8")
    try:
        return FileReport(path, tuple(lint_text(text, path, settings)), text)
    except Exception as error:  # noqa: BLE001 - one strange file must not end the run over all others
        return FileReport(path, (_whole(path, file_rules.RuleFailed(), rule="the linter", error=type(error).__name__),))


def _refuse(data: bytes, max_size: int) -> tuple[Rule | None, dict[str, object]]:
    if len(data) > max_size:
        return file_rules.TooLarge(), {"size": len(data), "limit": max_size}
    encoding = file_rules.other_encoding(data)
    if encoding:
        return file_rules.NotUtf8(), {"hint": encoding}
    return (file_rules.Binary(), {}) if b"\0" in data[:8192] else (None, {})


def _whole(path: str, broken: Rule, /, **words: object) -> Diagnostic:
    message = broken.message.format(**words)
    return Diagnostic(path, 1, 1, 1, 1, broken.code, broken.slug, broken.severity, message, 0, 0)


def lint_text(text: str, path: str | None, settings: LintSettings) -> list[Diagnostic]:
    """Lint prompt text; `path` names it and tells its format. Findings are in the order of the file."""
    rules = settings.rules_for(path)
    name = path or "<text>"
    try:
        source = parse_source(text, path)
    except (RecursionError, MemoryError) as error:
        return [_whole(name, file_rules.RuleFailed(), rule="the parser", error=type(error).__name__)]
    document = Document(
        source,
        settings.today,
        settings.target,
        settings.force_target,
        frozenset(settings.languages),
        dict(settings.house),
    )
    found: list[Diagnostic] = []
    for rule in rules:
        if (rule.needs is None or rule.needs in document.has) and (not rule.lexicon or document.may_hold(rule.lexicon)):
            found += _run(rule, document, name)
    found += _suppress(found, rules, document, name)
    found.sort(key=lambda item: (item.start, item.code, item.end))
    return found


def _run(rule: Rule, document: Document, name: str) -> list[Diagnostic]:
    try:
        return [place(finding, rule, document.source, name) for finding in rule.check(document)]
    except Exception as error:  # noqa: BLE001 - one rule's mistake must not hide the findings of the others
        return [_whole(name, file_rules.RuleFailed(), rule=rule.code, error=type(error).__name__)]


def _suppress(found: list[Diagnostic], rules: tuple[Rule, ...], document: Document, name: str) -> list[Diagnostic]:
    """Take silenced findings out of `found`; returns the findings about comments that silenced nothing."""
    directives = find_directives(document.source)
    if not directives:
        return []
    found[:] = apply_directives(found, directives)
    unused = next((rule for rule in rules if isinstance(rule, file_rules.UnusedSuppression)), None)
    if not unused:
        return []
    enabled = {rule.code for rule in rules}
    reported: list[Diagnostic] = []
    for directive in directives:
        edit = removal(document.text, directive)
        finding = unused.unused(directive, edit, enabled)
        if finding:
            reported.append(place(finding, unused, document.source, name))
    return apply_directives(reported, [item for item in directives if "ZL005" in item.codes])


def place(finding: Finding, rule: Rule, source: PromptSource, name: str) -> Diagnostic:
    """The finding with lines and columns."""
    size = len(source.text)
    start, end = min(finding.start, size), min(max(finding.start, finding.end), size)
    line, column = source.line_col(start)
    end_line, end_column = source.line_col(end)
    first = source.lines.offset(line)
    stop = source.text.find("\n", first)
    shown = source.text[first : min(size if stop < 0 else stop, first + 400)].rstrip("\r")
    return Diagnostic(
        name, line, column, end_line, end_column, rule.code, rule.slug, rule.severity, finding.message, start, end,
        finding.fix, shown,
    )  # fmt: skip
