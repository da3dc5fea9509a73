"""Prompts in Python files: string literals that are passed or named as prompts, with positions inside the literal."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from .braces import has_single_field, read_template, sniff
from .offsets import LineIndex, OffsetMap
from .parts import ROLE_NAMES, Part, Problem, PromptSource, Role, Span, Tag, TemplateText, Variable
from .python_strings import Literal, read_literals
from .source import cut

_NAME = re.compile(r"prompt|template|instruction|persona|rubric|(?:\A|_)system(?:_|\Z)|\Asystem", re.IGNORECASE)
_KEYWORDS: dict[str, Role | None] = {
    "system": "system",
    "system_prompt": "system",
    "system_message": "system",
    "system_instruction": "system",
    "instructions": "system",
    "developer": "developer",
    "prompt": None,
    "user_prompt": "user",
    "template": None,
    "prompt_template": None,
}
_CALLS = frozenset(["chat", "ask", "complete", "generate", "from_template", "PromptTemplate", "lint"])
_MESSAGE_CALLS: dict[str, Role] = {
    "SystemMessage": "system",
    "HumanMessage": "user",
    "AIMessage": "assistant",
    "SystemMessagePromptTemplate": "system",
}
_WRAPPERS = frozenset(["dedent", "cleandoc", "PromptTemplate", "Template", "str", "from_template"])
_SHORT = 20

Named = tuple[ast.expr, Role | None, str]


def parse_python(text: str, path: str | None) -> PromptSource:
    """Parse a Python file; each prompt literal is a part. Code that does not compile is one problem."""
    problems: list[Problem] = []
    parts: list[Part] = []
    templates: list[TemplateText] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        problems.append(_syntax_problem(text, error))
    else:
        seen: set[tuple[int, int]] = set()
        index = _Positions(text)
        for expression, role, name in _named_prompts(tree):
            for literal in _strings(expression, index):
                if (literal.start, literal.end) in seen or not literal.text.strip():
                    continue
                seen.add((literal.start, literal.end))
                template = _template(literal, expression)
                templates.append(template)
                problems += template.problems
                parts.append(cut(template, 0, len(template.text), role, "literal", name=name))
    order = sorted(range(len(parts)), key=lambda number: parts[number].start)
    return PromptSource(
        text=text,
        path=path,
        format="python",
        front=None,
        templates=tuple(templates[number] for number in order),
        parts=tuple(parts[number] for number in order),
        problems=tuple(problems),
    )


def _syntax_problem(text: str, error: Exception) -> Problem:
    line, column = (error.lineno or 1, error.offset or 1) if isinstance(error, SyntaxError) else (1, 1)
    message = (error.msg if isinstance(error, SyntaxError) else str(error)) or "the file does not compile"
    at = min(LineIndex(text).offset(line, max(column, 1)), len(text))
    return Problem("python-syntax", message.splitlines()[0], at, at)


class _Positions:
    """Turns ast's (line, UTF-8 column) into offsets of the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._shift = 1 if text.startswith("\ufeff") else 0
        self._lines = LineIndex(text)

    def offset(self, line: int, column: int) -> int:
        start = self._lines.offset(line) + (self._shift if line == 1 else 0)
        if self.text[start : start + column].isascii():
            return start + column
        return start + len(
            self.text[start : start + column].encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore")
        )

    def span(self, node: ast.expr) -> Span:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return Span(self.offset(node.lineno, node.col_offset), self.offset(end_line, end_column))


def _named_prompts(tree: ast.Module) -> Iterator[Named]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _assigned(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            yield from _assigned(node.target, node.value)
        elif isinstance(node, ast.Call):
            yield from _called(node)
        elif isinstance(node, ast.Dict):
            yield from _message(node)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[Named]:
    name = _last_name(target)
    if not _NAME.search(name):
        return
    role: Role | None = "system" if "system" in name.lower() else None
    if isinstance(value, ast.Dict):
        for key, item in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and _is_long(item):
                yield item, role, f"{name}[{key.value!r}]"
    elif _is_long(value):
        yield value, role, name


def _is_long(value: ast.expr) -> bool:
    # A short string under a prompt's name is a file name, a key or a shell's prompt.
    size = 0
    for node in ast.walk(value):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            size += len(node.value) if node.value.isascii() else 2 * len(node.value)
    return size >= _SHORT


def _called(node: ast.Call) -> Iterator[Named]:
    function = node.func
    name = (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
    keywords = {word.arg: word.value for word in node.keywords if word.arg}
    role = keywords.get("role")
    if isinstance(role, ast.Constant) and role.value in ROLE_NAMES and "content" in keywords:
        yield keywords["content"], ROLE_NAMES[role.value], f"{name}(content)"
    for word, value in keywords.items():
        if word in _KEYWORDS:
            yield value, _KEYWORDS[word], f"{name}({word})"
    if name in _MESSAGE_CALLS:
        for value in [*node.args[:1], *([keywords["content"]] if "content" in keywords else [])]:
            yield value, _MESSAGE_CALLS[name], name
    elif name in _CALLS and node.args and not isinstance(node.args[0], (ast.List, ast.Dict)):
        yield node.args[0], None, name
    elif name in ("from_messages", "ChatPromptTemplate") and node.args and isinstance(node.args[0], ast.List):
        for item in node.args[0].elts:
            if isinstance(item, ast.Tuple) and len(item.elts) == 2 and isinstance(item.elts[0], ast.Constant):
                yield item.elts[1], ROLE_NAMES.get(str(item.elts[0].value)), name


def _message(node: ast.Dict) -> Iterator[Named]:
    fields = {
        key.value: value
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }
    role = fields.get("role")
    if not isinstance(role, ast.Constant) or role.value not in ROLE_NAMES or "content" not in fields:
        return
    content = fields["content"]
    blocks = content.elts if isinstance(content, ast.List) else [content]
    for block in blocks:
        if isinstance(block, ast.Dict):
            for key, value in zip(block.keys, block.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "text":
                    yield value, ROLE_NAMES[role.value], "content"
        else:
            yield block, ROLE_NAMES[role.value], "content"


def _strings(node: ast.expr, index: _Positions) -> Iterator[Literal]:
    """The literals a prompt expression is made of: joined, dedented, formatted or chosen between."""
    if isinstance(node, ast.JoinedStr):
        yield from read_literals(index.text, index.span(node), None)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield from read_literals(index.text, index.span(node), node.value)
    elif isinstance(node, ast.BinOp):
        yield from _strings(node.left, index)
        if isinstance(node.op, ast.Add):
            yield from _strings(node.right, index)
    elif isinstance(node, ast.IfExp):
        yield from _strings(node.body, index)
        yield from _strings(node.orelse, index)
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and isinstance(
            node.func.value, (ast.Constant, ast.JoinedStr, ast.Call)
        ):
            yield from _strings(node.func.value, index)
        elif node.args and isinstance(node.func, (ast.Name, ast.Attribute)):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if name in ("dedent", "cleandoc", "PromptTemplate", "Template", "str", "from_template"):
                yield from _strings(node.args[0], index)


def _template(literal: Literal, expression: ast.expr) -> TemplateText:
    offsets = OffsetMap.joined(literal.pieces, literal.start)
    if literal.is_formatted:
        tags = tuple(Tag("output", start, end, Span(start + 1, end - 1)) for start, end, _ in literal.fields)
        variables = [
            Variable(name, first, first + len(name), Span(offsets.to_file(start), offsets.end_to_file(end)), True)
            for start, end, names in literal.fields
            for name, first in ((name, offsets.to_file(at)) for name, at in names)
        ]
        return TemplateText(literal.text, offsets, "f-string" if tags else "none", tags, tuple(variables))
    dialect = sniff(literal.text)
    is_formatted_later = any(isinstance(node, ast.Attribute) and node.attr == "format" for node in ast.walk(expression))
    # {{"a": 1}} beside {name} is str.format's escape, not a template tag.
    if is_formatted_later or (dialect == "jinja2" and "{%" not in literal.text and has_single_field(literal.text)):
        dialect = "format"
    return read_template(literal.text, offsets, dialect)
