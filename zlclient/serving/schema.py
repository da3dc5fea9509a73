"""Values for a JSON schema: valid, deterministic by seed, and drawn from the request's own text where it has something
to give.

generate({"type": "object", "properties": {"city": {"type": "string"}}}, "seed", Source("weather in Paris"))
# {"city": "Paris"}
"""

from __future__ import annotations

import math
import random
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, cast

from .field_values import date_in, number_in, spoken
from .schema_check import Schema, Unresolvable, fits, merge, resolve
from .schema_strings import formatted, matching, sized

TRIES = 24  # values made before a schema counts as one that cannot be satisfied here
DEEP = 4  # from this depth on, optional parts are left out, so that recursive schemas end
DEEPEST = 40


class Unsatisfiable(ValueError):
    """No value was found that fits the schema; the message says why, as far as is known."""


Field = Callable[[Literal["string", "number"], str, str], str | None]


@dataclass(frozen=True, slots=True)
class Source:
    """What values are drawn from: the request's text, and the answer a plain question would get.

    `field` reads a value out of a passage, as it stands there, by its kind, name and description ("" for none), and
    gives None where the passage does not state it. Where there is a `field`, a value that it does not find is null or
    empty if the schema lets it be.
    """

    text: str = ""
    answer: Callable[[], str] = str
    field: Field | None = None


def generate(schema: Schema, seed: str, source: Source = Source()) -> Any:
    """A value that is valid under `schema`; equal arguments give equal values.

    Raises:
        Unsatisfiable: no valid value was found (the schema contradicts itself, or needs infinite depth).
    """
    problem = "the schema contradicts itself"
    for attempt in range(TRIES):
        maker = _Maker(
            schema, random.Random(f"{seed}:{attempt}"), source if attempt < TRIES // 2 else Source(), attempt
        )
        try:
            value = maker.make(schema, "", 0)
            if fits(value, schema, schema):
                return value
        except (Unresolvable, Unsatisfiable) as error:
            problem = str(error)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError, re.error):
            problem = "it is no JSON schema"
    raise Unsatisfiable(problem)


class _Maker:
    """One attempt at a value. Later attempts choose at random where the first takes what comes first."""

    def __init__(self, root: Schema, rng: random.Random, source: Source, attempt: int) -> None:
        self._root, self._rng, self._source, self._attempt = root, rng, source, attempt
        self._used: set[str] = set()

    def make(self, schema: Any, name: str, depth: int) -> Any:
        if depth > DEEPEST:
            raise Unsatisfiable("the schema has no value of finite depth")
        rules = self._flat(schema, depth)
        stated = self._stated(schema, rules, name, depth)
        if stated is not _UNSTATED:
            return stated
        if "const" in rules:
            return rules["const"]
        if "enum" in rules:
            return self._from_enum(rules["enum"])
        kind = self._kind(rules, depth)
        match kind:
            case "object":
                return self._object(rules, depth)
            case "array":
                return self._array(rules, name, depth)
            case "string":
                return self._string(rules, name)
            case "integer" | "number":
                return self._number(rules, name, whole=kind == "integer")
            case "boolean":
                return self._rng.random() < 0.5 if self._attempt else True
            case _:
                return None

    def _flat(self, schema: Any, depth: int) -> Schema:
        """`schema` with its references followed and one option of each anyOf and oneOf chosen and merged in."""
        rules = resolve(schema, self._root)
        for _ in range(16):
            key = next((key for key in ("allOf", "anyOf", "oneOf") if key in rules), None)
            if key is None:
                break
            rest = {name: value for name, value in rules.items() if name != key}
            options: list[Any] = list(rules[key])
            chosen = options if key == "allOf" else [self._option(options, depth)]
            for option in chosen:
                rest = merge(rest, resolve(option, self._root))
            rules = rest
        if "if" in rules and self._attempt % 2 == 0:
            rules = merge(merge(rules, resolve(rules["if"], self._root)), resolve(rules.get("then", True), self._root))
        elif "else" in rules:
            rules = merge(rules, resolve(rules["else"], self._root))
        return rules

    def _option(self, options: list[Any], depth: int) -> Any:
        if not options:
            raise Unsatisfiable("an empty anyOf")
        if depth >= DEEP:
            # The options that end soonest: null, then plain values, then what does not refer to anything.
            return min(options, key=_cost)
        if self._attempt:
            return self._rng.choice(options)
        return next((option for option in options if option != {"type": "null"}), options[0])

    def _kind(self, rules: Schema, depth: int) -> str:
        kind = rules.get("type")
        if isinstance(kind, str):
            return kind
        if isinstance(kind, list):
            names = cast("list[str]", kind)
            if not names:
                raise Unsatisfiable("no type is left that fits all of the schema")
            if depth >= DEEP and "null" in names:
                return "null"
            return next((name for name in names if name != "null"), "null")
        for key, implied in _IMPLIED.items():
            if key in rules:
                return implied
        return "string"

    def _from_enum(self, values: list[Any]) -> Any:
        if not values:
            raise Unsatisfiable("an empty enum")
        text = self._source.text.lower()
        mentioned = [value for value in values if isinstance(value, str) and value and value.lower() in text]
        return mentioned[0] if mentioned and not self._attempt else self._rng.choice(values)

    def _object(self, rules: Schema, depth: int) -> dict[str, Any]:
        properties = cast("Schema", rules.get("properties", {}))
        required = set(rules.get("required", ()))
        if depth >= DEEP or (self._attempt and self._rng.random() < 0.5):
            names = [name for name in properties if name in required]
        else:
            names = [name for name in properties if properties[name] is not False]
        made = {name: self.make(properties[name], name, depth + 1) for name in names[: rules.get("maxProperties")]}
        extra = rules.get("additionalProperties", True)
        for name in rules.get("required", ()):
            if name not in made:
                made[name] = self.make(extra if extra is not False else True, name, depth + 1)
        wanted = max(rules.get("minProperties", 0), int(not properties and isinstance(extra, Mapping) and depth < DEEP))
        for name in self._extra_names(rules):
            if len(made) >= wanted:
                break
            if name not in made:
                made[name] = self.make(self._extra_schema(rules, name), name, depth + 1)
        return made

    def _extra_names(self, rules: Schema) -> Iterator[str]:
        yield from (name for name, sub in rules.get("properties", {}).items() if sub is not False)
        patterns = list(rules.get("patternProperties", ()))
        shape = rules.get("propertyNames")
        for number in range(1, 200):
            if isinstance(shape, Mapping):
                yield str(self.make({"type": "string", **cast("Schema", shape)}, "", DEEP))
            elif patterns:
                yield matching(self._rng.choice(patterns), self._rng) or f"key_{number}"
            else:
                yield f"key_{number}"

    def _extra_schema(self, rules: Schema, name: str) -> Any:
        if name in rules.get("properties", {}):
            return rules["properties"][name]
        for pattern, sub in rules.get("patternProperties", {}).items():
            if re.search(pattern, name):
                return sub
        return rules.get("additionalProperties", True)

    def _array(self, rules: Schema, name: str, depth: int) -> list[Any]:
        prefix = list(rules.get("prefixItems", ()))
        low, high = rules.get("minItems", 0), rules.get("maxItems", math.inf)
        usual = 0 if depth >= DEEP else max(len(prefix), 1 + self._rng.randint(0, 1))
        if rules.get("items") is False:
            usual, high = len(prefix), min(high, len(prefix))
        size = int(min(max(low, usual), high))
        made: list[Any] = []
        contains = int("contains" in rules) and rules.get("minContains", 1)
        if contains:
            size = max(size, int(min(contains + len(prefix), high)))
        for at in range(size):
            if at < len(prefix):
                item = prefix[at]
            elif at - len(prefix) < contains:
                item = merge(resolve(rules.get("items", True), self._root), resolve(rules["contains"], self._root))
            else:
                item = rules.get("items", True)
            value = self.make(item, _singular(name), depth + 1)
            for _ in range(32 if rules.get("uniqueItems") else 0):
                if value not in made:
                    break
                other = _Maker(self._root, self._rng, Source(), self._attempt + 1)
                value = other.make(item, "", depth + 1)
            if not rules.get("uniqueItems") or value not in made:
                made.append(value)
        return made

    def _string(self, rules: Schema, name: str) -> str:
        low, high = rules.get("minLength", 0), rules.get("maxLength", math.inf)
        pattern, shape = rules.get("pattern"), rules.get("format")
        if pattern is not None:
            for _ in range(40):
                made = matching(pattern, self._rng)
                if made is not None and low <= len(made) <= high:
                    return made
            return sized("", low, high, self._rng)
        made = formatted(shape, self._rng) if isinstance(shape, str) else None
        if made is not None:
            return made
        found = self._drawn("string", name)
        text = str(found) if found is not None else _plain(name, self._rng)
        return sized(text, low, high, self._rng)

    def _number(self, rules: Schema, name: str, *, whole: bool) -> float:
        low, high = rules.get("minimum", -math.inf), rules.get("maximum", math.inf)
        low = max(low, _beyond(rules.get("exclusiveMinimum", -math.inf), 1, whole))
        high = min(high, _beyond(rules.get("exclusiveMaximum", math.inf), -1, whole))
        if low > high:
            raise Unsatisfiable("no number lies between the bounds")
        step = rules.get("multipleOf", 1 if whole else None)
        found = self._drawn("number", name)
        if (
            isinstance(found, (int, float))
            and low <= found <= high
            and step in (None, 1)
            and whole <= float(found).is_integer()
        ):
            return int(found) if whole else found
        lower = low if math.isfinite(low) else min(0.0, high - 100)
        upper = high if math.isfinite(high) else max(lower + 100, lower * 1.5)
        if step is None:
            return self._fraction(lower, upper)
        first, last = math.ceil(lower / step), math.floor(upper / step)
        if first > last:
            raise Unsatisfiable("no multiple lies between the bounds")
        value = self._rng.randint(first, last) * step
        for _ in range(20):
            if low <= value <= high and (value / step).is_integer():
                break
            value = self._rng.randint(first, last) * step
        return int(value) if whole else value

    def _stated(self, schema: Any, rules: Schema, name: str, depth: int) -> Any:
        """What the passage states of a property, or what stands for its silence; _UNSTATED where neither fits."""
        if self._source.field is None or {"const", "enum"} & rules.keys() or rules.get("format", "date") != "date":
            return _UNSTATED
        kind = self._kind(rules, depth)
        if kind not in ("string", "integer", "number"):
            return _UNSTATED
        found = self._found("string" if kind == "string" else "number", name)
        found = self._read(kind, rules, name) if found is None or not fits(found, rules, self._root) else found
        if found is not None or _nullable(resolve(schema, self._root)):
            return found
        silent = kind == "string" and "format" not in rules and fits("", rules, self._root)
        return "" if silent else _UNSTATED

    def _read(self, kind: str, rules: Schema, name: str) -> str | float | None:
        """What the passage states of a property, if it fits the schema."""
        assert self._source.field is not None
        said = spoken(name), str(rules.get("description", ""))
        if kind == "string":
            text = self._source.field("string", *said)
            if rules.get("format") == "date":
                text = None if text is None else date_in(text)
            value: str | float | None = text
        else:
            text = self._source.field("number", *said)
            value = None if text is None else number_in(text)
            if value is not None and kind == "integer":
                value = int(value) if float(value).is_integer() else None
        return value if value is not None and fits(value, rules, self._root) else None

    def _fraction(self, lower: float, upper: float) -> float:
        for digits in (1, 2, 3, 6, 12):
            value = round(self._rng.uniform(lower, upper), digits)
            if lower <= value <= upper:
                return value
        return self._rng.uniform(lower, upper)

    def _drawn(self, kind: str, name: str) -> Any:
        """A value for a property called `name`, from the request's text or the hints' own; None when there is no
        hint."""
        hint = _hint(kind, name)
        if hint is None:
            return None
        if hint.answer and self._source.text:
            return self._source.answer() or None
        if hint.question and self._source.text:
            return self._source.text
        found = self._found(kind, name)
        return hint.otherwise if found is None else found

    def _found(self, kind: str, name: str) -> Any:
        """What the hint for a property called `name` finds in the request's text, each thing once."""
        hint = _hint(kind, name)
        for find in hint.find if hint else ():
            for match in find.finditer(self._source.text):
                found = match[1] if find.groups else match[0]
                if f"{name}:{found}" not in self._used:
                    self._used.add(f"{name}:{found}")
                    return found if kind == "string" else _as_number(found)
        return None


_UNSTATED = object()
_IMPLIED = {
    "properties": "object",
    "required": "object",
    "additionalProperties": "object",
    "minProperties": "object",
    "patternProperties": "object",
    "items": "array",
    "prefixItems": "array",
    "minItems": "array",
    "contains": "array",
    "pattern": "string",
    "format": "string",
    "minLength": "string",
    "maxLength": "string",
    "minimum": "number",
    "maximum": "number",
    "exclusiveMinimum": "number",
    "exclusiveMaximum": "number",
    "multipleOf": "number",
}


def _nullable(rules: Schema) -> bool:
    """Whether null fits: by its type, or as one of its options."""
    kind = rules.get("type")
    if kind == "null" or (isinstance(kind, list) and "null" in kind):
        return True
    options = [*rules.get("anyOf", ()), *rules.get("oneOf", ())]
    return any(isinstance(option, Mapping) and cast("Schema", option).get("type") == "null" for option in options)


def _cost(option: Any) -> int:
    if not isinstance(option, Mapping):
        return 2
    rules = cast("Schema", option)
    if rules.get("type") == "null" or "const" in rules or "enum" in rules:
        return 0
    if rules.get("type") in ("string", "integer", "number", "boolean"):
        return 1
    return 4 if "$ref" in rules else 3


def _beyond(bound: float, step: int, whole: bool) -> float:
    """The nearest number past an exclusive bound."""
    if not math.isfinite(bound):
        return bound
    if whole:
        return math.floor(bound) + 1 if step > 0 else math.ceil(bound) - 1
    return math.nextafter(bound, math.inf if step > 0 else -math.inf)


def _singular(name: str) -> str:
    return name.removesuffix("s")


def _plain(name: str, rng: random.Random) -> str:
    words = re.sub(r"[_\W]+", " ", name).strip() or "text"
    return f"{words} {rng.randint(1, 99)}"


def _as_number(text: str) -> float:
    return float(text) if "." in text else int(text)


@dataclass(frozen=True, slots=True)
class _Hint:
    name: re.Pattern[str]
    find: tuple[re.Pattern[str], ...]
    otherwise: Any
    answer: bool
    question: bool


def _hint(kind: str, name: str) -> _Hint | None:
    return next((hint for hint in _hints()[kind] if name and hint.name.search(name.lower())), None)


@cache
def _hints() -> Mapping[str, tuple[_Hint, ...]]:
    data = tomllib.loads((files("zlclient.serving") / "data" / "hints.toml").read_text("utf-8"))
    return {
        kind: tuple(
            _Hint(
                re.compile(entry["name"]),
                tuple(re.compile(find) for find in entry.get("find", ())),
                entry.get("otherwise"),
                entry.get("answer", False),
                entry.get("question", False),
            )
            for entry in entries
        )
        for kind, entries in data.items()
    }
