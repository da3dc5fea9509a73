"""The first .prompty format rewritten as the second: keys move, the body stays byte for byte."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from .inputs import kind_of
from .parts import PromptSource

_KINDS = {"int": "integer", "number": "float", "bool": "boolean", "list": "array", "dict": "object"}
_OPTIONS = {
    "temperature": "temperature",
    "max_tokens": "maxOutputTokens",
    "max_completion_tokens": "maxOutputTokens",
    "top_p": "topP",
    "top_k": "topK",
    "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
    "seed": "seed",
    "stop": "stopSequences",
}
_PROVIDERS = {"azure_openai": "azure", "azure": "azure", "openai": "openai", "serverless": "foundry"}
_APIS = {"completion": "chat", "chat": "chat", "embedding": "embedding", "image": "image"}
_CONNECTION = {"azure_endpoint": "endpoint", "endpoint": "endpoint", "base_url": "endpoint", "api_key": "apiKey"}
_KEPT = ("name", "displayName", "description", "metadata", "model", "inputs", "outputs", "tools", "template")


def upgrade_text(source: PromptSource) -> str:
    """The file in the second format; one that is there already comes back as it is.

    Comments of the front matter are lost, as YAML's writer knows none.
    """
    front = source.front
    if source.revision != 1 or front is None or front.problem:
        return source.text
    import yaml

    written = yaml.safe_dump(upgrade_data(front.data), sort_keys=False, allow_unicode=True, width=110)
    written = re.sub(r"\$\{(env|file):", lambda match: match[0].lower(), written, flags=re.IGNORECASE)
    if "\r\n" in front.raw:
        written = written.replace("\n", "\r\n")
    return source.text[: front.start] + written + source.text[front.end :]


def upgrade_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """v1 front matter as v2; what has no place there goes to `metadata`."""
    old = {str(key): value for key, value in data.items()}
    metadata = {key: value for key, value in old.items() if key not in (*_KEPT, "sample")}
    metadata |= _mapping(old.get("metadata"))
    sample = old.get("sample")
    if isinstance(sample, str):
        metadata["sample"] = sample
    new: dict[str, Any] = {key: old[key] for key in ("name", "displayName", "description") if key in old}
    model, tools, rest = _model(old.get("model"))
    if rest:
        metadata["v1"] = rest
    new |= {"metadata": metadata} if metadata else {}
    new |= {"model": model} if model else {}
    inputs = _properties(old.get("inputs"), _mapping(sample))
    new |= {"inputs": inputs} if inputs else {}
    outputs = _properties(old.get("outputs"), {})
    new |= {"outputs": outputs} if outputs else {}
    tools = old.get("tools") or tools
    new |= {"tools": tools} if tools else {}
    template = _template(old.get("template"))
    return new | ({"template": template} if template else {})


def _mapping(value: Any) -> dict[str, Any]:
    return (
        {str(key): item for key, item in cast("Mapping[Any, Any]", value).items()} if isinstance(value, Mapping) else {}
    )


def _model(model: Any) -> tuple[Any, list[Any], dict[str, Any]]:
    """(v2 model, tools, configuration that v2 has no key for)."""
    if not isinstance(model, Mapping):
        return model, [], {}
    old = _mapping(model)
    configuration, parameters = _mapping(old.get("configuration")), _mapping(old.get("parameters"))
    new: dict[str, Any] = {}
    name = next((configuration[key] for key in ("model", "azure_deployment", "name") if key in configuration), None)
    new |= {"id": name} if name else {}
    kind = configuration.get("type")
    new |= {"provider": _PROVIDERS.get(str(kind), str(kind))} if kind else {}
    new |= {"apiType": _APIS.get(str(old["api"]), str(old["api"]))} if "api" in old else {}
    connection: dict[str, Any] = {}
    if "connection" in configuration:
        connection = {"kind": "reference", "name": configuration["connection"]}
    else:
        connection = {_CONNECTION[key]: value for key, value in configuration.items() if key in _CONNECTION}
        connection = {"kind": "key", **connection} if connection else {}
    new |= {"connection": connection} if connection else {}
    options = {_OPTIONS[key]: value for key, value in parameters.items() if key in _OPTIONS}
    if isinstance(options.get("stopSequences"), str):
        options["stopSequences"] = [options["stopSequences"]]
    extra = {key: value for key, value in parameters.items() if key not in (*_OPTIONS, "tools")}
    options |= {"additionalProperties": extra} if extra else {}
    new |= {"options": options} if options else {}
    moved = {"model", "azure_deployment", "name", "type", "connection", *_CONNECTION}
    rest = {key: value for key, value in configuration.items() if key not in moved}
    rest |= {key: value for key, value in old.items() if key not in ("api", "configuration", "parameters")}
    found = parameters.get("tools")
    return new, [_tool(tool) for tool in cast("list[Any]", found)] if isinstance(found, list) else [], rest


def _tool(tool: Any) -> Any:
    """OpenAI's shape of a function tool as v2's."""
    function = _mapping(_mapping(tool).get("function"))
    if not function:
        return tool
    schema = _mapping(function.get("parameters"))
    required = schema.get("required")
    parameters = [
        {"name": name, **_schema(_mapping(spec)), "required": isinstance(required, list) and name in required}
        for name, spec in _mapping(schema.get("properties")).items()
    ]
    kept = {key: function[key] for key in ("name", "description", "strict") if key in function}
    return {**kept, "kind": "function", "parameters": parameters}


def _schema(spec: dict[str, Any]) -> dict[str, Any]:
    kind = str(spec.get("type", "string"))
    new = {"kind": _KINDS.get(kind, kind)} | {key: spec[key] for key in ("description", "default") if key in spec}
    return new | ({"enumValues": spec["enum"]} if "enum" in spec else {})


def _properties(declared: Any, sample: dict[str, Any]) -> Any:
    if isinstance(declared, list):
        return cast("list[Any]", declared)
    new: dict[str, Any] = {}
    for name, spec in _mapping(declared).items():
        if isinstance(spec, Mapping):
            old = _mapping(spec)
            kind = str(old.pop("type", old.pop("kind", "string")))
            default = {"default": old.pop("default")} if "default" in old else {}
            new[name] = {"kind": _KINDS.get(kind, kind), **default, **old}
        else:
            new[name] = {"kind": kind_of(spec)} | ({} if spec is None else {"default": spec})
    for name, value in sample.items():
        entry = new.setdefault(name, {"kind": kind_of(value)})
        entry.setdefault("example", value)
    return new


def _template(template: Any) -> dict[str, Any] | None:
    if template is None:
        return None
    if isinstance(template, Mapping):
        old = _mapping(template)
        kind, parser = old.get("type", "jinja2"), old.get("parser", "prompty")
        if "format" in old:
            return old
        return {"format": {"kind": kind}, "parser": {"kind": parser}}
    return {"format": {"kind": str(template)}, "parser": {"kind": "prompty"}}
