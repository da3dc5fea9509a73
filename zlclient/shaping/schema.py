"""The JSON schema of a pydantic model, in the form that structured output takes.

Both providers want `additionalProperties: false` on every object; OpenAI also wants every property required, an object
at the root and nothing beside a `$ref`. Neither enforces bounds and patterns, so those move into the description, where
the model reads them; neither has a form for free keys, for tuples or for a value of any type. These are the rules that
the SDKs' own transformations follow (`anthropic.transform_schema`, `openai.pydantic_function_tool`).
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


_DEFINITION = "#/$defs/"


@lru_cache(maxsize=256)
def strict_schema(model: type, *, all_required: bool) -> Json:
    """The strict schema of a pydantic model class; equal calls give the same object."""
    raw = cast("Json", cast("Any", model).model_json_schema())
    return _Strict(raw.get("$defs", {}), all_required).schema(raw, ())


def open_part(schema: Any, place: str = "$") -> str | None:
    """What in a strict schema structured output has no form for, such as "$.prices has free keys"; None for nothing."""
    if not isinstance(schema, Mapping):
        return f"{place} may be anything"
    rules = cast("Json", schema)
    for name, part in rules.get("$defs", {}).items():
        if found := open_part(part, name):
            return found
    if "$ref" in rules or "enum" in rules or "const" in rules:
        return None
    options = [part for key in ("anyOf", "allOf") for part in rules.get(key, ())]
    if options:
        return next(filter(None, (open_part(part, place) for part in options)), None)
    kind = rules.get("type")
    if kind is None:
        return f"{place} may be anything"
    if kind == "object":
        if rules.get("additionalProperties") is not False:
            return f"{place} has free keys"
        parts = (open_part(part, f"{place}.{name}") for name, part in rules.get("properties", {}).items())
        return next(filter(None, parts), None)
    if "prefixItems" in rules:
        return f"{place} is a tuple"
    return open_part(rules.get("items"), f"{place}[]") if kind == "array" else None


class _Strict:
    """Rewrites the parts of one schema; `within` holds the references that a part was put in place of."""

    def __init__(self, definitions: Json, all_required: bool) -> None:
        self._definitions, self._all_required = definitions, all_required

    def schema(self, node: Any, within: tuple[str, ...]) -> Any:
        if isinstance(node, list):
            return [self.schema(item, within) for item in cast("list[Any]", node)]
        if not isinstance(node, Mapping):
            return node
        schema = dict(cast("Json", node))
        if self._all_required:
            schema.pop("default", None)
        if "$ref" in schema and len(schema) > 1:
            return self._in_place(schema, within)
        if "$defs" in schema:
            parts = schema["$defs"].items()
            schema["$defs"] = {name: self.schema(part, (_DEFINITION + name,)) for name, part in parts}
        if "properties" in schema:
            schema["properties"] = {name: self.schema(part, within) for name, part in schema["properties"].items()}
        for key in ("items", "prefixItems", "additionalProperties", "anyOf", "oneOf", "allOf", "not"):
            if key in schema:
                schema[key] = self.schema(schema[key], within)
        if "oneOf" in schema:
            schema["anyOf"] = schema.pop("oneOf")
            schema.pop("discriminator", None)
        if schema.get("type") == "object" and "properties" in schema:
            schema["additionalProperties"] = False
            if self._all_required:
                schema["required"] = list(schema["properties"])
        return _described(schema)

    def _in_place(self, schema: dict[str, Any], within: tuple[str, ...]) -> Any:
        """What a reference stands for, with what was said beside it; a reference to itself stays one, alone."""
        reference = schema.pop("$ref")
        if reference in within:
            return {"$ref": reference}
        target = self._definitions[reference.removeprefix(_DEFINITION)]
        return self.schema({**target, **schema}, (*within, reference))


def _described(schema: dict[str, Any]) -> Json:
    """`schema` with what is not enforced told in its description."""
    notes = {key: schema.pop(key) for key in _UNENFORCED if key in schema}
    if schema.get("format") not in (None, *_FORMATS):
        notes["format"] = schema.pop("format")
    if notes:
        told = ", ".join(f"{key}: {value}" for key, value in notes.items())
        schema["description"] = f"{schema['description']} ({told})" if "description" in schema else f"({told})"
    return schema
