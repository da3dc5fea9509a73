"""Whether a value fits a JSON schema: the keywords the SDKs send and their neighbours (draft 2020-12, without
formats)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, cast

Schema = Mapping[str, Any]

_MISSING: Any = object()


class Unresolvable(ValueError):
    """A `$ref` that leads nowhere inside the schema, or in a circle."""


def resolve(schema: Any, root: Schema) -> Schema:
    """`schema` as a mapping, its `$ref` followed inside `root`, keywords beside the reference kept; true is {}."""
    if schema is True:
        return {}
    if schema is False:
        return {"not": {}}
    for _ in range(32):
        reference = schema.get("$ref")
        if reference is None:
            return schema
        beside = {key: value for key, value in schema.items() if key not in ("$ref", "$defs", "definitions")}
        target = _follow(str(reference), root)
        schema = target if not beside else merge(beside, target)
    raise Unresolvable(f"$ref: {schema.get('$ref')!r} refers to itself")


def _follow(reference: str, root: Schema) -> Schema:
    if not reference.startswith("#"):
        raise Unresolvable(f"$ref: {reference!r} is not inside the schema")
    found: Any = root
    for part in reference[1:].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list):
            found = (
                cast("list[Any]", found)[int(key)]
                if key.isdigit() and int(key) < len(cast("list[Any]", found))
                else _MISSING
            )
        else:
            found = cast("Schema", found).get(key, _MISSING) if isinstance(found, Mapping) else _MISSING
        if found is _MISSING:
            raise Unresolvable(f"$ref: {reference!r} leads nowhere")
    return {} if found is True else {"not": {}} if found is False else found


def merge(first: Schema, second: Schema) -> dict[str, Any]:
    """Both schemas at once, as `allOf` means it: bounds tightened, properties and requirements joined."""
    out = dict(first)
    for key, value in second.items():
        if key not in out:
            out[key] = value
        elif key == "properties":
            mine = out[key]
            out[key] = {
                **mine,
                **{
                    name: merge(mine[name], sub) if name in mine and _both(mine[name], sub) else sub
                    for name, sub in value.items()
                },
            }
        elif key == "required":
            out[key] = list(dict.fromkeys([*out[key], *value]))
        elif key in ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"):
            out[key] = max(out[key], value)
        elif key in ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"):
            out[key] = min(out[key], value)
        elif key == "enum":
            out[key] = [item for item in out[key] if item in value]
        elif key == "type":
            out[key] = _common_types(out[key], value)
        elif key == "items" and _both(out[key], value):
            out[key] = merge(out[key], value)
        elif value != out[key] and key not in _NOTES:
            out["allOf"] = [*out.get("allOf", ()), {key: value}]
    return out


_NOTES = frozenset({"title", "description", "default", "examples", "$schema", "$id", "$defs", "definitions"})


def _both(first: Any, second: Any) -> bool:
    return isinstance(first, Mapping) and isinstance(second, Mapping)


def _common_types(first: Any, second: Any) -> Any:
    mine = [first] if isinstance(first, str) else list(first)
    theirs = [second] if isinstance(second, str) else list(second)
    common = [name for name in mine if name in theirs]
    if "integer" in theirs and "number" in mine and "integer" not in common:
        common.append("integer")
    if "integer" in mine and "number" in theirs and "integer" not in common:
        common.append("integer")
    return common[0] if len(common) == 1 else common


def fits(value: Any, schema: Any, root: Schema) -> bool:
    """Whether `value` is valid under `schema`, whose references are found in `root`."""
    rules = resolve(schema, root)
    return (
        _fits_type(value, rules.get("type"))
        and ("enum" not in rules or any(_equal(value, item) for item in rules["enum"]))
        and ("const" not in rules or _equal(value, rules["const"]))
        and _fits_number(value, rules)
        and _fits_string(value, rules)
        and _fits_array(value, rules, root)
        and _fits_object(value, rules, root)
        and _fits_combined(value, rules, root)
    )


def _equal(first: Any, second: Any) -> bool:
    return first == second and isinstance(first, bool) == isinstance(second, bool)


def _fits_type(value: Any, kind: Any) -> bool:
    if kind is None:
        return True
    names = [kind] if isinstance(kind, str) else cast("list[str]", kind)
    return any(_is(value, name) for name in names)


def _is(value: Any, name: str) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    match name:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return number and float(value).is_integer()
        case "number":
            return number
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case _:
            return False


def _fits_number(value: Any, rules: Schema) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return True
    step = rules.get("multipleOf")
    return (
        value >= rules.get("minimum", -math.inf)
        and value <= rules.get("maximum", math.inf)
        and value > rules.get("exclusiveMinimum", -math.inf)
        and value < rules.get("exclusiveMaximum", math.inf)
        and (step is None or is_multiple(value, step))
    )


def is_multiple(value: float, step: float) -> bool:
    """Whether `value` is a whole multiple of `step`, in exact or in floating arithmetic."""
    if isinstance(value, int) and isinstance(step, int):
        return value % step == 0
    return (value / step).is_integer()


def _fits_string(value: Any, rules: Schema) -> bool:
    if not isinstance(value, str):
        return True
    pattern = rules.get("pattern")
    return rules.get("minLength", 0) <= len(value) <= rules.get("maxLength", math.inf) and (
        pattern is None or re.search(pattern, value) is not None
    )


def _fits_array(value: Any, rules: Schema, root: Schema) -> bool:
    if not isinstance(value, list):
        return True
    items = cast("list[Any]", value)
    if not rules.get("minItems", 0) <= len(items) <= rules.get("maxItems", math.inf):
        return False
    if rules.get("uniqueItems") and any(_equal(a, b) for at, a in enumerate(items) for b in items[at + 1 :]):
        return False
    prefix = rules.get("prefixItems", [])
    if not all(fits(item, sub, root) for item, sub in zip(items, prefix, strict=False)):
        return False
    if "items" in rules and not all(fits(item, rules["items"], root) for item in items[len(prefix) :]):
        return False
    if "contains" not in rules:
        return True
    found = sum(fits(item, rules["contains"], root) for item in items)
    return rules.get("minContains", 1) <= found <= rules.get("maxContains", math.inf)


def _fits_object(value: Any, rules: Schema, root: Schema) -> bool:
    if not isinstance(value, dict):
        return True
    given = cast("dict[str, Any]", value)
    if not all(name in given for name in rules.get("required", ())):
        return False
    if not rules.get("minProperties", 0) <= len(given) <= rules.get("maxProperties", math.inf):
        return False
    for name, needed in rules.get("dependentRequired", {}).items():
        if name in given and not all(other in given for other in needed):
            return False
    properties, patterns = rules.get("properties", {}), rules.get("patternProperties", {})
    for name, item in given.items():
        matched = [sub for pattern, sub in patterns.items() if re.search(pattern, name)]
        if name in properties:
            matched.append(properties[name])
        if not matched and "additionalProperties" in rules:
            matched.append(rules["additionalProperties"])
        if not all(fits(item, sub, root) for sub in matched):
            return False
        if "propertyNames" in rules and not fits(name, rules["propertyNames"], root):
            return False
    return True


def _fits_combined(value: Any, rules: Schema, root: Schema) -> bool:
    if not all(fits(value, sub, root) for sub in rules.get("allOf", ())):
        return False
    if "anyOf" in rules and not any(fits(value, sub, root) for sub in rules["anyOf"]):
        return False
    if "oneOf" in rules and sum(fits(value, sub, root) for sub in rules["oneOf"]) != 1:
        return False
    if "not" in rules and fits(value, rules["not"], root):
        return False
    if "if" in rules:
        branch = rules.get("then" if fits(value, rules["if"], root) else "else", True)
        return fits(value, branch, root)
    return True
