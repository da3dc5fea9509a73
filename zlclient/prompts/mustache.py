"""Mustache and the Handlebars of dotprompt, rendered logic-less: sections, partials inside the root, its helpers.

Sources: the Mustache manual (sections, inverted sections, implicit iterator); the dotprompt reference (roles, history,
media, json, section, ifEquals, unlessEquals). Lambdas, custom delimiters and other helpers are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from ..errors import ConfigError
from .braces import scan_mustache
from .errors import PromptInputError
from .fences import FenceMap
from .parts import Role, Tag
from .roles import RoleLine, find_role_lines
from .segments import Fence, Marks, Site

_WORD = re.compile(r"(?P<key>[\w-]+=)?(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'|(?P<path>[^\s\"'=()|]+))")
# A Mustache name is all that stands in the tag, blanks inside it included.
_NAME = re.compile(r"(?P<key>\0)?(?P<path>[^\s#^/>&](?:[^{}]*\S)?)(?P<double>\0)?(?P<single>\0)?")
_ROLES: dict[str, Role] = {
    "system": "system",
    "user": "user",
    "model": "assistant",
    "assistant": "assistant",
    "tool": "tool",
}
_BLOCKS = frozenset(["if", "unless", "each", "with", "ifEquals", "unlessEquals", "role"])
_MOST_DEPTH = 20


@dataclass
class _Block:
    """A tag with what it holds: text, tags, and after `else`."""

    tag: Tag | None
    sigil: str
    words: list[re.Match[str]]
    body: list[Any] = field(default_factory=list[Any])
    other: list[Any] | None = None

    @property
    def head(self) -> str:
        """The first word: a name, a helper or a block's kind."""
        return _plain(self.words[0]) if self.words else ""


@dataclass
class MustacheRenderer:
    """Renders templates of one dialect. `partial` reads another one by name, None where there is none.

    `file` and `first_line` place the errors.
    """

    dialect: Literal["mustache", "handlebars"]
    marks: Marks
    undefined: Literal["strict", "empty"]
    partial: Callable[[str], str | None]
    file: str | None = None
    first_line: int = 1

    def render(
        self, text: str, values: Mapping[str, Any], role_lines: Iterable[RoleLine] | None = None, depth: int = 0
    ) -> str:
        """`text` with its values and role lines marked; without `role_lines` they are looked for, in Mustache."""
        if depth > _MOST_DEPTH:
            raise ConfigError("partials nest too deeply", file=self.file)
        found, problems = scan_mustache(text)
        if problems:
            raise self.wrong(problems[0].message, text, problems[0].start)
        tags = [tag for tag, _ in found]
        if role_lines is None:
            role_lines = find_role_lines(text, tags) if self.dialect == "mustache" else ()
        fences = FenceMap(text, ((tag.start, tag.end) for tag in tags))
        run = _Run(self, text, fences, values, depth)
        run.block(self._tree(text, found, list(role_lines)), [values])
        return "".join(run.output)

    def line(self, text: str, offset: int) -> int:
        """The file's line of an offset."""
        return self.first_line + text.count("\n", 0, offset)

    def wrong(self, problem: str, text: str, offset: int) -> ConfigError:
        """An error at its place."""
        return ConfigError(problem, file=self.file, line=self.line(text, offset))

    def _tree(self, text: str, found: list[tuple[Tag, str]], lines: list[RoleLine]) -> list[Any]:
        root = _Block(None, "", [])
        opened = [root]
        at = 0
        for tag, sigil in found:
            self._literal(opened[-1], text, at, tag.start, lines)
            at = tag.end
            words = _WORD if self.dialect == "handlebars" else _NAME
            block = _Block(tag, sigil, list(words.finditer(text, *tag.inner)))
            is_else = self.dialect == "handlebars" and (block.head == "else" or (sigil == "^" and not block.head))
            if tag.kind == "comment":
                at = _after_standalone(text, tag)
            elif sigil == "/":
                if len(opened) < 2 or opened[-1].head != block.head:
                    raise self.wrong(f"{{{{/{block.head}}}}} closes a block that is not open", text, tag.start)
                opened.pop()
            elif is_else:
                opened[-1].other = []
            else:
                self._append(opened[-1], block)
                if sigil in ("#", "^"):
                    opened.append(block)
        last = opened[-1]
        if last.tag:
            raise self.wrong(f"the block {{{{#{last.head}}}}} is never closed", text, last.tag.start)
        self._literal(root, text, at, len(text), lines)
        return root.body

    def _literal(self, block: _Block, text: str, start: int, end: int, lines: list[RoleLine]) -> None:
        here = [
            RoleLine(line.role, line.attributes, line.start - start, line.body - start)
            for line in lines
            if start <= line.start and line.body <= end
        ]
        self._append(block, self.marks.mark_roles(text[start:end], here).replace("\\{{", "{{"))

    @staticmethod
    def _append(block: _Block, item: Any) -> None:
        (block.body if block.other is None else block.other).append(item)


def _after_standalone(text: str, tag: Tag) -> int:
    """A comment alone on its line takes the line with it."""
    line = text.rfind("\n", 0, tag.start) + 1
    rest = re.compile(r"[ \t]*(?:\r?\n|\Z)").match(text, tag.end)
    return rest.end() if rest and not text[line : tag.start].strip() else tag.end


def _plain(word: re.Match[str]) -> str:
    return next((found for found in word.group("double", "single", "path") if found is not None), "")


class _Run:
    def __init__(
        self, renderer: MustacheRenderer, text: str, fences: FenceMap, values: Mapping[str, Any], depth: int
    ) -> None:
        self.renderer, self.text, self.fences, self.root, self.depth = renderer, text, fences, values, depth
        self.output: list[str] = []
        self.sources: list[str] = []

    def block(self, items: list[Any], stack: list[Any]) -> None:
        """Render items: literal text and tags."""
        for item in items:
            if isinstance(item, str):
                self.renderer.marks.add(len(item))
                self.output.append(item)
            else:
                line = self.renderer.line(self.text, item.tag.start)
                try:
                    self._tag(item, stack)
                except PromptInputError as error:
                    raise error.at(self.renderer.file, line) from None
                except ConfigError as error:
                    if error.file or error.line:
                        raise
                    raise ConfigError(str(error), file=self.renderer.file, line=line) from None

    def _tag(self, block: _Block, stack: list[Any]) -> None:
        head = block.head
        if block.sigil in ("#", "^"):
            self._section(block, head, stack)
        elif block.sigil == ">":
            self.renderer.marks.count_load()
            text = self.renderer.partial(head)
            if text is None:
                raise ConfigError(f"there is no partial {head!r} in the template's folder")
            self.output.append(self.renderer.render(text, {**self.root, **_as_dict(stack[-1])}, depth=self.depth + 1))
        elif self.renderer.dialect == "handlebars" and (len(block.words) > 1 or head in ("history", "role")):
            self._helper(block, head, stack)
        else:
            self._write(block, head, self._lookup(head, stack))

    def _section(self, block: _Block, head: str, stack: list[Any]) -> None:
        if not head:
            raise ConfigError("a section needs a name")
        words = [self._value(word, stack) for word in block.words[1:]]
        other = block.other or []
        if self.renderer.dialect == "handlebars" and head in _BLOCKS:
            self._handlebars(block, head, words, stack)
            return
        value = self._lookup(head, stack, optional=True)
        if block.sigil == "^":
            self.block(other if value else block.body, stack)
        elif not value:
            self.block(other, stack)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            self._each(block.body, cast("Sequence[Any]", value), head, stack)
        else:
            self._within(block.body, head, stack if isinstance(value, bool) else [*stack, value])

    def _handlebars(self, block: _Block, head: str, words: list[Any], stack: list[Any]) -> None:
        other = block.other or []
        if head == "role":
            self._role(str(words[0]) if words else "user")
            self.block(block.body, stack)
            self._role("user")
        elif head in ("if", "unless"):
            self.block(block.body if bool(words[0] if words else None) == (head == "if") else other, stack)
        elif head in ("ifEquals", "unlessEquals"):
            is_equal = len(words) > 1 and words[0] == words[1]
            self.block(block.body if is_equal == (head == "ifEquals") else other, stack)
        elif not words or not words[0]:
            self.block(other, stack)
        elif head == "with":
            self._within(block.body, _plain(block.words[1]), [*stack, words[0]])
        else:
            items = _items(words[0])
            self._each(block.body, items, _plain(block.words[1]), stack)

    def _each(self, body: list[Any], items: Sequence[Any], name: str, stack: list[Any]) -> None:
        for index, item in enumerate(items):
            self.renderer.marks.tick()
            here = {"@index": index, "@first": index == 0, "@last": index == len(items) - 1}
            self._within(body, name, [*stack, here, item])

    def _within(self, body: list[Any], name: str, stack: list[Any]) -> None:
        self.sources.append(_root_name(name))
        self.block(body, stack)
        self.sources.pop()

    def _helper(self, block: _Block, head: str, stack: list[Any]) -> None:
        keys = {(word["key"] or "")[:-1]: self._value(word, stack) for word in block.words[1:] if word["key"]}
        words = [self._value(word, stack) for word in block.words[1:] if not word["key"]]
        if head == "role":
            self._role(str(words[0]) if words else "user")
        elif head == "history":
            self._write(block, "history", self.root.get("history", ""))
        elif head == "json":
            indent = keys.get("indent")
            indent = min(indent, 8) if isinstance(indent, int) else None
            text = json.dumps(words[0] if words else None, ensure_ascii=False, indent=indent)
            self._write(block, _plain(block.words[1]), text, Fence("json"))
        elif head == "media":
            name = next((_plain(word) for word in block.words[1:] if word["key"] == "url="), head)
            self._write(block, name, keys.get("url", ""))
        elif head != "section":
            raise ConfigError(f"the helper {head!r} is not available; known are role, history, media, json, section")

    def _role(self, name: str) -> None:
        self.output.append(self.renderer.marks.role_mark(RoleLine(_ROLES.get(name, "user"), {}, 0, 0)))

    def _value(self, word: re.Match[str], stack: list[Any]) -> Any:
        if word["path"] is None:
            return _plain(word)
        path = word["path"]
        literals = {"true": True, "false": False, "null": None, "undefined": None}
        if path in literals:
            return literals[path]
        return int(path) if path.isdigit() else self._lookup(path, stack, optional=True)

    def _write(self, block: _Block, name: str, value: Any, fence: Fence | None = None) -> None:
        assert block.tag is not None
        own = _root_name(name)
        # Inside a section a name may be the item's or the caller's: the value is trusted only if both are.
        names = ([own] if own in self.root else []) + self.sources[:1] or [own]
        sources = tuple(dict.fromkeys(names))
        site = self.renderer.marks.add_site(Site(sources, fence or self.fences.at(block.tag.start, block.tag.end)))
        self.output.append(self.renderer.marks.interp("" if value is None else value, site))

    def _lookup(self, path: str, stack: list[Any], *, optional: bool = False) -> Any:
        if path in (".", "this"):
            here = next((item for item in reversed(stack) if not _is_counter(item)), None)
            if here is self.root and not optional:
                raise ConfigError(f"{{{{{path}}}}} is for the items of a section")
            return here
        if path.startswith("@root."):
            path, stack = path.removeprefix("@root."), [self.root]
        while path.startswith("../"):
            # One step out of a loop is two: its counters and its item.
            steps_out = 2 if len(stack) > 2 and _is_counter(stack[-2]) else 1
            path, stack = path[3:], stack[:-steps_out] or stack[:1]
        steps = path.removeprefix("this.").removeprefix("./").split(".")
        for context in reversed(stack):
            if isinstance(context, Mapping) and steps[0] in context:
                return self._descend(cast("Any", context), steps, path, optional)
        if optional or self.renderer.undefined == "empty":
            return None
        raise PromptInputError("is used but has no value", input=steps[0])

    def _descend(self, value: Any, steps: list[str], path: str, optional: bool) -> Any:
        for step in steps:
            if isinstance(value, Mapping) and step in value:
                value = cast("Any", value[step])
            elif step == "length" and isinstance(value, (str, list, tuple)):
                value = len(cast("Any", value))
            elif optional or self.renderer.undefined == "empty":
                return None
            else:
                raise PromptInputError(f"has no {path!r}", input=steps[0])
        return value


def _root_name(path: str) -> str:
    return re.split(r"[./]", path.removeprefix("@root.").lstrip("./"), maxsplit=1)[0]


def _items(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(cast("Mapping[str, Any]", value).values())
    return list(cast("list[Any]", value)) if isinstance(value, (list, tuple)) else []


def _is_counter(item: Any) -> bool:
    return isinstance(item, dict) and "@index" in item


def _as_dict(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
