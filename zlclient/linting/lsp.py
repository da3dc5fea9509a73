"""The language server: findings while typing, quick fixes, and the rule's page on hover. Needs pygls (extra `lsp`).

It speaks over stdio: `zlclient lint --server`. The position encoding that the client wants (UTF-16 if it says nothing)
is kept to; the linter itself counts code points.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from zlclient import __version__
from zlclient.errors import ConfigError
from zlclient.prompts.offsets import LineIndex

from .diagnostic import Diagnostic, Edit
from .docs import render_rule
from .engine import lint_text
from .lint_settings import LintSettings, load_settings
from .noqa import add_noqa
from .registry import find_rule

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}


@dataclass(frozen=True)
class Linted:
    """A document's text with its findings, and the client's way of counting columns."""

    text: str
    diagnostics: tuple[Diagnostic, ...]
    encoding: str
    lines: LineIndex = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", LineIndex(self.text))

    def position(self, offset: int) -> types.Position:
        """The client's position of an offset."""
        line, column = self.lines.line_col(offset)
        before = self.text[offset - column + 1 : offset]
        return types.Position(line - 1, _units(before, self.encoding))

    def span(self, start: int, end: int) -> types.Range:
        """The client's range of two offsets."""
        return types.Range(self.position(start), self.position(end))

    def at(self, where: types.Range) -> list[Diagnostic]:
        """The findings that a range touches."""
        return [
            item
            for item in self.diagnostics
            if not _before(where.end, self.position(item.start)) and not _before(self.position(item.end), where.start)
        ]


def _units(text: str, encoding: str) -> int:
    if encoding == "utf-16":
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
    return len(text.encode("utf-8", "surrogatepass")) if encoding == "utf-8" else len(text)


def _before(one: types.Position, two: types.Position) -> bool:
    return (one.line, one.character) < (two.line, two.character)


def create_server(options: dict[str, Any] | None = None) -> LanguageServer:
    """The server; `options` are fields of LintSettings that win over the configuration files."""
    server = LanguageServer("zlclient-lint", __version__)
    documents: dict[str, Linted] = {}

    def lint(uri: str) -> None:
        document = server.workspace.get_text_document(uri)
        path = to_fs_path(uri) or uri
        try:
            settings = load_settings(Path(path).parent, **(options or {}))
        except ConfigError as error:
            server.window_show_message(types.ShowMessageParams(types.MessageType.Error, str(error)))
            settings = LintSettings()
        found = tuple(lint_text(document.source, path, settings))
        encoding = cast("str | None", server.workspace.position_encoding) or "utf-16"
        linted = Linted(document.source, found, str(getattr(encoding, "value", encoding)))
        documents[uri] = linted
        published = [_diagnostic(linted, item) for item in found]
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, published, document.version))

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def _opened(params: types.DidOpenTextDocumentParams) -> None:
        lint(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def _changed(params: types.DidChangeTextDocumentParams) -> None:
        lint(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def _closed(params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        documents.pop(uri, None)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
    )
    def _actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        linted = documents.get(params.text_document.uri)
        return _code_actions(linted, params.text_document.uri, params.range) if linted else []

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def _hover(params: types.HoverParams) -> types.Hover | None:
        linted = documents.get(params.text_document.uri)
        found = linted.at(types.Range(params.position, params.position)) if linted else []
        if not linted or not found:
            return None
        page = render_rule(find_rule(found[0].code))
        content = types.MarkupContent(types.MarkupKind.Markdown, page)
        return types.Hover(content, linted.span(found[0].start, found[0].end))

    # Registered with the server; named here so that nobody takes them for unused.
    del _opened, _changed, _closed, _actions, _hover
    return server


def _diagnostic(linted: Linted, item: Diagnostic) -> types.Diagnostic:
    return types.Diagnostic(
        range=linted.span(item.start, item.end),
        message=item.message,
        severity=_SEVERITIES[item.severity],
        code=item.code,
        source="zlclient",
    )


def _code_actions(linted: Linted, uri: str, where: types.Range) -> list[types.CodeAction]:
    actions: list[types.CodeAction] = []
    for item in linted.at(where):
        shown = [_diagnostic(linted, item)]
        if item.fix:
            is_safe = item.fix.safety == "safe"
            title = f"{item.code}: {item.fix.title}" + ("" if is_safe else " (unsafe)")
            edit = _workspace_edit(linted, uri, item.fix.edits)
            actions.append(types.CodeAction(title, types.CodeActionKind.QuickFix, shown, is_safe, edit=edit))
        silenced, count = add_noqa(linted.text, to_fs_path(uri) or uri, [item])
        if count:
            whole = Edit(0, len(linted.text), silenced)
            edit = _workspace_edit(linted, uri, (whole,))
            title = f"{item.code}: Silence it here"
            actions.append(types.CodeAction(title, types.CodeActionKind.QuickFix, shown, edit=edit))
    return actions


def _workspace_edit(linted: Linted, uri: str, edits: tuple[Edit, ...]) -> types.WorkspaceEdit:
    changes = [types.TextEdit(linted.span(edit.start, edit.end), edit.text) for edit in edits]
    return types.WorkspaceEdit(changes={uri: changes})
