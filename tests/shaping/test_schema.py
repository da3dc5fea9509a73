"""Schemas in the form that structured output takes; what has no such form is told as an instruction."""

import enum
from typing import Any, Generic, Literal, Optional, TypeVar

import jsonschema
import pytest
from pydantic import BaseModel, Field, RootModel

from zlclient import Client, Settings
from zlclient.shaping.schema import open_part, strict_schema

T = TypeVar("T")


class Colour(enum.Enum):
    red = "r"
    green = "g"


class Inner(BaseModel):
    """An inner thing."""

    x: int = Field(ge=0, description="an x")
    colour: Colour = Field(Colour.red, description="its colour")


class Outer(BaseModel):
    inner: Inner = Field(description="the inner one")
    other: Inner | None = Field(None, description="another")
    many: list[Inner] = []


class Tree(BaseModel):
    children: list["Tree"] = []
    value: int


class Chain(BaseModel):
    next: Optional["Chain"] = None
    twin: "Chain" = Field(default=None, description="itself again")


class Box(BaseModel, Generic[T]):
    content: T


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Pet(BaseModel):
    pet: Cat | Dog = Field(discriminator="kind")


class Numbers(RootModel[list[int]]):
    pass


class Prices(BaseModel):
    prices: dict[str, int]


class Anything(BaseModel):
    value: Any


class Pair(BaseModel):
    pair: tuple[int, str]


CLOSED = [Inner, Outer, Tree, Chain, Box[int], Pet]


def parts(schema):
    yield schema
    for value in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(value, dict | list):
            yield from parts(value)


@pytest.mark.parametrize("model", CLOSED)
@pytest.mark.parametrize("all_required", [True, False])
def test_a_strict_schema_keeps_the_rules(model, all_required):
    schema = strict_schema(model, all_required=all_required)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert open_part(schema) is None
    for part in parts(schema):
        if "$ref" in part:
            assert list(part) == ["$ref"]
            assert part["$ref"].removeprefix("#/$defs/") in schema["$defs"]
        if isinstance(part, dict) and part.get("type") == "object":
            assert part["additionalProperties"] is False
            assert not all_required or part["required"] == list(part["properties"])


def test_what_stands_beside_a_reference_is_kept():
    properties = strict_schema(Outer, all_required=True)["properties"]
    assert properties["inner"]["description"] == "the inner one"
    assert properties["inner"]["properties"]["x"]["description"] == "an x (minimum: 0)"
    assert properties["inner"]["properties"]["colour"] == {
        "description": "its colour", "enum": ["r", "g"], "title": "Colour", "type": "string",
    }  # fmt: skip
    assert properties["many"]["items"] == {"$ref": "#/$defs/Inner"}
    colour = strict_schema(Inner, all_required=False)["properties"]["colour"]
    assert colour["default"] == "r"


def test_a_recursive_root_is_an_object_that_refers_to_itself():
    schema = strict_schema(Tree, all_required=True)
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    jsonschema.validate({"value": 1, "children": [{"value": 2, "children": []}]}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"value": 1, "children": [{"value": "2", "children": []}]}, schema)


@pytest.mark.parametrize(
    ("model", "part"),
    [
        (Prices, "$.prices has free keys"),
        (Anything, "$.value may be anything"),
        (Pair, "$.pair is a tuple"),
        (Box[list[dict[str, Any]]], "$.content[] has free keys"),
        (Box[Prices], "Prices.prices has free keys"),
        (Box[list], "$.content[] may be anything"),
        (RootModel[dict[str, int] | int], "$ has free keys"),
    ],
)
def test_what_structured_output_has_no_form_for(model, part):
    assert open_part(strict_schema(model, all_required=True)) == part


@pytest.mark.parametrize(
    ("model", "route", "reason"),
    [
        (Prices, "openai:gpt-6.1-sol", "$.prices has free keys"),
        (Prices, "anthropic:claude-sonnet-5-5", "$.prices has free keys"),
        (Numbers, "openai:gpt-6.1-sol", "object at the root"),
        (RootModel[Cat | Dog], "openai:gpt-6.1-sol", "object at the root"),
    ],
)
def test_it_is_told_as_an_instruction(model, route, reason):
    with Client(settings=Settings.load(folder="/", env={})) as client:
        prepared = client.prepare("q", model=route, output=model)
    assert not {"response_format", "output_config"} & prepared.body.keys()
    [note] = [note for note in prepared.adjustments if note.rule == "output"]
    assert (note.after, reason in note.reason) == ("instruction", True)
    assert "JSON Schema" in str(prepared.tuned.system)


def test_what_is_taken_is_asked_for():
    with Client(settings=Settings.load(folder="/", env={})) as client:
        assert "output_config" in client.prepare("q", model="anthropic:claude-sonnet-5-5", output=Numbers).body
        assert "output_config" in client.prepare("q", provider="local", output=Prices).body
        for model in CLOSED:
            assert "response_format" in client.prepare("q", model="openai:gpt-6.1-sol", output=model).body
