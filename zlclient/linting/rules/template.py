"""Templates: syntax, inputs used and declared, dialects."""

# ruff: noqa: D101, D102 - what a rule does is said in texts/, for people who read no code

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, cast

from ..diagnostic import Edit, Finding, Fix
from ..document import Document
from ..rule import Rule
from ._text import in_tags

# A page that lists programs says nothing of how it is rendered itself.
_LISTING = re.compile(
    r"^[ \t]*(?:`{3,}|~{3,})(?:py(?:thon)?|js|javascript|ts|typescript|java|go|rust|bash|sh)\b", re.MULTILINE
)
_HANDLEBARS = re.compile(r"\{\{[#/](?:if|each|unless|with)\b")


class TemplateSyntax(Rule):
    code, slug, severity = "ZL101", "template-syntax", "error"
    message = "The template does not parse: {problem}"

    def check(self, doc: Document) -> Iterable[Finding]:
        for problem in doc.source.problems:
            if problem.code.startswith("template-") and not _is_foreign(doc):
                yield self.found((problem.start, problem.end), problem=problem.message)


def _is_foreign(doc: Document) -> bool:
    return doc.source.dialect == "jinja2" and _HANDLEBARS.search(doc.text) is not None


class UndefinedVariable(Rule):
    needs = "tags"
    code, slug, severity, fix = "ZL102", "undefined-variable", "error", "unsafe"
    message = "`{name}` is not among the declared inputs{hint}"

    def check(self, doc: Document) -> Iterable[Finding]:
        if not doc.has_input_section or doc.source.format == "python":
            return
        known = {item.name for item in doc.inputs}
        builtins = {"thread", "history", "tools", "messages", "chat_history", "this"}
        seen: set[str] = set()
        for variable in doc.source.variables:
            name = variable.name
            if name in known or name in seen or name in builtins or _is_default(doc, variable.tag):
                continue
            seen.add(name)
            close = get_close_matches(name, known, 1, 0.75)
            fix = None
            if close:
                places = [v for v in doc.source.variables if v.name == name]
                edits = tuple(Edit(v.start, v.end, close[0]) for v in places)
                fix = Fix(f"Use {close[0]}", edits, "unsafe", ("variables",))
            hint = f"; did you mean `{close[0]}`?" if close else ""
            yield self.found((variable.start, variable.end), fix, name=name, hint=hint)


def _is_default(doc: Document, tag: tuple[int, int]) -> bool:
    text = doc.text[tag[0] : tag[1]]
    return "default" in text or "is defined" in text or "is not defined" in text


class UnusedInput(Rule):
    code, slug = "ZL103", "unused-input"
    message = "The input `{name}` is declared and never used"

    def check(self, doc: Document) -> Iterable[Finding]:
        source = doc.source
        if not source.templates or (source.dialect == "none" and not source.parts):
            return
        if any(problem.code.startswith("template-") for problem in source.problems):
            return
        body = "\n".join(template.text for template in source.templates)
        if re.search(r"\{%-?\s*(?:include|import|extends|from)\b|\{\{>", body):
            return
        settings = str(doc.data.get("tools", "")) + str(doc.data.get("model", ""))
        for item in doc.inputs:
            kind = str(item.spec.get("kind", item.spec.get("type", "")))
            if item.name in source.names or kind in ("thread", "image", "audio", "file"):
                continue
            # A tool binding, or a name that a helper of the engine takes as a word.
            if re.search(rf"\b{re.escape(item.name)}\b", settings) or re.search(
                rf"\{{[^}}]*\b{re.escape(item.name)}\b", body
            ):
                continue
            yield self.found(item.span, name=item.name)


class DialectMismatch(Rule):
    needs = "tags"
    code, slug, severity = "ZL104", "dialect-mismatch", "warning"
    message = "`{found}` is {other}, and this template is {dialect}: it stays in the prompt as it is"
    _others = (
        (re.compile(r"\{\{[#/](?:if|each|unless|with)\b[^{}\n]{0,80}\}\}"), "Handlebars"),
        (re.compile(r"\{\{-?\s*\.[A-Z]\w*\s*-?\}\}"), "Go's text/template"),
        (re.compile(r"<%[=-]?\s*[\w.]+\s*%>"), "ERB"),
    )
    _field = re.compile(r"(?<![{$\\\w])\$?\{(?P<name>[^\W\d]\w*)\}(?!\})")

    def check(self, doc: Document) -> Iterable[Finding]:
        declared = {item.name for item in doc.inputs}
        for template in doc.source.templates:
            if template.dialect != "jinja2":
                continue
            for pattern, other in self._others:
                match = pattern.search(template.text)
                if match:
                    span = (template.offsets.to_file(match.start()), template.offsets.end_to_file(match.end()))
                    yield self.found(span, found=match[0], other=other, dialect="Jinja")
            for match in self._field.finditer(template.text) if declared else ():
                if match["name"] in declared and not _in_tag(template.tags, match.start()):
                    span = (template.offsets.to_file(match.start()), template.offsets.end_to_file(match.end()))
                    other = "a shell variable" if match[0][0] == "$" else "a str.format field"
                    yield self.found(span, found=match[0], other=other, dialect="Jinja")


def _in_tag(tags: Iterable[Any], offset: int) -> bool:
    return any(tag.start <= offset < tag.end for tag in tags)


class DoubleRender(Rule):
    code, slug, severity = "ZL105", "double-render", "error"
    message = "What was rendered is parsed as a template again, so a value with braces becomes code"
    _pattern = re.compile(
        r"(?:\bTemplate|\bfrom_string|\bfrom_template)\(\s*[\w.]+\.(?:render|format)\(|\.render\([^()\n]*\)\s*\.format\("
    )

    def check(self, doc: Document) -> Iterable[Finding]:
        if doc.source.format == "python" and ("render(" in doc.text or ".format(" in doc.text):
            for match in self._pattern.finditer(doc.text):
                if not any(part.start <= match.start() < part.end for part in doc.source.parts):
                    yield self.found(match.span())


class UnescapedBrace(Rule):
    code, slug, severity, fix = "ZL106", "unescaped-brace", "error", "unsafe"
    message = "`{found}` in a str.format template is read as a field; write {{{{ and }}}}"
    _pattern = re.compile(r"(?<!\{)\{\s*(?P<key>\"[^\"\n{}]{1,60}\"|'[^'\n{}]{1,60}')\s*:[^{}]{0,400}\}(?!\})")

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            template = block.part.template
            if template.dialect != "format" or not _is_formatted(doc, block.text) or _LISTING.search(block.text):
                continue
            for match in self._pattern.finditer(block.text):
                first, last = block.span(match.start(), match.start() + 1), block.span(match.end() - 1, match.end())
                edits = (Edit(*first, "{{"), Edit(*last, "}}"))
                fix = Fix("Double the braces", edits, "unsafe") if doc.text[first[0]] == "{" else None
                yield self.in_block(block, match.start(), match.start() + 1, fix, found="{" + match["key"] + ": …}")


def _is_formatted(doc: Document, text: str) -> bool:
    """Whether a text is surely meant for str.format: it doubles a brace elsewhere, or the file says so."""
    return doc.data.get("template_format") == "f-string" or ".format(" in doc.text or "{{" in text


class AdjacentVariables(Rule):
    needs = "tags"
    code, slug, severity = "ZL107", "adjacent-variables", "warning"
    message = "Nothing separates `{first}` from `{second}`: the model sees one run of text"

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            if block.part.template.dialect not in ("jinja2", "mustache", "handlebars"):
                continue
            spans = {block.span(t.start, t.end): t for t in block.part.tags if t.kind == "output"}
            used = [(v, spans[v.tag]) for v in doc.outputs_in(block) if v.tag in spans]
            for (one, left), (two, right) in pairwise(used):
                simple = all(_is_plain(block.text[tag.start : tag.end]) for tag in (left, right))
                glued = left.end == right.start and one.name != two.name and simple
                before, after = block.text[left.start - 1 : left.start], block.text[right.end : right.end + 1]
                if glued and before in ("", "\n", " ") and after in ("", "\n", " "):
                    yield self.in_block(block, left.start, right.end, first=one.name, second=two.name)


def _is_plain(tag: str) -> bool:
    return re.fullmatch(r"\{\{\s*[\w.]+\s*\}\}", tag) is not None


class DuplicateInput(Rule):
    code, slug = "ZL108", "duplicate-input"
    message = "The input `{name}` is declared twice"

    def check(self, doc: Document) -> Iterable[Finding]:
        seen: set[tuple[str, Any]] = set()
        for item in doc.inputs:
            key = (item.name, item.path[:-1] if isinstance(item.path[-1], int) else item.path)
            if key in seen:
                yield self.found(item.span, name=item.name)
            seen.add(key)


class UnknownFilter(Rule):
    needs = "tags"
    code, slug, severity = "ZL109", "unknown-filter", "error"
    message = "Jinja has no filter `{name}`{hint}"

    def check(self, doc: Document) -> Iterable[Finding]:
        for template in doc.source.templates:
            if template.dialect != "jinja2" or "|" not in template.text:
                continue
            from zlclient.prompts.jinja import environment

            known = {str(name) for name in cast("dict[str, Any]", vars(environment())["filters"])}
            for tag in template.tags:
                if tag.kind not in ("output", "statement"):
                    continue
                for match in re.finditer(r"(?<!\|)\|\s*([a-zA-Z_]\w*)", template.text[tag.inner.start : tag.inner.end]):
                    if match[1] in known:
                        continue
                    close = get_close_matches(match[1], sorted(known), 1, 0.75)
                    # Projects register filters of their own; a .prompty file cannot.
                    if close or doc.source.format == "prompty":
                        start = tag.inner.start + match.start(1)
                        span = (template.offsets.to_file(start), template.offsets.end_to_file(start + len(match[1])))
                        yield self.found(span, name=match[1], hint=f"; did you mean `{close[0]}`?" if close else "")


class EmptyBlock(Rule):
    needs = "tags"
    code, slug, severity = "ZL110", "empty-block", "warning"
    message = "This `{word}` block writes nothing"
    _pattern = re.compile(r"\{%-?\s*(?P<word>if|for)\b[^%]*?%\}(?:\s|\{#[^#]*#\})*\{%-?\s*end(?P=word)\s*-?%\}")

    def check(self, doc: Document) -> Iterable[Finding]:
        for template in doc.source.templates:
            if template.dialect == "jinja2" and "{%" in template.text:
                for match in self._pattern.finditer(template.text):
                    span = (template.offsets.to_file(match.start()), template.offsets.end_to_file(match.end()))
                    yield self.found(span, word=match["word"])


class ShadowedInput(Rule):
    needs = "tags"
    code, slug = "ZL111", "shadowed-input"
    message = "The loop variable `{name}` hides the input of the same name"
    _pattern = re.compile(r"\{%-?\s*for\s+(?P<name>\w+)\s+in\s+(?P<iter>\w+)")

    def check(self, doc: Document) -> Iterable[Finding]:
        for template in doc.source.templates:
            for match in self._loops(template.text if template.dialect == "jinja2" else ""):
                declared = {item.name for item in doc.inputs} | {match["iter"]}
                if match["name"] in declared:
                    span = (
                        template.offsets.to_file(match.start("name")),
                        template.offsets.end_to_file(match.end("name")),
                    )
                    yield self.found(span, name=match["name"])

    def _loops(self, text: str) -> Iterator[re.Match[str]]:
        return self._pattern.finditer(text)


class EmptyMessage(Rule):
    code, slug = "ZL112", "empty-message"
    message = "This {role} message is empty"

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            marker = block.part.marker
            if marker and not block.text.strip() and doc.source.format == "prompty":
                yield self.found((marker[0], marker[1]), role=block.role)


class RandomInTemplate(Rule):
    needs = "tags"
    code, slug, severity = "ZL113", "random-in-template", "warning"
    message = "`{name}` makes each rendering differ: no prompt cache, and no run can be repeated"
    _pattern = re.compile(r"\|\s*(?P<name>random|shuffle)\b|\b(?P<call>random\.\w+|uuid4|randint|lipsum)\s*\(")

    def check(self, doc: Document) -> Iterable[Finding]:
        for block, match in in_tags(doc, self._pattern, ("jinja2", "f-string")):
            yield self.in_block(block, *match.span(), name=match["name"] or match["call"])
