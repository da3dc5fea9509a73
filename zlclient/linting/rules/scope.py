"""Who may say what: text of users and third parties inside the owner's instructions."""

# ruff: noqa: D101, D102 - what a rule does is said in texts/, for people who read no code

from __future__ import annotations

import re
from collections.abc import Iterable

from ..diagnostic import Edit, Finding, Fix
from ..document import Document
from ..kinds import MASK
from ..lexicon import holds, matches
from ..rule import Rule
from ._text import is_document, is_enclosed, is_untrusted

FAMILY = "safety"


class UntrustedInSystem(Rule):
    needs = "tags"
    code, slug = "ZL030", "untrusted-in-system"
    message = "`{name}` holds text of others, and the system message gives it the authority of your own instructions"

    def check(self, doc: Document) -> Iterable[Finding]:
        seen: set[str] = set()
        for block in doc.blocks:
            if block.role not in ("system", "developer") or block.part.kind == "text":
                continue
            for variable, start, end in doc.outputs(block):
                if variable.name in seen or not is_untrusted(doc, variable.name):
                    continue
                seen.add(variable.name)
                yield self.in_block(block, start, end, name=variable.name)


class NoTrustNote(Rule):
    needs = "tags"
    code, slug = "ZL031", "undelimited-input"
    fix = "unsafe"
    message = "`{name}` runs on from your instructions: nothing marks where the text of others begins and ends"
    _label = re.compile(r"[:：]\s*$|^[ \t]*#[^\n]*\s*$", re.MULTILINE)

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            if block.role in ("assistant", "tool") or len(block.prose.strip(MASK + " \t\r\n")) < 40:
                continue
            for variable, start, end in doc.outputs(block):
                if not is_untrusted(doc, variable.name) or is_document(variable.name) or is_enclosed(block, start, end):
                    continue
                line = block.line_at(start)
                alone = not block.text[end : line.end].strip()
                if alone and self._label.search(block.text[:start].rstrip(" \t")):
                    continue  # `Question: {{ question }}` at the end of its line is label enough for a short value
                if alone and not block.text[line.start : start].strip() and not block.text[end:].strip():
                    continue  # a last paragraph of its own
                yield self.in_block(block, start, end, _wrap(doc, variable.tag, variable.name), name=variable.name)


def _wrap(doc: Document, span: tuple[int, int], name: str) -> Fix | None:
    """An unsafe fix that puts a tag of the input's name around it."""
    tag = re.sub(r"\W+", "_", name)
    if doc.source.format == "python":
        return None
    return Fix(
        f"Put <{tag}> around it", (Edit(span[0], span[0], f"<{tag}>"), Edit(span[1], span[1], f"</{tag}>")), "unsafe"
    )


class LongDocumentUnanchored(Rule):
    needs = "tags"
    code, slug = "ZL032", "unanchored-document"
    fix = "unsafe"
    message = "The document `{name}` has no tag, fence or heading around it"

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            if block.role in ("assistant", "tool"):
                continue
            instructions = len(block.prose.strip(MASK + " \t\r\n"))
            for variable, start, end in doc.outputs(block):
                if instructions < 12 or not is_document(variable.name) or is_enclosed(block, start, end):
                    continue
                line = block.line_at(start)
                if (block.text[line.start : start] + block.text[end : line.end]).strip():
                    continue  # a phrase within a sentence, whatever its name
                before = block.text[:start].rstrip()
                above = "\n".join(line for line in before.split("\n")[-5:])
                if re.search(
                    r"^[ \t]*(?:#{1,6} [^\n]*|\*\*[^\n]*\*\*|[^\n]{1,100}[:：]\**[ \t]*)$", above, re.MULTILINE
                ):
                    continue
                yield self.in_block(block, start, end, _wrap(doc, variable.tag, variable.name), name=variable.name)


class DynamicRole(Rule):
    needs = "tags"
    code, slug, severity = "ZL033", "dynamic-role", "error"
    message = "The role of this message comes from `{name}`, so whoever sets it can speak as the system"
    _pattern = re.compile(
        r"^[ \t]*#?[ \t]*\{\{-?\s*(?P<name>[\w.\[\]'\"]*role[\w.\[\]'\"]*)\s*-?\}\}[ \t]*:[ \t]*$",
        re.MULTILINE | re.IGNORECASE,
    )

    def check(self, doc: Document) -> Iterable[Finding]:
        if doc.source.format not in ("prompty", "jinja"):
            return
        for match in self._pattern.finditer(doc.text):
            yield self.found(match.span("name"), name=match["name"])


class QueryBeforeDocument(Rule):
    needs = "tags"
    code, slug, severity = "ZL034", "query-before-document", "info"
    message = "The question `{query}` comes before the document `{document}`; answers are better with the question last"

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            found = doc.outputs(block)
            queries = [item for item in found if re.search(r"(?:^|_)(?:question|query|q)$|问题", item[0].name)]
            documents = [item for item in found if is_document(item[0].name)]
            if not queries or not documents:
                continue
            query, document = queries[-1], documents[-1]
            if query[1] < document[1] and len(block.text) - document[2] < len(block.text) // 2:
                yield self.in_block(block, query[1], query[2], query=query[0].name, document=document[0].name)


class SystemNotFirst(Rule):
    code, slug = "ZL035", "late-system"
    message = "This system message comes after a {role} message; most APIs take it only first"

    def check(self, doc: Document) -> Iterable[Finding]:
        if doc.source.format == "python":
            return
        for prompt in doc.prompts:
            earlier = None
            for block in prompt:
                if block.role in ("system", "developer") and earlier and block.part.kind == "message":
                    marker = block.part.marker or (block.part.start, block.part.start + 1)
                    yield self.found((marker[0], marker[1]), role=earlier)
                    break
                if block.role in ("user", "assistant") and block.part.kind == "message":
                    earlier = block.role


class NoUnknownPath(Rule):
    needs = "tags"
    code, slug, severity = "ZL036", "no-unknown-path", "info"
    message = "Nothing says what to answer when {what} is not in the document"

    def check(self, doc: Document) -> Iterable[Finding]:
        for prompt in doc.prompts:
            whole = "\n".join(block.text for block in prompt)
            for block in prompt if len(whole) <= 6000 else ():
                documents = [item for item in doc.outputs(block) if is_document(item[0].name)]
                if not documents or holds("unknown_path", whole):
                    continue
                for sentence in block.sentences:
                    asked = next(matches("extract", sentence.text, block.languages & doc.languages), None)
                    if asked and asked.start() < 12:  # else the sentence tells of extracting
                        yield self.in_block(block, sentence.start, sentence.end, what="a value")
                        return
