"""A JSON value against a JSON schema (through `jsonschema`, imported when first used) or a pydantic model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import InputError
from .output import OutputProblem, path

if TYPE_CHECKING:
    from pydantic import BaseModel
    from typing_extensions import TypeIs

    Schema: TypeAlias = dict[str, Any] | type[BaseModel]
else:
    Schema: TypeAlias = Any

_MOST_PROBLEMS = 20


def is_model(schema: Schema) -> TypeIs[type[BaseModel]]:
    """Whether a schema is given as a pydantic model."""
    return isinstance(schema, type) and hasattr(schema, "model_validate_json")


def check_schema(schema: Schema) -> None:
    """InputError where `schema` is neither a pydantic model nor a valid JSON schema of a known draft."""
    if is_model(schema):
        return
    if not isinstance(schema, dict):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise InputError("needs a JSON schema as a dict, or a pydantic model", where="format.json_schema")
    from jsonschema.exceptions import SchemaError

    try:
        _validator_class(schema).check_schema(schema)
    except SchemaError as error:
        where = path(list(error.absolute_path))
        raise InputError(f"no valid JSON schema at {where} ({error.validator})", where="format.json_schema") from None


def schema_problems(value: Any, schema: dict[str, Any]) -> Iterator[OutputProblem]:
    """Where `value` does not fit; the values themselves are not repeated. At most the first 20."""
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    # An empty registry: a $ref never leads out of the schema, and never onto the network.
    registry: Registry[Any] = Registry()
    validator = _validator_class(schema)(schema, registry=registry)
    try:
        for number, error in enumerate(validator.iter_errors(value)):
            if number >= _MOST_PROBLEMS:
                return
            yield OutputProblem(path(list(error.absolute_path)), str(error.validator), _expected(error))
    except (Unresolvable, RecursionError):
        yield OutputProblem("$", "$ref", "a schema whose references resolve within itself")


def _expected(error: Any) -> str:
    """What the schema wants there: from the schema alone."""
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        return f"required: {', '.join(missing)}"
    if error.validator in ("anyOf", "oneOf", "allOf", "not", "if", "properties", "additionalProperties"):
        return str(error.validator)
    return f"{error.validator}: {error.validator_value!r}"[:200]


def _validator_class(schema: dict[str, Any]) -> Any:
    from jsonschema import validators

    # The library's class factory has no types of its own.
    choose: Any = validators.validator_for  # pyright: ignore[reportUnknownMemberType]
    return choose(schema, default=validators.Draft202012Validator)
