"""What is handed in: it either leaves on both wires or is refused by name, and no refusal repeats the text."""

import contextlib
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from zlclient import Client, InputError
from zlclient.settings import Settings

MODELS = ("anthropic:claude-sonnet-5-5", "openai:gpt-6.1-sol")
TEXT = "Zq7 text of a person"  # never part of a message of ours
CLIENT = Client(settings=Settings.load(folder="/", env={}))

WORDS = [
    "user", "assistant", "system", "developer", "tool", "text", "image", "document", "image_url", "tool_use",
    "tool_result", "function", "thinking", "input_text", "file", "base64", "url", "auto", "any", "none", "required",
    "object", "https://host/x.png", "data:image/png;base64,AAAA", "{}", "[1]", '{"a": 1}', "[" * 2000, "", " ",
    TEXT, TEXT + "\u200b", "\ud800",
]  # fmt: skip
KEYS = [
    "role", "content", "type", "text", "name", "id", "input", "tool_use_id", "tool_call_id", "tool_calls", "function",
    "arguments", "source", "data", "media_type", "url", "image_url", "input_schema", "parameters", "description",
    "cache_control", "citations", "title", "is_error", "strict", TEXT,
]  # fmt: skip

leaves = st.sampled_from(WORDS) | st.none() | st.booleans() | st.integers(-2, 2) | st.just(1.5)
anything = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4) | st.tuples(inner)
    ),
    max_leaves=12,
)


def record(optional=None, **required):
    return st.fixed_dictionaries(required, optional=optional or {})


def places(value, path=()):
    """The path of everything inside `value`, itself first."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield from places(item, (*path, key))


def changed(value, path, new):
    """`value` with what is at `path` replaced, or left out where `new` is ..."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = changed(copy[path[0]], path[1:], new)
    if copy[path[0]] is ...:
        del copy[path[0]]
    return copy


@st.composite
def damaged(draw, sound):
    """Something sound with up to two of its parts replaced by anything, or left out."""
    value = draw(sound)
    for _ in range(draw(st.integers(0, 2))):
        inner = [path for path in places(value) if path]
        if inner:
            value = changed(value, draw(st.sampled_from(inner)), draw(anything | st.just(...)))
    return value


texts = st.sampled_from([TEXT, "a", "b"])
sources = (
    record(type=st.just("base64"), data=texts, media_type=st.just("image/png"))
    | record(type=st.just("url"), url=st.just("https://host/x"))
    | record(type=st.just("text"), data=texts)
)
images = record(type=st.just("image"), source=sources)
plain_blocks = (
    record({"citations": anything, "cache_control": anything}, type=st.just("text"), text=texts)
    | record({"title": texts}, type=st.just("document"), source=sources)
    | record(type=st.just("image_url"), image_url=record(url=texts) | texts)
    | record(type=st.sampled_from(["thinking", "input_text", "search_result"]), text=texts)
    | images
)
results = record(
    {"content": texts | st.lists(plain_blocks, max_size=2), "is_error": st.booleans()},
    type=st.just("tool_result"),
    tool_use_id=texts,
)
uses = record(type=st.just("tool_use"), id=texts, name=texts, input=st.just({"a": [TEXT]}))
functions = record({"arguments": st.just('{"a": 1}'), "parameters": st.just({})}, name=texts)
calls = st.lists(record(id=texts, function=functions), max_size=2)
turns = (
    record(
        {"name": texts}, role=st.just("user"), content=texts | st.lists(plain_blocks | results, min_size=1, max_size=3)
    )
    | record({"tool_calls": calls}, role=st.just("assistant"), content=texts | st.lists(uses, min_size=1, max_size=2))
    | record(role=st.just("tool"), tool_call_id=texts, content=texts)
    | record(role=st.just("system"), content=texts)
)
conversations = st.lists(turns, max_size=3).map(lambda found: [*found, {"role": "user", "content": "?"}])
systems = st.lists(record({"cache_control": st.just({})}, type=st.just("text"), text=texts), max_size=3)
tools = st.lists(
    record({"strict": st.booleans(), "description": texts}, name=texts, input_schema=st.just({"type": "object"}))
    | record(type=st.just("function"), function=functions)
    | record(type=st.just("function"), name=texts),
    max_size=2,
)
choices = (
    st.sampled_from(["auto", "any", TEXT])
    | record(type=st.just("tool"), name=texts)
    | record(type=st.just("function"), function=functions)
)


def leaves_or_is_refused(prompt, **options):
    for model in MODELS:
        refused = None
        try:
            prepared = CLIENT.prepare(prompt, model=model, **options)
        except InputError as error:
            refused = error
        if refused is None:
            assert json.loads(prepared.content)["messages"]
        else:
            assert TEXT not in str(refused)
            assert refused.__cause__ is None


@settings(max_examples=200, deadline=None)
@given(anything | damaged(conversations))
@example([])
@example([[]])
@example([{"role": TEXT, "content": "x"}])
@example([{"role": ["x"], "content": "q"}])
@example([{"role": "user", "content": (b"x",)}])
@example([{"role": "assistant", "tool_calls": "x"}, {"role": "user", "content": "q"}])
@example([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": ["x"]}]}])
@example([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": None}]}])
@example([{"role": "user", "content": [{"type": "document", "source": {"type": "text"}}]}])
@example([{"role": "user", "content": [{"type": ["x"], "text": "x"}]}])
@example(
    [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "x", "text": 5}]}]}]
)
def test_any_prompt(prompt):
    leaves_or_is_refused(prompt)


@settings(max_examples=100, deadline=None)
@given(anything | damaged(systems))
@example([{"type": "text"}])
@example([{}])
@example({"a": TEXT})
def test_any_system(system):
    leaves_or_is_refused("hi", system=system)


@settings(max_examples=150, deadline=None)
@given(anything | damaged(tools), anything | damaged(choices))
@example([{"type": "function", "function": "x"}], "auto")
@example([{}], "auto")
@example([], 5)
@example([], {"type": "tool"})
@example([], {"type": "function"})
@example([], {"type": "function", "function": None})
def test_any_tools_and_choice(tools, choice):
    leaves_or_is_refused("hi", tools=tools, tool_choice=choice)


def nested(depth, make):
    value = "x"
    for _ in range(depth):
        value = make(value)
    return value


def test_what_is_nested_too_deeply_is_refused():
    deep = nested(5000, lambda inner: [inner])
    results_in_results = nested(2000, lambda inner: [{"type": "tool_result", "tool_use_id": "t", "content": inner}])
    use = {"type": "tool_use", "id": "a", "name": "b", "input": {"d": deep}}
    for prompt, options in (
        ("hi", {"extra": {"d": deep}}),
        ("hi", {"tools": [{"name": "f", "input_schema": {"d": deep}}]}),
        ([{"role": "assistant", "content": [use]}, {"role": "user", "content": "q"}], {}),
        ([{"role": "user", "content": [{"type": "x", "d": deep}]}], {}),
        ([{"role": "user", "content": results_in_results}], {}),
    ):
        for model in MODELS:
            with pytest.raises(InputError):
                CLIENT.prepare(prompt, model=model, **options)


@pytest.mark.parametrize(
    ("prompt", "where"),
    [
        ([{"role": "poet", "content": "x"}], "messages[0].role"),
        ([{"role": "user", "content": 5}], "messages[0].content"),
        ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "messages[0].content[0].image_url"),
        ([{"role": "user", "content": [{"type": "document"}]}], "messages[0].content[0].source"),
        ([{"role": "tool", "content": "x"}], "messages[0].tool_call_id"),
        ([{"role": "assistant", "tool_calls": [{"id": "c"}]}], "messages[0].tool_calls[0].function"),
        (
            [{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "[1]"}}]}],
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": ["x"]}]}],
            "messages[0].content[0].content[0]",
        ),
        ([{"role": "system", "content": [{"type": "image"}]}], "messages[0].content[0]"),
    ],
)
def test_a_refusal_names_the_field(prompt, where):
    with pytest.raises(InputError) as caught:
        CLIENT.prepare(prompt)
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"system": [{"type": "text", "text": 5}]}, "system[0].text"),
        ({"tools": [{"name": "f"}]}, "tools[0]"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"tool_choice": 5}, "tool_choice"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"tool_choice": {"type": "function", "function": {}}}, "tool_choice.function.name"),
        ({"extra": {1: 2}}, "extra"),
        ({"source": TEXT.encode()}, "source"),
        ({"extra_headers": {"a": 5}}, "extra_headers"),
        ({"extra_headers": {"a": f"{TEXT}\r\nx: y"}}, "extra_headers"),
        ({"extra_headers": {"a": "中"}}, "extra_headers"),
    ],
)
def test_a_refused_option_is_named(options, where):
    with pytest.raises(InputError) as caught:
        CLIENT.prepare("hi", **options)
    assert caught.value.where == where
    assert TEXT not in str(caught.value)


def test_arguments_may_be_given_as_an_object():
    call = {"id": "c1", "function": {"name": "f", "arguments": {"a": 1}}}
    turns = [{"role": "assistant", "content": "wait", "tool_calls": [call]}, {"role": "user", "content": "q"}]
    blocks = CLIENT.prepare(turns, model=MODELS[0]).body["messages"][0]["content"]
    assert blocks == [
        {"type": "text", "text": "wait"},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
    ]


def test_a_tuple_of_results_is_cleaned_like_a_list():
    result = {"type": "tool_result", "tool_use_id": "t", "content": ({"type": "text", "text": "a\u200bb"},)}
    prepared = CLIENT.prepare([{"role": "user", "content": (result,)}], model=MODELS[0])
    assert prepared.body["messages"][0]["content"][0]["content"] == [{"type": "text", "text": "ab"}]


def test_what_is_given_is_never_changed():
    given = [{"role": "user", "content": [{"type": "text", "text": "a\u200b"}]}]
    before = json.dumps(given)
    with contextlib.suppress(InputError):
        CLIENT.prepare(given, domain="law")
    assert json.dumps(given) == before
