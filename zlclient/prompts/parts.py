"""What a parsed prompt file consists of. Spans are (start, end) in the file's text unless a field says otherwise."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .offsets import LineIndex, OffsetMap

if TYPE_CHECKING:
    from jinja2 import nodes

Format = Literal["prompty", "jinja", "markdown", "text", "dotprompt", "github-models", "promptfoo", "yaml", "python"]
Dialect = Literal["jinja2", "mustache", "handlebars", "f-string", "format", "none"]
Role = Literal["system", "developer", "user", "assistant", "tool"]
TagKind = Literal["output", "statement", "comment", "raw"]
KeyPath = tuple[str | int, ...]
# What prompts in code and YAML call their roles, LangChain's names included.
ROLE_NAMES: dict[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "tool": "tool",
}


class Span(NamedTuple):
    """A half-open range of offsets."""

    start: int
    end: int


class Problem(NamedTuple):
    """Something that keeps a file from being read as its format says. `code` is stable, `message` is for people."""

    code: str
    message: str
    start: int
    end: int


def span_in_file(offsets: OffsetMap, start: int, end: int) -> Span:
    """The file's span of `value[start:end]`; one that ends inside an escape is empty rather than turned around."""
    first = offsets.to_file(start)
    return Span(first, max(first, offsets.end_to_file(end)))


class Tag(NamedTuple):
    """One template tag, delimiters included: offsets into the template's own text.

    `raw` tags are the two markers around verbatim text, which is ordinary text and no tag itself. `inner` is what
    stands between the delimiters.
    """

    kind: TagKind
    start: int
    end: int
    inner: Span


class Variable(NamedTuple):
    """One use of an input. `start`, `end` is the name in the file; `tag` its whole `{{ … }}`, also in the file."""

    name: str
    start: int
    end: int
    tag: Span
    output: bool
    """Whether its value is written out, not only tested or looped over."""


@dataclass(frozen=True)
class TemplateText:
    """One template: its text with host escapes decoded, its dialect, and where its characters stand in the file."""

    text: str
    offsets: OffsetMap
    dialect: Dialect
    tags: tuple[Tag, ...] = ()
    variables: tuple[Variable, ...] = ()
    problems: tuple[Problem, ...] = ()

    @cached_property
    def ast(self) -> nodes.Template | None:
        """Jinja2's tree of the whole template, or None for other dialects and where it does not parse."""
        if self.dialect != "jinja2":
            return None
        from .jinja import parse

        tree = parse(self.text)
        return None if isinstance(tree, tuple) else tree


@dataclass(frozen=True)
class Part:
    """A stretch of prompt text with one role.

    `text` is the value a model would get before rendering; `start` and `end` bound it in the file, where it may be
    written with escapes or indentation: `to_file` maps an offset of `text`. `name` says where it came from, such as
    `SYSTEM_PROMPT` or `messages[0].content`. `tags` are the template's tags inside it, in offsets of `text`.
    """

    role: Role | None
    text: str
    start: int
    end: int
    kind: Literal["message", "text", "literal", "scalar", "rubric"]
    template: TemplateText
    offsets: OffsetMap
    tags: tuple[Tag, ...] = ()
    attributes: dict[str, str | int | float | bool] = field(default_factory=dict[str, Any])
    name: str = ""
    marker: Span | None = None
    """The role line or helper that opened it."""

    def to_file(self, offset: int) -> int:
        """The file's offset of `text[offset]`."""
        return self.offsets.to_file(offset)

    def span(self, start: int, end: int) -> Span:
        """The file's span of `text[start:end]`."""
        return span_in_file(self.offsets, start, end)

    @property
    def is_contiguous(self) -> bool:
        """Whether `text` is `file_text[start:end]`."""
        return self.offsets.is_contiguous


@dataclass(frozen=True)
class FrontMatter:
    """The YAML block at the top. `data` is {} where it does not parse; then `problem` says why and where.

    `keys` and `values` give, for each path such as ("inputs", 0, "name"), the span of the key and of its value.
    """

    raw: str
    start: int
    end: int
    data: dict[str, Any]
    keys: dict[KeyPath, Span]
    values: dict[KeyPath, Span]
    problem: Problem | None = None


@dataclass(frozen=True)
class PromptSource:
    """A prompt file, parsed with positions; made by `parse_source`, which never raises.

    `revision` is the version of the .prompty format (1 or 2), None for others.
    """

    text: str
    path: str | None
    format: Format
    front: FrontMatter | None
    templates: tuple[TemplateText, ...]
    parts: tuple[Part, ...]
    problems: tuple[Problem, ...]
    revision: int | None = None
    data: Any = None
    """The whole document of a YAML format; otherwise None."""

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Every use of an input, in the order of the file."""
        found = [variable for template in self.templates for variable in template.variables]
        return tuple(sorted(found, key=lambda variable: (variable.start, variable.end)))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The inputs used, each once, in the order of first use."""
        return tuple(dict.fromkeys(variable.name for variable in self.variables))

    @property
    def dialect(self) -> Dialect:
        """The dialect of the first template that has tags, else "none"."""
        for template in self.templates:
            if template.dialect != "none":
                return template.dialect
        return "none"

    @cached_property
    def lines(self) -> LineIndex:
        """Lines of the file."""
        return LineIndex(self.text)

    def line_col(self, offset: int) -> tuple[int, int]:
        """(line, column) of an offset of the file, both from 1."""
        return self.lines.line_col(offset)
