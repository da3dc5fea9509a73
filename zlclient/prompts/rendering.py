"""Render one template of any dialect into segments or text; the engine under `Prompt`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from ..errors import ConfigError
from .errors import PromptInputError, RenderLimitExceeded, StrictViolation
from .fences import FenceMap
from .mustache import MustacheRenderer
from .parts import Dialect
from .roles import FORGED_ROLE, RoleLine, find_role_lines
from .sandbox import Sandbox, UndefinedPolicy, inside_root
from .segments import Limits, Marks, Segment, Site, rendering

_TYPE_NAMES = frozenset(["str", "int", "float", "bool", "list", "dict", "tuple", "NoneType", "range", "Undefined"])
_FIELD = re.compile(r"\{\{|\}\}|\{(?P<name>[^{}!:]*)(?P<rest>[^{}]*)\}")


@dataclass(frozen=True)
class Renderer:
    """Renders one template with plain values; compiled once, safe to share between threads.

    Args:
        text: the template. A value is never read as template or role line.
        dialect: how it is written; "none" gives it back as it is.
        root: the folder that includes and partials come from; None for none at all.
        undefined: "strict" raises where a name has no value, "empty" writes nothing there.
        limits: bounds of a rendering.
        strict: names whose values may not even look like a role line.
        role_lines: where roles begin, in offsets of `text`; None finds the role lines of .prompty.
        first_line: the line of `file` that `text` begins on, for errors.
    """

    text: str
    dialect: Dialect
    root: Path | None = None
    undefined: UndefinedPolicy = "strict"
    limits: Limits = field(default_factory=Limits)
    strict: frozenset[str] = frozenset()
    role_lines: tuple[RoleLine, ...] | None = None
    first_line: int = 1
    file: str | None = None

    def segments(self, values: Mapping[str, Any]) -> list[Segment]:
        """The rendered text in segments.

        Raises:
            ConfigError: the template is wrong, or reaches for what the sandbox does not give.
            PromptInputError: a name has no value, or a value does not fit its use.
            RenderLimitExceeded: a limit was reached.
            StrictViolation: a value of `strict` holds a role line.
        """
        if self.dialect == "jinja2":
            marks, marked = self._render_jinja(values)
        else:
            marks = Marks(self.limits)
            marked = self._render_simple(values, marks)
        segments = marks.segments(marked)
        for segment in segments:
            if segment.site and self.strict.intersection(segment.site.sources) and FORGED_ROLE.search(segment.text):
                problem = "its value holds a line that reads like a role"
                raise StrictViolation(problem, input=segment.source, file=self.file)
        return segments

    def _render_simple(self, values: Mapping[str, Any], marks: Marks) -> str:
        if self.dialect in ("mustache", "handlebars"):
            partial = _partials(self.root)
            renderer = MustacheRenderer(self.dialect, marks, self.undefined, partial, self.file, self.first_line)
            return renderer.render(self.text, values, self.role_lines)
        lines = find_role_lines(self.text) if self.role_lines is None else self.role_lines
        marked = marks.mark_roles(self.text, lines)
        return marked if self.dialect == "none" else _render_format(marked, values, marks, self.first_line, self.file)

    def _render_jinja(self, values: Mapping[str, Any]) -> tuple[Marks, str]:
        import jinja2
        from jinja2.exceptions import SecurityError

        try:
            template, compiled = self._template
            marks = compiled.fresh()
            return marks, _generate(template, marks, values)
        except jinja2.TemplateSyntaxError as error:
            line = error.lineno + self.first_line - 1 if error.name is None else error.lineno
            raise ConfigError(error.message or "invalid template", file=error.name or self.file, line=line) from None
        except jinja2.UndefinedError as error:
            name = re.match(r"'(\w+)' is undefined", error.message or "")
            problem = "is used but has no value" if name else self._said(error, "a value has no such part")
            given = name[1] if name else None
            raise PromptInputError(problem, input=given, file=self.file, line=self._line(error)) from None
        except SecurityError as error:
            problem = f"the sandbox refuses this: {self._said(error, 'an attribute')}"
            raise ConfigError(problem, file=self.file, line=self._line(error)) from None
        except jinja2.TemplateError as error:
            problem = self._said(error, "the template asks for what is not there")
            raise ConfigError(problem, file=self.file, line=self._line(error)) from None
        except RecursionError:
            raise RenderLimitExceeded("the template nests too deeply", file=self.file) from None
        except RenderLimitExceeded as error:
            raise error.at(self.file, self._line(error)) from None
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            problem = f"a value does not fit its use in the template ({type(error).__name__})"
            raise PromptInputError(problem, file=self.file, line=self._line(error)) from None

    @cached_property
    def _template(self) -> tuple[Any, Marks]:
        """The compiled template and the marks in it, which no output ever shows."""
        marks = Marks(self.limits)
        sandbox = Sandbox(self.root, undefined=self.undefined, limits=self.limits)
        with rendering(marks):
            return sandbox.prepare(self.text, None, marks, role_lines=self.role_lines), marks

    def _line(self, error: BaseException) -> int | None:
        """The line of the file, from the traceback that Jinja2 rewrites to the template's lines."""
        line: int | None = None
        trace = error.__traceback__
        while trace:
            if trace.tb_frame.f_code.co_filename == "<template>":
                line = trace.tb_lineno
            trace = trace.tb_next
        return line + self.first_line - 1 if line else None

    def _said(self, error: Exception, otherwise: str) -> str:
        """Jinja2's message, unless it quotes something that is not the template's: it may be from a value."""
        message = str(error)
        quoted = re.findall(r"'([^']*)'", message)
        is_own = all(word in self.text or word.endswith(" object") or word in _TYPE_NAMES for word in quoted)
        return message if is_own and message.count("'") % 2 == 0 else otherwise


def _generate(template: Any, marks: Marks, values: Mapping[str, Any]) -> str:
    chunks: list[str] = []
    size = 0
    with rendering(marks):
        for chunk in template.generate(dict(values)):
            size += len(chunk)
            marks.grow(size)
            chunks.append(chunk)
    return "".join(chunks)


def render_text(text: str, dialect: Dialect, values: Mapping[str, Any], **settings: Any) -> str:
    """The rendered text, role lines included: what the specification's Renderer gives."""
    segments = Renderer(text, dialect, **settings).segments(values)
    return "".join(segment.text for segment in segments)


def _render_format(text: str, values: Mapping[str, Any], marks: Marks, first_line: int, file: str | None) -> str:
    fences = FenceMap(text, (match.span() for match in _FIELD.finditer(text) if match["name"]))

    def write(match: re.Match[str]) -> str:
        if match["name"] is None:
            return match[0][0]
        name = match["name"].strip()
        # JSON braces and other text are no field.
        if not name.isidentifier():
            return match[0]
        line = first_line + text.count("\n", 0, match.start())
        if match["rest"]:
            problem = f"{{{name}{match['rest']}}}: conversions and formats are not available, write the text"
            raise ConfigError(problem, file=file, line=line)
        if name not in values:
            raise PromptInputError("is used but has no value", input=name, file=file, line=line)
        return marks.interp(values[name], marks.add_site(Site((name,), fences.at(*match.span()))))

    return _FIELD.sub(write, text)


def _partials(root: Path | None) -> Callable[[str], str | None]:
    def read(name: str) -> str | None:
        for candidate in (f"_{name}.prompt", f"{name}.prompt", f"{name}.mustache"):
            path = inside_root(root, candidate)
            if path:
                text = path.read_text("utf-8")
                return re.sub(r"\A---\r?\n.*?^---\r?\n", "", text, flags=re.DOTALL | re.MULTILINE)
        return None

    return read


def plain(value: Any, name: str, depth: int = 0) -> Any:
    """A copy of `value` made of plain data only, so that a template can call nothing of the caller's.

    Raises:
        PromptInputError: it holds something else, or nests deeper than 20 levels.
    """
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    if depth > 20:
        raise PromptInputError("nests deeper than 20 levels", input=name)
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value)
        return {str(key): plain(item, name, depth + 1) for key, item in items.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, name, depth + 1) for item in cast("list[Any]", value)]
    raise PromptInputError(f"must be plain data, not {type(value).__name__}", input=name)
