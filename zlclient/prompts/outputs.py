"""What a .prompty file asks of the model and the answer, in the words of `Client.chat`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from ..errors import ConfigError

_OPTIONS = {"temperature": "temperature", "maxOutputTokens": "max_tokens", "stopSequences": "stop"}
_BODY = {
    "topP": "top_p",
    "topK": "top_k",
    "frequencyPenalty": "frequency_penalty",
    "presencePenalty": "presence_penalty",
    "seed": "seed",
}
_PROVIDERS = frozenset(["anthropic", "openai"])
# Our own keys, under metadata.zlclient: what they are called there, and in Client.chat.
OWN_KEYS = {
    "domain": "domain",
    "anchors": "anchors",
    "route": "model",
    "reinforce": "reinforce",
    "effort": "effort",
    "preset": "preset",
    "fidelity": "fidelity",
    "format": "format",
    "format_policy": "format_policy",
}
_TYPES: dict[str, Any] = {"string": str, "integer": int, "float": float, "boolean": bool, "object": dict[str, Any]}
_SCHEMA = {"float": "number", "any": None, "union": None, "file": "string", "image": "string", "audio": "string"}


def chat_options(agent: Mapping[str, Any], file: str | None) -> dict[str, Any]:
    """Options of `Client.chat` that the front matter sets.

    Raises:
        ConfigError: a key under `metadata.zlclient` is unknown.
    """
    model = _mapping(agent.get("model"))
    options: dict[str, Any] = {}
    name, provider = model.get("id"), model.get("provider")
    if isinstance(name, str) and name:
        options["model"] = f"{provider}:{name}" if provider in _PROVIDERS else name
    asked = _mapping(model.get("options"))
    extra = {_BODY[key]: value for key, value in asked.items() if key in _BODY}
    options |= {_OPTIONS[key]: value for key, value in asked.items() if key in _OPTIONS}
    extra |= _mapping(asked.get("additionalProperties"))
    options |= {"extra": extra} if extra else {}
    for key, value in own_settings(agent).items():
        if key != "source" and key not in OWN_KEYS:
            known = ", ".join(sorted({*OWN_KEYS, "source"}))
            hint = f"; a template's {key} is metadata.{key}" if key in ("version", "language") else ""
            raise ConfigError(f"unknown key; known are {known}{hint}", key=f"metadata.zlclient.{key}", file=file)
        if key in OWN_KEYS:
            options[OWN_KEYS[key]] = value
    tools = [_function(tool) for tool in _functions(agent)]
    return options | ({"tools": tools} if tools else {})


def own_settings(agent: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping under `metadata.zlclient`."""
    return _mapping(_mapping(agent.get("metadata")).get("zlclient"))


def unused_keys(agent: Mapping[str, Any]) -> tuple[str, ...]:
    """What the front matter asks for and `Client.chat` has no word for, such as a tool of a server."""
    names = [f"tools.{tool.get('name')}" for tool in _tools(agent) if tool.get("kind", "function") != "function"]
    if _mapping(agent.get("model")).get("apiType", "chat") not in ("chat", "responses"):
        names.append("model.apiType")
    return tuple(names)


def output_model(agent: Mapping[str, Any]) -> type | None:
    """A pydantic model of the declared outputs, for `Client.chat(output=…)`; None where none are declared."""
    declared = cast("list[dict[str, Any]]", agent.get("outputs") or [])
    if not declared:
        return None
    return _model(str(agent.get("name") or "Output"), declared)


def _model(name: str, declared: list[dict[str, Any]]) -> type:
    from pydantic import Field, create_model

    fields: dict[str, Any] = {}
    for spec in declared:
        kind = _type(spec)
        optional = spec.get("required") is False
        given = {"description": spec["description"]} if spec.get("description") else {}
        default = Field(default=None, **given) if optional else Field(**given)
        fields[str(spec["name"])] = (kind | None if optional else kind, default)
    title = "".join(word.capitalize() for word in name.replace("-", "_").split("_")) or "Output"
    return create_model(title, **fields)


def _type(spec: Mapping[str, Any]) -> Any:
    enum = spec.get("enumValues")
    if isinstance(enum, list) and enum:
        return Literal[tuple(cast("list[Any]", enum))]
    kind = str(spec.get("kind", "string"))
    if kind == "array":
        items = spec.get("items")
        return list[_type(cast("Mapping[str, Any]", items))] if isinstance(items, Mapping) else list[Any]
    if kind == "object" and spec.get("properties"):
        from .inputs import properties

        return _model(str(spec.get("name") or "item"), properties(spec["properties"]))
    return _TYPES.get(kind, Any)


def _tools(agent: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [_mapping(tool) for tool in cast("list[Any]", agent.get("tools") or [])]


def _functions(agent: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [tool for tool in _tools(agent) if tool.get("kind", "function") == "function"]


def _function(tool: Mapping[str, Any]) -> dict[str, Any]:
    from .inputs import properties

    specs = properties(tool.get("parameters"))
    # A parameter that is bound to an input is filled in by the caller, not by the model.
    bound = _mapping(tool.get("bindings"))
    shown = [spec for spec in specs if spec["name"] not in bound]
    schema: dict[str, Any] = {"type": "object", "properties": {spec["name"]: _schema(spec) for spec in shown}}
    schema["required"] = [spec["name"] for spec in shown if spec.get("required")]
    function = {"name": tool.get("name"), "description": tool.get("description", ""), "parameters": schema}
    return {"type": "function", "function": function | ({"strict": tool["strict"]} if "strict" in tool else {})}


def _schema(spec: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(spec.get("kind", "string"))
    name = _SCHEMA.get(kind, kind)
    schema: dict[str, Any] = {"type": name} if name else {}
    schema |= {"description": spec["description"]} if spec.get("description") else {}
    return schema | ({"enum": spec["enumValues"]} if spec.get("enumValues") else {})


def _mapping(value: Any) -> dict[str, Any]:
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}
