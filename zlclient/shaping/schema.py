"""The JSON schema of a pydantic model, in the form that structured output takes.

Both providers want `additionalProperties: false` on every object; OpenAI also wants every property required; neither
enforces bounds and patterns, so those move into the description, where the model reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

Json = Mapping[str, Any]

SCHEMA_INSTRUCTION = {
    "zh": "只输出符合以下 JSON Schema 的 JSON，不要代码围栏，不要其他文字：\n",
    "en": "Output only JSON that satisfies this JSON Schema, without a code fence or any other text:\n",
}
_UNENFORCED = (
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties",
)  # fmt: skip
_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}


@lru_cache(maxsize=256)
def strict_schema(model: type, *, all_required: bool) -> Json:
    """The strict schema of a pydantic model class; equal calls give the same object."""
    return _strict(cast("Any", model).model_json_schema(), all_required)


def _strict(node: Any, all_required: bool) -> Any:
    if isinstance(node, list):
        return [_strict(item, all_required) for item in cast("list[Any]", node)]
    if not isinstance(node, Mapping):
        return node
    schema = dict(cast("Json", node))
    for key in ("properties", "$defs"):
        if key in schema:
            schema[key] = {name: _strict(sub, all_required) for name, sub in schema[key].items()}
    for key in ("items", "prefixItems", "anyOf", "oneOf", "allOf", "not"):
        if key in schema:
            schema[key] = _strict(schema[key], all_required)
    if "oneOf" in schema:
        schema["anyOf"] = schema.pop("oneOf")
        schema.pop("discriminator", None)
    if schema.get("type") == "object" and "properties" in schema:
        schema["additionalProperties"] = False
        if all_required:
            schema["required"] = list(schema["properties"])
    if all_required:
        schema.pop("default", None)
    notes = {key: schema.pop(key) for key in _UNENFORCED if key in schema}
    if schema.get("format") not in (None, *_FORMATS):
        notes["format"] = schema.pop("format")
    if notes:
        told = ", ".join(f"{key}: {value}" for key, value in notes.items())
        schema["description"] = f"{schema['description']} ({told})" if "description" in schema else f"({told})"
    return schema
