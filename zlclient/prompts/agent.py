"""A .prompty file as the specification's agent: front matter in v2 shape, references resolved, body as instructions.

Specification 0.1.0-draft of 2026-04-04. Keys it does not know stay under `metadata` and never raise.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ..errors import ConfigError
from .inputs import kind_of, properties
from .parts import FrontMatter, PromptSource
from .references import References
from .source import parse_source
from .upgrade import upgrade_data

_TOP = ("name", "displayName", "description", "metadata", "model", "inputs", "outputs", "tools", "template")
_USED = ("name", "model", "inputs", "outputs", "tools", "template")


def load_agent(
    text: str,
    *,
    file: str | None = None,
    root: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The agent a .prompty text describes, connections and all; v1 is read as the v2 it means.

    Raises:
        ConfigError: the front matter does not parse, a reference does not resolve, or a key has a wrong shape.
    """
    source = parse_source(text, file, "prompty")
    return agent_of(source, root=root, env=os.environ if env is None else env)


def agent_of(
    source: PromptSource, *, root: Path | None, env: Mapping[str, str], connections: bool = True
) -> dict[str, Any]:
    """`load_agent` of a parsed file; without `connections` these are left out, and metadata is left as it is written.

    A variable or a sample file that only another client would read need not be there then.
    """
    fatal = next((problem for problem in source.problems if problem.code != "yaml-duplicate-key"), None)
    if fatal and (fatal.code.startswith(("yaml", "front-matter"))):
        line = source.line_col(fatal.start)[0]
        raise ConfigError(f"invalid frontmatter: {fatal.message}", file=source.path, line=line)
    front = source.front
    data = upgrade_data(front.data) if front and source.revision == 1 else dict(front.data) if front else {}
    as_written: dict[str, Any] = {}
    if not connections:
        as_written = {key: value for key, value in data.items() if key not in _USED}
        data = _without_connections({key: value for key, value in data.items() if key in _USED})
    data = as_written | References(env, root, source.path).resolve(data)
    line = _line_of(source, front)
    agent: dict[str, Any] = {"kind": "prompt"}
    agent |= {key: data[key] for key in _TOP if data.get(key) is not None and key not in ("inputs", "outputs")}
    agent["metadata"] = _metadata(data)
    if not agent["metadata"]:
        del agent["metadata"]
    agent["model"] = _model(data.get("model"), source.path, line("model"))
    for key in ("inputs", "outputs"):
        try:
            agent[key] = [_kinded(spec) for spec in properties(data.get(key))] or None
        except ConfigError as error:
            raise ConfigError(str(error), key=key, file=source.path, line=line(key)) from None
    agent["tools"] = data.get("tools") or None
    template = data.get("template")
    if template is not None and not isinstance(template, Mapping):
        problem = "Invalid template format: must be a mapping with format and parser"
        raise ConfigError(problem, key="template", file=source.path, line=line("template"))
    agent["instructions"] = "".join(part.text for part in source.templates).strip()
    return agent


def _line_of(source: PromptSource, front: FrontMatter | None) -> Any:
    def line(key: str) -> int | None:
        span = front.keys.get((key,)) if front else None
        return source.line_col(span.start)[0] if span else None

    return line


def _without_connections(data: dict[str, Any]) -> dict[str, Any]:
    model = data.get("model")
    if isinstance(model, Mapping):
        items = cast("Mapping[str, Any]", model).items()
        data = {**data, "model": {key: value for key, value in items if key != "connection"}}
    return {key: value for key, value in data.items() if key != "tools"} | {"tools": _tools(data.get("tools"))}


def _tools(tools: Any) -> Any:
    if not isinstance(tools, list):
        return None
    return [
        {key: value for key, value in cast("Mapping[str, Any]", tool).items() if key != "connection"}
        for tool in cast("list[Any]", tools)
        if isinstance(tool, Mapping)
    ]


def _metadata(data: Mapping[str, Any]) -> dict[str, Any]:
    own = data.get("metadata")
    metadata = dict(cast("Mapping[str, Any]", own)) if isinstance(own, Mapping) else {}
    return {key: value for key, value in data.items() if key not in _TOP} | metadata


def _model(model: Any, file: str | None, line: int | None) -> dict[str, Any] | None:
    if model is None:
        return None
    if isinstance(model, str):
        return {"id": model}
    if isinstance(model, Mapping):
        return dict(cast("Mapping[str, Any]", model))
    raise ConfigError("must be a model's name or a mapping", key="model", file=file, line=line)


def _kinded(spec: dict[str, Any]) -> dict[str, Any]:
    if "kind" in spec:
        return spec
    return {"name": spec["name"], "kind": kind_of(spec["default"]) if "default" in spec else "string", **spec}
