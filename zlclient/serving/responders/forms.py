"""The form that a request asks its answer in: a list, a table, JSON, and the fields that it wants extracted.

form_of("Extract the revenue, net income and CEO as a table.")
# Form(kind="table", fields=("revenue", "net income", "CEO"))
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from ...errors import ConfigError
from ..value_kinds import kind_of
from .reading import SUMMARY, Language, names_of_fields

Kind = Literal["plain", "bullets", "numbers", "table", "json"]
Row = Sequence[str | None]
NOT_STATED = {"zh": "未提及", "en": "not stated"}
_HEADS = {"zh": ("字段", "内容"), "en": ("Field", "Value")}
_KINDS: tuple[Kind, ...] = ("json", "table", "numbers", "bullets")
_LONGEST = {"zh": 12, "en": 32}  # characters of a field's name
_KEYS = re.compile(r"[{,]\s*\"([^\"]+)\"\s*:")  # {"name": "", "date": ""}
_REMARK = re.compile(r"(?<=\S)\s?[(（][^()（）]*[)）]?")  # guest (full name)
_CLAUSE = re.compile(r"(?<=\w)\s+(?:it|they|he|she|you|we|that|which|when|where)\s.*", re.DOTALL)  # the date it is due
_BLANKS = re.compile(r"(?m)^[\s\-*•]*([^:：\n]{1,32})[:：][ _…]*$")  # a template: labels with nothing after them
_FILE = "serving/data/forms.toml"


@dataclass(frozen=True, slots=True)
class Form:
    """How an answer is laid out, and the fields to extract; no fields where a question is asked or a summary."""

    kind: Kind = "plain"
    fields: tuple[str, ...] = ()

    def lay_out(self, items: Sequence[str], joint: str) -> str:
        """Sentences or other items in this form; `joint` is between them where they are plain."""
        match self.kind:
            case "bullets":
                return "\n".join(f"- {item}" for item in items)
            case "numbers":
                return "\n".join(f"{at}. {item}" for at, item in enumerate(items, 1))
            case "table":
                return table(("#", ""), [(str(at), item) for at, item in enumerate(items, 1)])
            case "json":
                return json.dumps(list(items), ensure_ascii=False, indent=2)
            case _:
                return joint.join(items)

    def lay_out_fields(self, values: Row, language: Language) -> str:
        """The fields with their values in this form."""
        if self.kind == "json":
            return json.dumps(dict(zip(self.fields, values, strict=True)), ensure_ascii=False, indent=2)
        stated = [NOT_STATED[language] if value is None else value for value in values]
        pairs = list(zip(self.fields, stated, strict=True))
        if self.kind == "table":
            return table(_HEADS[language], pairs)
        colon = "：" if language == "zh" else ": "
        lines = [f"{name}{colon}{value}" for name, value in pairs]
        return "\n".join(f"{at}. {line}" if self.kind == "numbers" else f"- {line}" if self.kind == "bullets" else line
                         for at, line in enumerate(lines, 1))  # fmt: skip

    def lay_out_records(self, rows: Sequence[Row], language: Language) -> str:
        """The fields of several things, a row each; JSON where it is asked for, else a table."""
        if self.kind == "json":
            records: list[dict[str, Any]] = [dict(zip(self.fields, row, strict=True)) for row in rows]
            return json.dumps(records, ensure_ascii=False, indent=2)
        return table(
            self.fields, [[cell if cell is not None else NOT_STATED[language] for cell in row] for row in rows]
        )


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [_row(heads), "|" + "---|" * len(heads), *map(_row, rows)]
    return "\n".join(lines)


def form_of(question: str) -> Form:
    """The form that `question` asks for; plain where it says nothing of one."""
    if _KEYS.search(question):
        return Form("json", _fields(question))
    fitting: list[Kind] = [kind for kind, pattern in _patterns().kinds if pattern.search(question)]
    return Form(*fitting[:1], fields=_fields(question))


def _fields(question: str) -> tuple[str, ...]:
    """The names in `extract A, B and C`: two or more, each short; none where it is a list of sentences or the like."""
    if SUMMARY.search(question) and not _patterns().named.search(question):
        return ()
    for wanted in _wanted(question):
        names = _names(wanted)
        if len(names) > 1:
            return names
    return ()


def _wanted(question: str) -> Iterator[str]:
    patterns = _patterns()
    keys = _KEYS.findall(question) or _BLANKS.findall(question)
    quoted = patterns.quoted.findall(question) if len(keys) < 2 else keys
    if len(quoted) > 1:
        yield "、".join(quoted)
    for pattern in patterns.wanted:
        yield from (match[1] for match in pattern.finditer(question))
    yield from (line for line in question.split("\n") if names_of_fields(line))
    for pattern in patterns.questions:
        yield from (match[1] for match in pattern.finditer(question) if all(map(kind_of, _names(match[1]))))
    for pattern in patterns.listed if patterns.extracts.search(question) else ():
        yield from (match[1] for match in pattern.finditer(question))


def _names(wanted: str) -> tuple[str, ...]:
    """The names in `wanted`, or none where one of its parts is no name."""
    patterns = _patterns()
    text = _REMARK.sub("", wanted).strip(" .。:：")
    while (fewer := patterns.manner.sub("", text).strip()) != text:
        text = fewer
    text = patterns.outside.sub("", text)
    names = [name for part in patterns.between.split(text) if (name := _named(part))]
    if any(len(name) > _LONGEST["en" if name.isascii() else "zh"] or patterns.no_name.search(name) for name in names):
        return ()
    return tuple(dict.fromkeys(names))


def _named(part: str) -> str:
    plain = _CLAUSE.sub("", _patterns().lead.sub("", part.strip(" \t:：\"'“”‘’「」`().（）")))
    return plain.strip()


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


@dataclass(frozen=True, slots=True)
class _Patterns:
    kinds: tuple[tuple[Kind, re.Pattern[str]], ...]
    wanted: tuple[re.Pattern[str], ...]
    extracts: re.Pattern[str]
    named: re.Pattern[str]
    listed: tuple[re.Pattern[str], ...]
    questions: tuple[re.Pattern[str], ...]
    manner: re.Pattern[str]
    outside: re.Pattern[str]
    between: re.Pattern[str]
    quoted: re.Pattern[str]
    lead: re.Pattern[str]
    no_name: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    data: dict[str, Any] = tomllib.loads((files("zlclient.serving") / "data" / "forms.toml").read_text("utf-8"))
    fields = data["fields"]
    try:
        return _Patterns(
            kinds=tuple((kind, _compiled(data["kind"][kind])) for kind in _KINDS),
            wanted=tuple(map(_compiled, fields["wanted"])),
            extracts=_compiled(fields["extracts"]),
            named=_compiled(fields["named"]),
            listed=tuple(_compiled(pattern.replace("{word}", fields["word"])) for pattern in fields["listed"]),
            questions=tuple(map(_compiled, fields["questions"])),
            manner=_compiled(f"(?:{'|'.join(fields['manner'])})$"),
            outside=_compiled(f"^{fields['outside']}"),
            between=_compiled(fields["between"]),
            quoted=_compiled(fields["quoted"]),
            lead=_compiled(f"^(?:{fields['lead']})"),
            no_name=_compiled(fields["no_name"]),
        )
    except (KeyError, re.error) as error:
        raise ConfigError(f"not the patterns of forms: {error}", file=_FILE) from None


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
