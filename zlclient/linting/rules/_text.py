"""What several families need: edits inside a block, deletions, names of inputs that hold what others wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from zlclient.prompts.parts import Dialect

from ..block import Block, Sentence
from ..diagnostic import Edit, Fix
from ..document import Document
from ..lexicon import matches

_UNTRUSTED = re.compile(
    r"(?:^|_)(?:user_?(?:input|message|query|question|text|prompt|content)|question|query|message|messages|email|e_?mail"
    r"|comment|review|feedback|ticket|document|documents|docs?|context|contexts|article|transcript|conversation|page"
    r"|web_?page|html|search_?results?|results|retrieved|passages?|snippets?|chunks?|attachment|file_?content|raw_?text"
    r"|user_?data|customer_?message|issue_?body|diff)(?:$|_\d+$)|用户输入|问题|文档|正文|邮件",
    re.IGNORECASE,
)
_DOCUMENT = re.compile(
    r"(?:^|_)(?:document|documents|docs?|context|contexts|article|transcript|contract|report|paper|passages?|chunks?"
    r"|source_?text|file_?content|page_?content|search_?results?|full_?text|book|manual|knowledge|合同|文档|正文|原文)(?:s?$|_\d+$)",
    re.IGNORECASE,
)


# What an application itself knows of its parts is called context too, and what it says message.
_OWN_CONTEXT = re.compile(
    r"(?:^|_)(?:person(?:a|ality)|system|agent|tools?|time|date|locale|location|style|role|brand|format)_contexts?$"
    r"|(?:^|_)(?:assistant|system|bot|ai|agent|developer|welcome|error)_(?:messages?|prompts?|content|text)$",
    re.IGNORECASE,
)
_OPEN_TAG = re.compile(r"<([A-Za-z_\u4e00-\u9fff][\w.-]{0,60})[^<>\n]{0,300}>")
_FORBIDS = re.compile(
    r"(?:\bnot?|n['’]t|\bnever|\bwithout|\bavoid|不要|不得|禁止|严禁|避免|请勿|没有)[^.。;；\n]{0,30}\Z", re.IGNORECASE
)
_CLOSE_TAG = re.compile(r"</([A-Za-z_\u4e00-\u9fff][\w.-]{0,60})>")


def edit_in(doc: Document, block: Block, start: int, end: int, new: str) -> Edit | None:
    """The edit of `block.text[start:end]`, None where the file writes that text differently (escapes, folding)."""
    span = block.span(start, end)
    return Edit(*span, new) if doc.text[span.start : span.end] == block.text[start:end] else None


def fix_in(doc: Document, block: Block, start: int, end: int, new: str, title: str, safety: str = "safe") -> Fix | None:
    """A fix of one edit in a block."""
    edit = edit_in(doc, block, start, end, new)
    return Fix(title, (edit,), "safe" if safety == "safe" else "unsafe") if edit else None


def delete_sentence(doc: Document, block: Block, sentence: Sentence, title: str) -> Fix | None:
    """An unsafe fix that takes a sentence out, with its line where nothing else stands there."""
    start, end = sentence.start, sentence.end
    if any(start < tag.end and tag.start < end for tag in block.part.tags):
        return None
    line = block.line_at(start)
    before, after = block.text[line.start : start], block.text[end : line.end]
    if not before.strip(" \t-*•0123456789.)、#>") and not after.strip() and end <= line.end:
        start, end = line.start, min(line.end + 1, len(block.text))
    elif after[:1] == " ":
        end += 1
    elif before.endswith(" ") and not after.strip():
        start -= 1
    return fix_in(doc, block, start, end, "", title, "unsafe")


def in_tags(
    doc: Document, pattern: re.Pattern[str], dialects: tuple[Dialect, ...]
) -> Iterator[tuple[Block, re.Match[str]]]:
    """Where `pattern` stands in a tag that a template of one of `dialects` evaluates, with the block."""
    for block in doc.blocks:
        if block.part.template.dialect not in dialects:
            continue
        for tag in block.part.tags:
            if tag.kind in ("output", "statement"):
                for match in pattern.finditer(block.text, tag.start, tag.end):
                    yield block, match


def phrase_hits(
    doc: Document, name: str, counts: Callable[[Block], bool] | None = None
) -> Iterator[tuple[Block, Sentence, int, int, str]]:
    """(block, sentence, start, end, phrase) of every match of a word list in instructions; offsets of the block.

    `counts` tells which blocks to look at; None means all.
    """
    for block in doc.blocks:
        if counts and not counts(block):
            continue
        for match in matches(name, block.prose, block.languages & doc.languages):
            sentence = block.sentence_at(match.start())
            if sentence:
                yield block, sentence, *match.span(), block.prose[match.start() : match.end()]


def is_untrusted(doc: Document, name: str) -> bool:
    """Whether an input holds what users or third parties wrote: declared so, or named so."""
    for item in doc.inputs:
        if item.name == name and item.trust:
            return item.trust == "untrusted"
    return _UNTRUSTED.search(name) is not None and not _OWN_CONTEXT.search(name)


def is_document(name: str) -> bool:
    """Whether an input is named like a long text."""
    return _DOCUMENT.search(name) is not None and not _OWN_CONTEXT.search(name)


def forbids(text: str) -> bool:
    """Whether the words before a phrase forbid what it names."""
    return _FORBIDS.search(text) is not None


def is_enclosed(block: Block, start: int, end: int) -> bool:
    """Whether a template tag stands between delimiters: XML-like tags, fences, quotes, or under a line of its own."""
    text = block.text
    before, after = text[:start].rstrip(), text[end:].lstrip()
    if re.search(r"<[\w\u4e00-\u9fff][^<>\n]*>$|\]$|】$", before) and re.match(r"</|\[/?|【", after):
        return True
    if before.endswith(("```", '"""', "'''", "---", "===", "###", "***")) or re.search(r"```\w*$", before):
        return True
    if before.endswith("|>") and after.startswith("<|"):
        return True  # between the marks of a model's own chat format
    if before[-1:] in "\"'“「『`" and before and after[:1] in "\"'”」』`" and after:
        return True
    return _open_tag(text[max(0, start - 4000) : start], text[end : end + 4000])


def _open_tag(before: str, after: str) -> bool:
    """Whether a tag is open here: begun before and not ended, and ended after."""
    closed = set(_CLOSE_TAG.findall(after))
    return any(
        name in closed and before.rfind(f"<{name}") > before.rfind(f"</{name}>") for name in _OPEN_TAG.findall(before)
    )
