"""The form that a request asks its answer in: a list, a table, and the fields that it wants extracted.

form_of("Extract the revenue, net income and CEO as a table.")
# Form(kind="table", fields=("revenue", "net income", "CEO"))
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .reading import Language

Kind = Literal["plain", "bullets", "numbers", "table"]
NOT_STATED = {"zh": "未提及", "en": "not stated"}
_HEADS = {"zh": ("字段", "内容"), "en": ("Field", "Value")}
_TABLE = re.compile(r"表格|列表格|制表|\btable\b|\btabular\b", re.IGNORECASE)
_NUMBERS = re.compile(r"编号|序号|有序列表|\bnumbered\b|\bordered list\b", re.IGNORECASE)
_BULLETS = re.compile(
    r"列表|清单|逐条|分条|分点|要点|项目符号|\bbullets?\b|\bbulleted\b|\b(?:as|in) a list\b|\ba list of\b",
    re.IGNORECASE,
)
_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (("table", _TABLE), ("numbers", _NUMBERS), ("bullets", _BULLETS))
_WANTED = re.compile(
    r"(?:提取|抽取|摘出|找出|列出)(?:文中|以上|下面|其中)?(?:的|出)?(?P<zh>[^。？！\n]+)"
    r"|\b(?:extract|pull out|list|find|give me)\s+(?:the\s+)?(?P<en>[^.?!\n]+)",
    re.IGNORECASE,
)
# Where what is wanted ends and how it is wanted begins.
_MANNER = re.compile(
    r"[，,；;]?\s*(?:并?(?:以|用|按|做成|整理成|输出为|成为?)(?:一个|一张)?(?:表格|列表|清单|json|markdown|项目符号).*$|(?:的)?(?:表格|列表|清单)$)"
    r"|[,;]?\s*(?:(?:and\s+(?:put|format|return|give)\b.*|(?:as|in|into)\s+(?:an?\s+)?(?:\w+\s+)?(?:table|list|bullets?|json|markdown)\b.*"
    r"|from the (?:text|passage|document|report|article|contract).*))$",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"[、，,；;]\s*(?:and\s+|以?及|和)?|\s*(?:以及|和|及|与)\s*|\s+and\s+|\s*&\s*")
_LONGEST = {"zh": 12, "en": 32}  # characters of a field's name


@dataclass(frozen=True, slots=True)
class Form:
    """How an answer is laid out, and the fields to extract; no fields where a question is asked or a summary."""

    kind: Kind = "plain"
    fields: tuple[str, ...] = ()

    def lay_out(self, items: Sequence[str], joint: str) -> str:
        """Sentences in this form; `joint` is between them where they are plain."""
        match self.kind:
            case "bullets":
                return "\n".join(f"- {item}" for item in items)
            case "numbers":
                return "\n".join(f"{at}. {item}" for at, item in enumerate(items, 1))
            case "table":
                return "\n".join(
                    ["| # | |", "|---|---|", *(f"| {at} | {_cell(item)} |" for at, item in enumerate(items, 1))]
                )
            case _:
                return joint.join(items)

    def lay_out_fields(self, values: Sequence[str | None], language: Language) -> str:
        """The fields with their values in this form."""
        stated = [NOT_STATED[language] if value is None else value for value in values]
        pairs = list(zip(self.fields, stated, strict=True))
        if self.kind == "table":
            head = _HEADS[language]
            rows = [f"| {_cell(name)} | {_cell(value)} |" for name, value in pairs]
            return "\n".join([f"| {head[0]} | {head[1]} |", "|---|---|", *rows])
        colon = "：" if language == "zh" else ": "
        lines = [f"{name}{colon}{value}" for name, value in pairs]
        return "\n".join(f"{at}. {line}" if self.kind == "numbers" else f"- {line}" if self.kind == "bullets" else line
                         for at, line in enumerate(lines, 1))  # fmt: skip


def form_of(question: str) -> Form:
    """The form that `question` asks for; plain where it says nothing of one."""
    for kind, pattern in _KINDS:
        if pattern.search(question):
            return Form(kind, _fields(question))
    return Form("plain", _fields(question))


def _fields(question: str) -> tuple[str, ...]:
    """The names in `extract A, B and C`: two or more, each short; none where it is a list of sentences or the like."""
    for match in _WANTED.finditer(question):
        language: Language = "zh" if match["zh"] else "en"
        wanted = _MANNER.sub("", (match["zh"] or match["en"]).strip())
        names = [_named(part) for part in _BETWEEN.split(wanted)]
        if len(names) > 1 and all(0 < len(name) <= _LONGEST[language] for name in names):
            return tuple(dict.fromkeys(names))
    return ()


def _named(part: str) -> str:
    part = part.strip(" \t:：\"'“”「」`")
    return re.sub(r"^(?:the|its|his|her|their|以下|该|其)\s*", "", part, flags=re.IGNORECASE).strip()


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
