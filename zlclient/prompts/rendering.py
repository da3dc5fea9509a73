"""Render one template of any dialect into segments or text; the engine under `Prompt`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
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

_FIELD = re.compile(r"\{\{|\}\}|\{(?P<name>[^{}!:]*)(?P<rest>[^{}]*)\}")


def render_segments(
    text: str,
    dialect: Dialect,
    values: Mapping[str, Any],
    *,
    root: Path | None = None,
    undefined: UndefinedPolicy = "strict",
    limits: Limits | None = None,
    strict: Iterable[str] = (),
    role_lines: Iterable[RoleLine] | None = None,
    first_line: int = 1,
    file: str | None = None,
) -> list[Segment]:
    """Render `text` with plain `values`.

    Args:
        text: the template. A value is never read as template or role line.
        dialect: how it is written; "none" gives it back as it is.
        root: the folder that includes and partials come from; None for none at all.
        undefined: "strict" raises where a name has no value, "empty" writes nothing there.
        strict: names whose values may not even look like a role line.
        role_lines: where roles begin, in offsets of `text`; None finds the role lines of .prompty.
        first_line: the line of `file` that `text` begins on, for errors.

    Raises:
        ConfigError: the template is wrong, or reaches for what the sandbox does not give.
        PromptInputError: a name has no value, or a value does not fit its use.
        RenderLimitExceeded: a limit was reached.
        StrictViolation: a value of `strict` holds a role line.
    """
    marks = Marks(limits or Limits())
    with rendering(marks):
        if dialect == "jinja2":
            marked = _render_jinja(text, values, marks, root, undefined, role_lines, first_line, file)
        elif dialect in ("mustache", "handlebars"):
            renderer = MustacheRenderer(dialect, marks, undefined, _partials(root), file, first_line)
            marked = renderer.render(text, values, role_lines)
        else:
            marked = marks.mark_roles(text, find_role_lines(text) if role_lines is None else role_lines)
            if dialect != "none":
                marked = _render_format(marked, values, marks, first_line, file)
    segments = marks.segments(marked)
    forbidden = set(strict)
    for segment in segments:
        if segment.site and forbidden.intersection(segment.site.sources) and FORGED_ROLE.search(segment.text):
            raise StrictViolation("its value holds a line that reads like a role", input=segment.source, file=file)
    return segments


def render_text(text: str, dialect: Dialect, values: Mapping[str, Any], **options: Any) -> str:
    """The rendered text, role lines included: what the specification's Renderer gives."""
    segments = render_segments(text, dialect, values, **options)
    return "".join(segment.text for segment in segments)


def _render_jinja(
    text: str,
    values: Mapping[str, Any],
    marks: Marks,
    root: Path | None,
    undefined: UndefinedPolicy,
    role_lines: Iterable[RoleLine] | None,
    first_line: int,
    file: str | None,
) -> str:
    import jinja2
    from jinja2.exceptions import SecurityError

    sandbox = Sandbox(root, undefined=undefined, limits=marks.limits)
    chunks: list[str] = []
    size = 0
    template: Any = None
    try:
        template = sandbox.prepare(text, None, marks, role_lines=role_lines)
        for chunk in template.generate(dict(values)):
            size += len(chunk)
            marks.grow(size)
            chunks.append(chunk)
    except jinja2.TemplateSyntaxError as error:
        line = error.lineno + first_line - 1 if error.name is None else error.lineno
        raise ConfigError(error.message or "invalid template", file=error.name or file, line=line) from None
    except jinja2.UndefinedError as error:
        line = _line(error, first_line)
        name = re.match(r"'([^']*)' is undefined", error.message or "")
        if name:
            raise PromptInputError("is used but has no value", input=name[1], file=file, line=line) from None
        raise PromptInputError(error.message or "a value is undefined", file=file, line=line) from None
    except SecurityError as error:
        raise ConfigError(f"the sandbox refuses this: {error}", file=file, line=_line(error, first_line)) from None
    except jinja2.TemplateError as error:
        raise ConfigError(error.message or type(error).__name__, file=file) from None
    except RecursionError:
        raise RenderLimitExceeded("the template nests too deeply", file=file) from None
    except RenderLimitExceeded as error:
        raise error.at(file, _line(error, first_line)) from None
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        problem = f"a value does not fit its use in the template ({type(error).__name__})"
        raise PromptInputError(problem, file=file, line=_line(error, first_line)) from None
    return "".join(chunks)


def _line(error: BaseException, first_line: int) -> int | None:
    """The line of the file, from the traceback that Jinja2 rewrites to the template's lines."""
    line: int | None = None
    trace = error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line + first_line - 1 if line else None


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
