"""Parse a prompt file with positions: front matter, roles, template tags. Never raises on any text."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any, cast

from .braces import read_template, scan_mustache
from .frontmatter import split_front_matter
from .offsets import OffsetMap
from .parts import (
    Dialect,
    Format,
    FrontMatter,
    Part,
    Problem,
    PromptSource,
    Role,
    Span,
    Tag,
    TemplateText,
    Variable,
)
from .roles import ROLE_LINE, RoleLine, find_role_lines

__all__ = ["Part", "Problem", "PromptSource", "Span", "Tag", "Variable", "detect_format", "parse_source"]

_BY_SUFFIX: dict[str, Format] = {
    ".prompty": "prompty",
    ".prompt": "dotprompt",
    ".j2": "jinja",
    ".jinja": "jinja",
    ".jinja2": "jinja",
    ".md": "markdown",
    ".markdown": "markdown",
    ".py": "python",
    ".pyi": "python",
    ".yml": "yaml",
    ".yaml": "yaml",
}
_DOTPROMPT_ROLE = re.compile(r"^\s*role\s+[\"'](?P<role>\w+)[\"']\s*$")
_DOTPROMPT_ROLES: dict[str, Role] = {
    "system": "system",
    "user": "user",
    "model": "assistant",
    "assistant": "assistant",
    "tool": "tool",
}


def detect_format(text: str, path: str | None = None) -> Format:
    """The format by the file's name; YAML files and nameless text also by what they hold."""
    name = PurePath(path).name.lower() if path else ""
    if name.endswith((".prompt.yml", ".prompt.yaml")):
        return "github-models"
    found = _BY_SUFFIX.get(PurePath(name).suffix) if name else None
    if found == "yaml":
        from .yaml_source import yaml_format

        return yaml_format(text, name)
    if found:
        return found
    return "prompty" if not name and text.startswith("---\n") else "text"


def parse_source(text: str, path: str | None = None, format: str | None = None) -> PromptSource:  # noqa: A002
    """Parse prompt text; `path` only names it, nothing is read.

    `format` is one of the names of `Format`; an unknown or absent one is detected from the path and text. Any text
    gives a source: what could not be read is in `problems`, with spans.
    """
    kind = cast("Format", format) if format in Format.__args__ else detect_format(text, path)
    if kind == "python":
        from .python_source import parse_python

        return parse_python(text, path)
    if kind in ("github-models", "promptfoo", "yaml"):
        from .yaml_source import parse_yaml

        return parse_yaml(text, path, kind)
    front, body, problems = split_front_matter(text, kind)
    template = read_template(text[body:], OffsetMap.contiguous(body, len(text) - body), _dialect(kind, front))
    parts = _dotprompt_parts(template) if kind == "dotprompt" else _parts(template, kind)
    return PromptSource(
        text=text,
        path=path,
        format=kind,
        front=front,
        templates=(template,),
        parts=tuple(parts),
        problems=(*problems, *template.problems),
        revision=prompty_revision(front.data if front else {}) if kind == "prompty" else None,
    )


def prompty_revision(data: dict[str, Any]) -> int:
    """1 where the front matter has a shape that only the first .prompty format had, else 2."""
    model: Any = data.get("model")
    if isinstance(model, dict):
        keys = set(cast("dict[str, Any]", model))
        if keys & {"api", "configuration", "parameters"}:
            return 1
        if keys & {"id", "provider", "apiType", "connection", "options"}:
            return 2
    if data.keys() & {"sample", "authors", "tags"} or isinstance(data.get("template"), str):
        return 1
    inputs: Any = data.get("inputs")
    specs = cast("dict[str, Any]", inputs).values() if isinstance(inputs, dict) else ()
    return 1 if any(isinstance(spec, dict) and "type" in spec and "kind" not in spec for spec in specs) else 2


def _dialect(kind: Format, front: FrontMatter | None) -> Dialect | None:
    if kind == "dotprompt":
        return "handlebars"
    if kind == "jinja":
        return "jinja2"
    if kind != "prompty":
        return None
    template: Any = front.data.get("template") if front else None
    if isinstance(template, dict):
        template = cast("dict[str, Any]", template).get("format")
    if isinstance(template, dict):
        template = cast("dict[str, Any]", template).get("kind")
    return "mustache" if template == "mustache" else "jinja2"


def cut(
    template: TemplateText,
    start: int,
    end: int,
    role: Role | None,
    kind: Any,
    *,
    line: RoleLine | None = None,
    name: str = "",
) -> Part:
    """The part `template.text[start:end]`."""
    offsets = template.offsets.slice(start, end)
    tags = [
        Tag(tag.kind, tag.start - start, tag.end - start, Span(tag.inner.start - start, tag.inner.end - start))
        for tag in template.tags
        if start <= tag.start and tag.end <= end
    ]
    first = template.offsets.to_file(start)
    marker = None
    if line:
        marker = Span(template.offsets.to_file(line.start), first)
    return Part(
        role=role,
        text=template.text[start:end],
        start=first,
        end=max(first, offsets.end),
        kind=kind,
        template=template,
        offsets=offsets,
        tags=tuple(tags),
        attributes=line.attributes if line else {},
        name=name,
        marker=marker,
    )


def _parts(template: TemplateText, kind: Format) -> list[Part]:
    text = template.text
    # In Markdown and plain text "User:" alone on a line is prose, unless the file opens with a role line.
    has_roles = kind in ("prompty", "jinja") or ROLE_LINE.match(text.lstrip())
    lines = find_role_lines(text, template.tags) if has_roles else []
    if not lines:
        return [cut(template, 0, len(text), "system" if kind == "prompty" else None, "text")] if text.strip() else []
    parts: list[Part] = []
    if text[: lines[0].start].strip():
        parts.append(cut(template, 0, lines[0].start, "system", "text"))
    ends = [line.start for line in lines[1:]] + [len(text)]
    parts += [
        cut(template, line.body, end, line.role, "message", line=line) for line, end in zip(lines, ends, strict=True)
    ]
    return parts


def _dotprompt_parts(template: TemplateText) -> list[Part]:
    # Text before the first role, and after a role block's end, is the user's; comments and blanks are no message.
    text = template.text
    lines = [(RoleLine("user", {}, 0, 0), False)]
    for tag, sigil in scan_mustache(text)[0]:
        inner = text[tag.inner.start : tag.inner.end]
        role = _DOTPROMPT_ROLE.match(inner)
        if role and sigil in ("", "#"):
            name = _DOTPROMPT_ROLES.get(role["role"], "user")
            lines.append((RoleLine(name, {}, tag.start, tag.end), True))
        elif sigil == "/" and inner.strip() == "role":
            lines.append((RoleLine("user", {}, tag.start, tag.end), False))
    ends = [line.start for line, _ in lines[1:]] + [len(text)]
    parts: list[Part] = []
    for (line, is_marked), end in zip(lines, ends, strict=True):
        if is_marked:
            parts.append(cut(template, line.body, end, line.role, "message", line=line))
        elif _visible(template, line.body, end):
            parts.append(cut(template, line.body, end, "user", "text"))
    return parts


def _visible(template: TemplateText, start: int, end: int) -> bool:
    at = start
    for tag in template.tags:
        if tag.kind != "comment" or tag.end <= start or tag.start >= end:
            continue
        if template.text[at : tag.start].strip():
            return True
        at = tag.end
    return bool(template.text[at:end].strip())
