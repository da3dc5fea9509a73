import json
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zlclient.serving.schema import Source, Unsatisfiable, generate
from zlclient.serving.schema_check import fits


def valid(schema: dict[str, Any], seed: str = "seed", source: Source | None = None) -> Any:
    value = generate(schema, seed, source or Source())
    jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(value)
    assert generate(schema, seed, source or Source()) == value
    assert json.loads(json.dumps(value)) == value
    return value


PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
TREE = {
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "value": {"type": "integer"},
                "left": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            },
            "required": ["value", "left", "children"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/Node",
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "flat": PERSON,
    "recursive": TREE,
    "recursive at the root": {
        "type": "object",
        "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
        "required": ["next"],
    },
    "definitions": {"definitions": {"a": {"type": "string", "minLength": 3}}, "$ref": "#/definitions/a"},
    "escaped ref": {"$defs": {"a/b~c": {"type": "integer"}}, "$ref": "#/$defs/a~1b~0c"},
    "ref with siblings": {"$defs": {"a": {"type": "integer"}}, "$ref": "#/$defs/a", "minimum": 5, "maximum": 5},
    "enum": {"enum": ["red", 3, None, {"a": 1}]},
    "const": {"type": "object", "properties": {"kind": {"const": "cat"}}, "required": ["kind"]},
    "const false": {"const": False},
    "discriminated union": {
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "integer"}}, "required": ["kind"]},
            {"type": "object", "properties": {"kind": {"const": "b"}, "y": {"type": "string"}}, "required": ["kind"]},
        ]
    },
    "oneOf that overlaps": {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 10}]},
    "anyOf null": {"anyOf": [{"type": "null"}, {"type": "string", "format": "email"}]},
    "allOf": {"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, PERSON | {"additionalProperties": True}]},
    "allOf bounds": {"allOf": [{"type": "number", "minimum": 3}, {"maximum": 3.5}, {"type": "number"}]},
    "allOf integer and number": {"allOf": [{"type": "number"}, {"type": "integer", "minimum": 7}]},
    "not": {"type": "integer", "minimum": 1, "maximum": 2, "not": {"const": 1}},
    "if then": {
        "type": "object",
        "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "string"}},
        "required": ["a"],
        "if": {"properties": {"a": {"const": "x"}}},
        "then": {"required": ["b"]},
        "else": {"required": ["c"], "properties": {"c": {"type": "integer"}}},
    },
    "types": {"type": ["null", "integer"]},
    "no type": {"minimum": 3},
    "empty": {},
    "integer bounds": {"type": "integer", "exclusiveMinimum": 4, "exclusiveMaximum": 6},
    "negative": {"type": "integer", "maximum": -100},
    "huge": {"type": "integer", "minimum": 10**12},
    "multiple": {"type": "integer", "multipleOf": 7, "minimum": 8, "maximum": 20},
    "multiple of a fraction": {"type": "number", "multipleOf": 0.01, "minimum": 0.5, "maximum": 0.75},
    "narrow number": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.001},
    "string lengths": {"type": "string", "minLength": 40, "maxLength": 42},
    "short string": {"type": "string", "maxLength": 1},
    "no string": {"type": "string", "maxLength": 0},
    "pattern": {"type": "string", "pattern": r"^[A-Z]{3}-\d{4}(?:-(?:a|b))?$"},
    "unanchored pattern": {"type": "string", "pattern": "foo|bar"},
    "pattern and length": {"type": "string", "pattern": "^[a-z]+$", "minLength": 3, "maxLength": 4},
    "negated class": {"type": "string", "pattern": r"^[^\s@]+@[^\s@]+\.[a-z]{2,}$"},
    **{
        name: {"type": "string", "format": name}
        for name in ("date", "date-time", "email", "ipv4", "ipv6", "uuid", "uri", "hostname", "duration", "regex", "x-own")
    },
    "array": {"type": "array", "items": PERSON, "minItems": 3, "maxItems": 3},
    "no items": {"type": "array", "maxItems": 0},
    "unique": {"type": "array", "items": {"enum": ["a", "b", "c", "d"]}, "minItems": 4, "uniqueItems": True},
    "unique booleans": {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "uniqueItems": True},
    "tuple": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False, "minItems": 2},
    "tuple with rest": {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "string"}, "minItems": 3},
    "contains": {"type": "array", "items": {"type": "integer"}, "contains": {"minimum": 50, "type": "integer"}, "minContains": 2},
    "mapping": {"type": "object", "additionalProperties": {"type": "integer"}},
    "mapping with names": {
        "type": "object",
        "propertyNames": {"pattern": "^k[0-9]$"},
        "additionalProperties": {"type": "boolean"},
        "minProperties": 2,
    },
    "pattern properties": {"type": "object", "patternProperties": {"^x_[a-z]$": {"type": "integer"}}, "additionalProperties": False, "minProperties": 1},
    "required without properties": {"type": "object", "required": ["a", "b"]},
    "dependent": {"type": "object", "properties": {"a": {}, "b": {}}, "dependentRequired": {"a": ["b"]}},
    "forbidden property": {"type": "object", "properties": {"a": {"type": "string"}, "b": False}},
    "deep": {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "array", "items": PERSON}}, "required": ["c"]}}}, "required": ["b"]}}, "required": ["a"]},
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("seed", ["a", "b", "c"])
def test_values_are_valid(name: str, seed: str):
    valid(SCHEMAS[name], seed)
    valid(SCHEMAS[name], seed, Source("Ada Lovelace, 36, met Bob Stone in Paris on 2024-05-01.", lambda: "She is 36."))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 5, "maximum": 4},
        {"not": {}},
        {"enum": []},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"$ref": "#/$defs/gone"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"$ref": "https://example.com/schema.json"},
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "string", "pattern": "(?=x)y"},
        {"type": "array", "items": {"type": "boolean"}, "minItems": 3, "uniqueItems": True},
    ],
)
def test_what_nothing_satisfies_is_said(schema: dict[str, Any]):
    with pytest.raises(Unsatisfiable):
        generate(schema, "seed")


def test_values_are_drawn_from_the_text():
    source = Source("What was the weather in Oslo on 2024-05-01 for Ada Lovelace, aged 36? Mail ada@example.org")
    schema = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("city", "date", "name", "email", "query")}
        | {"age": {"type": "integer"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
    }
    value = generate(schema, "seed", source)
    assert (value["city"], value["date"], value["name"]) == ("Oslo", "2024-05-01", "Ada Lovelace")
    assert (value["email"], value["age"], value["query"]) == ("ada@example.org", 36, source.text)


def test_an_enum_value_that_the_text_mentions_is_taken():
    assert generate({"enum": ["joy", "anger", "fear"]}, "s", Source("They shook with anger.")) == "anger"


def test_the_answer_fills_what_is_called_answer():
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
    assert generate(schema, "s", Source("q", lambda: "forty-two")) == {"answer": "forty-two"}


@pytest.mark.parametrize(
    ("text", "city"), [("北京天气怎么样？", "北京"), ("查一下上海今天的天气", "上海"), ("我想去杭州市玩", "杭州")]
)
def test_chinese_places_are_found(text: str, city: str):
    assert generate({"type": "object", "properties": {"city": {"type": "string"}}}, "s", Source(text)) == {"city": city}


NAMES = st.sampled_from(["a", "name", "age", "city", "count", "answer", "日期"])
NUMBERS = st.integers(-50, 50)


def numbers(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": st.just(kind)},
        optional={"minimum": st.integers(-50, 0), "exclusiveMaximum": st.integers(1, 50)},
    )


STRINGS = st.fixed_dictionaries(
    {"type": st.just("string")}, optional={"minLength": st.integers(0, 9), "maxLength": st.integers(9, 20)}
)
LEAVES = st.one_of(
    numbers("integer"),
    numbers("number"),
    STRINGS,
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.lists(st.one_of(NUMBERS, st.text(max_size=4), st.none()), min_size=1).map(lambda values: {"enum": values}),
    st.sampled_from(["date", "date-time", "email", "uuid", "ipv4"]).map(lambda name: {"type": "string", "format": name}),
    st.sampled_from([r"^\d{3}$", "^[a-f]{2,6}$", r"\w+@\w+", "^(ab|cd)+$"]).map(lambda p: {"type": "string", "pattern": p}),
)  # fmt: skip


def bigger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.dictionaries(NAMES, inner, max_size=4).flatmap(
        lambda properties: st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.just(properties),
                "required": st.sampled_from([[], list(properties)]),
            },
            optional={"additionalProperties": st.just(False)},
        )
    )
    arrays = st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner},
        optional={"minItems": st.integers(0, 3), "maxItems": st.integers(3, 5)},
    )
    unions = st.lists(inner, min_size=1, max_size=3).map(lambda options: {"anyOf": options})
    return st.one_of(objects, arrays, unions)


@given(schema=st.recursive(LEAVES, bigger, max_leaves=8), seed=st.text(max_size=5), text=st.text(max_size=40))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_schema_of_these_keywords_gets_a_valid_value(schema: dict[str, Any], seed: str, text: str):
    value = generate(schema, seed, Source(text, lambda: text))
    jsonschema.Draft202012Validator(schema).validate(value)
    assert fits(value, schema, schema)


ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.floats(-9, 9), st.text(max_size=6)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=5,
)


@given(
    schema=st.one_of(st.recursive(LEAVES, bigger, max_leaves=6), st.sampled_from(list(SCHEMAS.values()))),
    value=ANYTHING,
)
@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_our_check_agrees_with_jsonschema(schema: dict[str, Any], value: Any):
    assert fits(value, schema, schema) == jsonschema.Draft202012Validator(schema).is_valid(value)


def test_patterns_are_matched_as_written():
    for pattern in (r"^v\d+\.\d+\.\d+$", "^(?:yes|no)$", r"^[\w.-]{2,8}$", "^a{2}b?c*$", r"^\S+ \S+$"):
        assert re.search(pattern, valid({"type": "string", "pattern": pattern}))


def test_fields_are_read_from_a_passage_in_the_type_that_the_schema_wants():
    stated = {"net income of the year": "3.2亿元", "signed": "1 March 2024", "staff": "1,250", "tenant": "Teru Bank"}
    schema = {
        "type": "object",
        "properties": {
            "net_income": {"type": "number", "description": "of the year"},
            "signed": {"type": "string", "format": "date"},
            "staff": {"type": "integer", "minimum": 1},
            "tenant": {"type": "string"},
            "guarantor": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "court": {"type": ["string", "null"]},
            "notes": {"type": "string"},
        },
        "required": ["net_income", "signed", "staff", "tenant", "guarantor", "court", "notes"],
    }
    assert valid(schema, source=Source(field=lambda kind, name, about: stated.get(f"{name} {about}".strip()))) == {
        "net_income": 320_000_000, "signed": "2024-03-01", "staff": 1250, "tenant": "Teru Bank",
        "guarantor": None, "court": None, "notes": "",
    }  # fmt: skip


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("text", [None, "", "many words 12.5 and 2024-01-02"])
def test_whatever_a_passage_states_the_value_is_valid(name, text):
    valid(SCHEMAS[name], source=Source(field=lambda kind, name, about: text))
