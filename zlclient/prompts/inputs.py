"""The inputs a prompt declares: kinds, defaults, trust; and the values a caller gives, checked against them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from ..errors import ConfigError
from .errors import PromptInputError
from .parts import FrontMatter
from .rendering import plain

KINDS = ("string", "integer", "float", "boolean", "array", "object", "thread", "image", "file", "audio", "any")
_ALIASES = {"int": "integer", "number": "float", "bool": "boolean", "list": "array", "dict": "object", "union": "any"}
_CANNOT_INSTRUCT = frozenset(["integer", "float", "boolean"])
_MISSING: Any = object()


@dataclass(frozen=True)
class Input:
    """One declared input.

    `trust` is "untrusted" unless the template says `trust: trusted`; numbers, truth values and values out of
    `enum` are trusted, since they can only be what the template's author allowed. `example` documents, it never
    stands in for a value.
    """

    name: str
    kind: str = "string"
    description: str = ""
    required: bool = False
    default: Any = _MISSING
    example: Any = None
    enum: tuple[Any, ...] = ()
    trust: Literal["trusted", "untrusted"] = "untrusted"
    strict: bool = False
    line: int | None = None

    @property
    def has_default(self) -> bool:
        """Whether a value is optional because there is another one."""
        return self.default is not _MISSING


def kind_of(value: Any) -> str:
    """The kind of a scalar shorthand's value."""
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "float"), (str, "string"), (Mapping, "object")):
        if isinstance(value, kind):
            return name
    return "array" if isinstance(value, (list, tuple)) else "any"


def properties(declared: Any) -> list[dict[str, Any]]:
    """Inputs or outputs, declared as a list or a map, scalars standing for defaults, as a list of mappings.

    Raises:
        ConfigError: it is neither.
    """
    if declared is None:
        return []
    if isinstance(declared, Mapping):
        return [_property(name, spec) for name, spec in cast("Mapping[str, Any]", declared).items()]
    if isinstance(declared, list):
        specs = cast("list[Any]", declared)
        if all(isinstance(spec, Mapping) and "name" in spec for spec in specs):
            return [dict(spec) for spec in specs]
    raise ConfigError("must be a map of names, or a list of mappings with a name each")


def _property(name: str, spec: Any) -> dict[str, Any]:
    if isinstance(spec, Mapping):
        return {"name": str(name), **cast("dict[str, Any]", spec)}
    return {"name": str(name), "kind": kind_of(spec)} | ({} if spec is None else {"default": spec})


def read_inputs(data: Mapping[str, Any], front: FrontMatter | None, file: str | None, lines: Any) -> dict[str, Input]:
    """The inputs of v2 front matter, by name.

    Raises:
        ConfigError: a declaration is wrong; names file and line.
    """
    found: dict[str, Input] = {}
    try:
        declared = properties(data.get("inputs"))
    except ConfigError as error:
        raise ConfigError(str(error), key="inputs", file=file) from None
    for index, spec in enumerate(declared):
        name = str(spec["name"])
        line = _line(front, index, name, lines)
        kind = str(spec.get("kind", "string"))
        kind = _ALIASES.get(kind, kind)
        key = f"inputs.{name}"
        if kind not in KINDS:
            raise ConfigError(f"unknown kind; known are {', '.join(KINDS)}", key=key, value=kind, file=file, line=line)
        trust = spec.get("trust", "untrusted")
        if trust not in ("trusted", "untrusted"):
            raise ConfigError("trust must be trusted or untrusted", key=key, value=trust, file=file, line=line)
        if name in found:
            raise ConfigError("is declared twice", key=key, file=file, line=line)
        enum = spec.get("enumValues") or ()
        found[name] = Input(
            name=name,
            kind=kind,
            description=str(spec.get("description") or ""),
            required=spec.get("required") is True,
            default=spec.get("default", _MISSING),
            example=spec.get("example"),
            enum=tuple(cast("list[Any]", enum)) if isinstance(enum, list) else (),
            trust="trusted" if enum or kind in _CANNOT_INSTRUCT else trust,
            strict=spec.get("strict") is True,
            line=line,
        )
    return found


def _line(front: FrontMatter | None, index: int, name: str, lines: Any) -> int | None:
    if front is None:
        return None
    span = front.keys.get(("inputs", index, "name")) or front.keys.get(("inputs", name))
    return lines(span.start)[0] if span else None


def check_values(
    inputs: Mapping[str, Input], used: Iterable[str], values: Mapping[str, Any], file: str | None
) -> dict[str, Any]:
    """Plain copies of `values` and of the defaults of what is not given.

    Raises:
        PromptInputError: a required input is missing, one is unknown, or a value is of a wrong kind.
    """
    known = {*inputs, *used}
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(sorted(known)) or 'none'}"
            raise PromptInputError(f"is not an input of this prompt{hint}", input=name, file=file)
    checked: dict[str, Any] = {}
    for name, spec in inputs.items():
        if name in values:
            checked[name] = _checked(values[name], spec, file)
        elif spec.has_default:
            checked[name] = plain(spec.default, name)
        elif spec.required:
            raise PromptInputError(f"Missing required input of kind {spec.kind}", input=name, file=file, line=spec.line)
    return checked | {name: plain(value, name) for name, value in values.items() if name not in inputs}


def _checked(value: Any, spec: Input, file: str | None) -> Any:
    if not _is_kind(value, spec.kind):
        problem = f"must be of kind {spec.kind}, not {type(value).__name__}"
        raise PromptInputError(problem, input=spec.name, file=file, line=spec.line)
    value = plain(value, spec.name)
    if spec.enum and value not in spec.enum:
        accepted = ", ".join(repr(item) for item in spec.enum)
        raise PromptInputError(f"must be one of {accepted}", input=spec.name, file=file, line=spec.line)
    return value


def _is_kind(value: Any, kind: str) -> bool:
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "float":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind in ("array", "thread"):
        return isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    if kind in ("image", "file", "audio"):
        return isinstance(value, (str, Mapping))
    types: dict[str, type | tuple[type, ...]] = {"string": str, "boolean": bool, "object": Mapping}
    return isinstance(value, types.get(kind, object))
