"""Output format: asked for, asked for once, and shown as it is asked for."""

# ruff: noqa: D101, D102 - what a rule does is said in texts/, for people who read no code

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import ClassVar

from ..block import Block
from ..diagnostic import Edit, Finding, Fix
from ..document import Document
from ..lexicon import holds, lowered, matches
from ..rule import Rule

FAMILY = "format"
_ASKS_JSON = re.compile(
    r"\b(?:return|output|respond|reply|answer|produce|generate|give)\b[^.\n]{0,60}\b(?:as|in|with|only|valid|a)?\s*JSON\b"
    r"|(?:输出|返回|以|用|按)[^。\n]{0,20}JSON",
    re.IGNORECASE,
)
_FENCE = re.compile(
    r"^(?P<indent>[ \t]*)```(?P<info>json|JSON)[ \t]*\n(?P<body>.*?)\n[ \t]*```", re.MULTILINE | re.DOTALL
)


class NoOutputFormat(Rule):
    code, slug, severity = "ZL601", "no-output-format", "info"
    message = "`{verb}` asks for data and names no form: give keys, a schema or an example"

    def check(self, doc: Document) -> Iterable[Finding]:
        if {"outputs", "output", "responseFormat", "response_format", "outputSchema"} & doc.data.keys():
            return
        for prompt in doc.prompts:
            if doc.source.format == "python" and all(block.role in ("system", "developer") for block in prompt):
                continue  # what is asked, and in which form, is said by another string
            whole = "\n".join(block.text for block in prompt)
            if (
                len(whole) > 1500
                or holds("output_form", whole)
                or re.search(r"[{\[<]\s*[\"'\w/]+[^{}]*[:>]|```|\|.*\||^\s*[-*]\s", whole, re.M)
            ):
                continue
            for block in prompt:
                for sentence in block.sentences:
                    match = next(matches("extract", sentence.text, block.languages & doc.languages), None)
                    if match and match.start() < 12:
                        yield self.in_block(block, sentence.start, sentence.end, verb=match[0])
                        break


class FormatConflict(Rule):
    code, slug = "ZL602", "format-conflict"
    lexicon = "only_json"
    message = "`{other}` contradicts `{only}` on line {line}"

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            yield from self._block(doc, block)

    def _block(self, doc: Document, block: Block) -> Iterator[Finding]:
        languages = block.languages & doc.languages
        only = next(matches("only_json", block.prose, languages), None)
        if not only:
            return
        for match in matches("prose_too", block.prose, languages):
            sentence = next((s.text for s in block.sentences if s.start <= match.start() < s.end), "")
            inside = re.search(r"field|key|字段|键|\bin the\b|before|reasoning", sentence, re.IGNORECASE)
            if inside or re.search(r"\bif\b|\bwhen\b|如果|若|当", sentence, re.IGNORECASE):
                continue
            where = doc.source.line_col(block.part.to_file(only.start()))[0]
            yield self.in_block(block, *match.span(), other=match[0], only=only[0], line=where)
            return


def _shows_json(block: Block) -> bool:
    return "```" in block.text and "```json" in lowered(block.text)


class ExampleDrift(Rule):
    code, slug = "ZL603", "example-format-drift"
    message = "The JSON example does not parse: {problem}"

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            if not _shows_json(block):
                continue
            for match in _FENCE.finditer(block.text):
                body = match["body"]
                problem = _json_problem(_plain(block, *match.span("body")))
                # A sketch with gaps, types or comments is no example.
                if (
                    problem
                    and not re.search(r"\.\.\.|…|//|/\*|<[^<>\n]+>|\[[A-Z_ ]+\]|#|\||\b\w+/\w+\b", body)
                    and not _is_sketch(body)
                ):
                    at = match.start("body") + min(problem[1], max(0, len(body) - 1))
                    yield self.in_block(block, at, at + 1, problem=problem[0])


def _plain(block: Block, start: int, end: int) -> str:
    """The text with template values as a plain word, and doubled braces of str.format undone."""
    text = block.text[start:end]
    for tag in block.part.tags:
        if start <= tag.start and tag.end <= end:
            low, high = tag.start - start, tag.end - start
            text = text[:low] + "1" * (high - low) + text[high:]
    # Doubled braces around the whole are an escape, also where nothing else tells of str.format.
    if block.part.template.dialect in ("format", "f-string") or re.fullmatch(r"\s*\{\{.*\}\}\s*", text, re.DOTALL):
        text = text.replace("{{", " {").replace("}}", "} ")
    return text


def _json_problem(text: str) -> tuple[str, int] | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return (error.msg, error.pos)
    except (RecursionError, ValueError):
        return None
    return None


def _is_sketch(body: str) -> bool:
    """Whether values are bare words (types, placeholders), more than one document, or template code."""
    bare = re.search(r":\s*(?!true|false|null)[A-Za-z_$\u4e00-\u9fff(]", body)
    quoted_keys = re.search(r"[\"']\s*:", body)
    return (
        (bare is not None and quoted_keys is not None)
        or "{%" in body
        or re.search(r"^\}\s*\n\s*\{", body, re.M) is not None
    )


class OddSpace(Rule):
    code, slug, fix = "ZL604", "full-width-in-code", "unsafe"
    message = "`{char}` ({code}) inside JSON is no JSON punctuation"
    _ascii: ClassVar[dict[str, str]] = {
        "，": ",",
        "：": ":",
        "“": '"',
        "”": '"',
        "｛": "{",
        "｝": "}",
        "［": "[",
        "］": "]",
        "\u3000": " ",
        "\xa0": " ",
    }

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            if not _shows_json(block):
                continue
            for match in _FENCE.finditer(block.text):
                for at in self._outside_strings(block.text, *match.span("body")):
                    char = block.text[at]
                    span = block.span(at, at + 1)
                    fix = (
                        Fix("Write it in ASCII", (Edit(*span, self._ascii[char]),), "unsafe")
                        if doc.text[span[0]] == char
                        else None
                    )
                    yield self.in_block(block, at, at + 1, fix, char=char, code=f"U+{ord(char):04X}")

    def _outside_strings(self, text: str, start: int, end: int) -> Iterator[int]:
        inside = False
        for at in range(start, end):
            if text[at] == '"' and text[at - 1] != "\\":
                inside = not inside
            elif not inside and text[at] in self._ascii:
                yield at


class JsonWithoutKeys(Rule):
    code, slug = "ZL605", "json-without-keys"
    message = "JSON is asked for and no key is named: each answer may have others"

    def check(self, doc: Document) -> Iterable[Finding]:
        if {"outputs", "output", "responseFormat", "response_format", "tools", "jsonSchema"} & doc.data.keys():
            return
        for prompt in doc.prompts if "json" in doc.low else ():
            whole = "\n".join(block.text for block in prompt)
            if re.search(r"[\"'`“]\w[\w -]*[\"'`”]|\{|\[|```|<\w+>|schema", whole) or holds("json_keys", whole):
                continue
            for block in prompt:
                match = _ASKS_JSON.search(block.prose)
                if match and doc.source.format != "python":
                    yield self.in_block(block, *match.span())
                    break


class FencedJson(Rule):
    code, slug, severity = "ZL606", "fence-and-no-fence", "warning"
    message = "The answer is to have no code fence, and the example shows one"
    _ban = re.compile(
        r"\b(?:no|without|do not (?:use|include|wrap|add)|don't (?:use|include|wrap|add))\b(?: \w+){0,4}? (?:\()?"
        r"(?:markdown(?! (?:head|list|table|link))|code (?:fence|block)s?|backticks|```)"
        r"|不要(?:使用|包含|加|包裹|用|放)?[^。、，\n]{0,10}(?:代码块(?!包裹的)|```|(?<!图片)(?<!图片 )Markdown)",
        re.IGNORECASE,
    )

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            if _shows_json(block) and _ASKS_JSON.search(block.prose):
                ban = self._ban.search(block.shown)
                fence = _FENCE.search(block.text)
                if ban and fence:
                    yield self.in_block(block, *ban.span())
