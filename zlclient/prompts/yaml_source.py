"""Prompts inside YAML: GitHub Models files, promptfoo configs, and prompt strings in any other document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from .braces import read_template
from .parts import ROLE_NAMES, Dialect, Format, KeyPath, Part, Problem, PromptSource, Role, TemplateText
from .source import cut
from .yaml_nodes import YamlDocument, read_yaml
from .yaml_scalars import scalar_offsets

_ROLES: dict[str, Role] = {**ROLE_NAMES, "model": "assistant"}
_PROMPT_KEY = re.compile(r"prompt|template|instruction|system|persona|rubric|backstory|^(goal|content|user)$", re.I)
_FILE_PROMPT = re.compile(r"\A(?:file://|exec:|https?://)|\A[\w./*-]+\.\w{1,6}(?::\w+)?\Z")
_RUBRICS = frozenset(["llm-rubric", "model-graded-closedqa", "factuality", "g-eval", "answer-relevance"])
_LONG = 80

Found = tuple[KeyPath, Role | None, str]


def yaml_format(text: str, name: str = "") -> Format:
    """Which YAML format a document is, by the keys at its margin."""
    keys = set(re.findall(r"^([\w-]+):", text, re.MULTILINE))
    if "promptfoo" in name or ("prompts" in keys and keys & {"providers", "tests", "targets", "defaultTest"}):
        return "promptfoo"
    return "github-models" if "messages" in keys and keys & {"modelParameters", "testData"} else "yaml"


def parse_yaml(text: str, path: str | None, kind: Format) -> PromptSource:
    """Parse a YAML document; each prompt string in it is a part."""
    document = read_yaml(text)
    problems = [document.problem] if document.problem else []
    problems += [
        Problem("yaml-duplicate-key", f"the key {key!r} is given twice; the last one counts", *span)
        for key, span in document.duplicates
    ]
    scalars = {at: (value, style, span) for at, value, style, span in document.scalars}
    parts: list[Part] = []
    templates: list[TemplateText] = []
    for at, role, kind_of_part in _prompts(document, kind):
        value, style, span = scalars[at]
        offsets = scalar_offsets(text, value, style, span)
        template = read_template(value, offsets, _dialect(document.data, kind, value))
        templates.append(template)
        problems += template.problems
        parts.append(cut(template, 0, len(value), role, kind_of_part, name=_dotted(at)))
    return PromptSource(
        text=text,
        path=path,
        format=kind,
        front=None,
        templates=tuple(templates),
        parts=tuple(parts),
        problems=tuple(problems),
        data=document.data,
    )


def _dialect(data: Any, kind: Format, value: str) -> Dialect | None:
    if "{" not in value:
        return "none"
    if kind == "github-models":
        return "mustache"
    if kind == "promptfoo":
        return "jinja2"
    declared = cast("dict[str, Any]", data).get("template_format") if isinstance(data, dict) else None
    known: dict[str, Dialect] = {
        "jinja2": "jinja2",
        "mustache": "mustache",
        "handlebars": "handlebars",
        "f-string": "format",
    }
    return known.get(declared) if isinstance(declared, str) else None


def _prompts(document: YamlDocument, kind: Format) -> Iterator[Found]:
    roles = _message_roles(document)
    for at, value, style, span in document.scalars:
        if not value.strip() or span.start == span.end:
            continue
        parent = at[:-1]
        if at[-1:] == ("content",) and parent in roles:
            yield at, roles[parent], "message"
        elif kind == "promptfoo":
            if at[:1] == ("prompts",) and _is_inline_prompt(at, value):
                yield at, None, "scalar"
            elif at[-1:] in (("value",), ("rubricPrompt",)) and _is_rubric(document, parent, at):
                yield at, None, "rubric"
        elif kind == "yaml" and _is_prompt(at, value, style):
            yield at, _role_of_key(at), "scalar"


def _message_roles(document: YamlDocument) -> dict[KeyPath, Role | None]:
    return {
        at[:-1]: _ROLES.get(value.strip().lower())
        for at, value, _, _ in document.scalars
        if at[-1:] in (("role",), ("type",)) and value.strip().lower() in _ROLES
    }


def _is_inline_prompt(at: KeyPath, value: str) -> bool:
    # prompts: [text, {id, label, raw}]; a one-line path or URL names a file.
    is_text = len(at) == 2 or at[-1] in ("raw", "prompt")
    return is_text and not _FILE_PROMPT.search(value.strip())


def _is_rubric(document: YamlDocument, parent: KeyPath, at: KeyPath) -> bool:
    if at[-1] == "rubricPrompt":
        return True
    node: Any = document.data
    for key in parent:
        try:
            node = node[key]
        except (KeyError, IndexError, TypeError):
            return False
    return isinstance(node, dict) and cast("dict[str, Any]", node).get("type") in _RUBRICS


def _is_prompt(at: KeyPath, value: str, style: str | None) -> bool:
    key = next((step for step in reversed(at) if isinstance(step, str)), "")
    is_named = _PROMPT_KEY.search(key) is not None and (" " in value.strip() or not value.isascii())
    is_block = style in ("|", ">") and len(value) >= _LONG
    return is_named or is_block


def _role_of_key(at: KeyPath) -> Role | None:
    key = str(at[-1]).lower() if at else ""
    for word, role in (("system", "system"), ("developer", "developer"), ("user", "user")):
        if re.search(rf"(?:\A|_|-){word}(?:\Z|_|-)", key):
            return cast("Role", role)
    return None


def _dotted(at: KeyPath) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in at).lstrip(".")
