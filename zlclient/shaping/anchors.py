"""Anchors: the domain tag before the first user text, snippets at the end of the system text, and the density meter.

Everything is placed so that a provider's prompt cache keeps its prefix. A tag depends only on the conversation's first
user text and a snippet only on its name and language, so each further turn begins with the same bytes; nothing volatile
(no date, no counter) is ever added.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ..errors import InputError
from ..reply import Adjustment
from .domains import Domain, language_of

Json = Mapping[str, Any]

# A text that opens with one of these would have the tag swallowed by its first quoted, fenced or tabled line.
_OPENS_STRUCTURE = re.compile(r"\s*(?:[>|#“”\"'「『《`~]|[-*+] |\d+[.)] |<)")
_LEADING_TAG = re.compile(r"\s*【[^【】\n]{1,24}】")
_STRUCTURED_LINE = re.compile(
    r"[ \t\u3000]*(?:"
    r"[-*+•·][ \t]|\(?\d{1,3}[.)、．]|[（(][一二三四五六七八九十\d]{1,3}[)）]|[一二三四五六七八九十]{1,3}、"  # items
    r"|#{1,6}[ \t]|【[^】\n]+】|</?[A-Za-z][\w-]*[^<>\n]*>|\|.*\|"  # headings, anchors, XML tags, table rows
    r"|[^\s:：。.!?！？]{1,24}[:：])"  # key: value
)


def tag_text(text: str, domain: Domain) -> str:
    """`text` with the domain's tag before it; the same object if one of its tags stands there already."""
    lead = _LEADING_TAG.match(text)
    if lead and lead.group().strip() in domain.tags:
        return text
    tag = domain.tag(language_of(text))
    return f"{tag}\n{text}" if _OPENS_STRUCTURE.match(text) else f"{tag}{text}"


def tag_messages(messages: tuple[Json, ...], domain: Domain) -> tuple[tuple[Json, ...], Adjustment | None]:
    """Tag the conversation's first user text; tool results, documents and later turns are left alone."""
    for index, message in enumerate(messages):
        if message["role"] != "user":
            continue
        content = message["content"]
        if isinstance(content, str):
            tagged = tag_text(content, domain)
            if tagged is content:
                return messages, None
            return _with(messages, index, {**message, "content": tagged}), _tag_note(domain, content, index)
        for position, block in enumerate(content):
            if block["type"] == "text" and block.get("text"):
                tagged = tag_text(block["text"], domain)
                if tagged is block["text"]:
                    return messages, None
                blocks = list(content)
                blocks[position] = {**block, "text": tagged}
                note = _tag_note(domain, block["text"], index)
                return _with(messages, index, {**message, "content": blocks}), note
    return messages, None


def _with(messages: tuple[Json, ...], index: int, message: Json) -> tuple[Json, ...]:
    return (*messages[:index], message, *messages[index + 1 :])


def _tag_note(domain: Domain, text: str, index: int) -> Adjustment:
    tag = domain.tag(language_of(text))
    return Adjustment("anchor", "domain-tag", None, tag, f"domain={domain.name!r}, before messages[{index}]")


@cache
def snippets() -> Mapping[str, Mapping[str, str]]:
    """The named system-side snippets: name → language → text."""
    text = (files(__package__ or "zlclient.shaping") / "data" / "snippets.toml").read_text("utf-8")
    return tomllib.loads(text)


def add_snippets(
    system: str | tuple[Json, ...] | None, names: Sequence[str], language: str
) -> tuple[str | tuple[Json, ...] | None, tuple[Adjustment, ...]]:
    """`system` with the named snippets after it, sorted by name, each once.

    Raises:
        InputError: a name is unknown.
    """
    notes: list[Adjustment] = []
    for name in sorted(set(names)):
        snippet = snippets().get(name)
        if snippet is None:
            raise InputError(f"no such snippet {name!r}; known are {', '.join(sorted(snippets()))}", where="anchors")
        text = snippet[language]
        if text in system_text(system):
            continue
        if system is None:
            system = text
        elif isinstance(system, str):
            system = f"{system}\n\n{text}"
        else:
            system = (*system, {"type": "text", "text": text})
        notes.append(Adjustment("anchor", f"snippet-{name}", None, f"{len(text)} characters", "at the end of system"))
    return system, tuple(notes)


def system_text(system: str | tuple[Json, ...] | None) -> str:
    """All text of a system prompt."""
    if system is None or isinstance(system, str):
        return system or ""
    return "\n".join(block.get("text", "") for block in system)


@dataclass(frozen=True, slots=True)
class Density:
    """How much of a prompt is structured instruction, by line: items, headings, anchors, tags, rows, `key: value`."""

    structured: int
    total: int

    @property
    def share(self) -> float:
        """From 0 to 1; an empty prompt has 0."""
        return self.structured / self.total if self.total else 0.0


def anchor_density(text: str) -> Density:
    """The density of `text`; blank lines do not count."""
    lines = [line for line in text.splitlines() if line.strip()]
    return Density(sum(1 for line in lines if _STRUCTURED_LINE.match(line)), len(lines))
