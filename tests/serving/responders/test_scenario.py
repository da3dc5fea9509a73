"""The scenario responder: which scenario answers, which reply, which fault, and what it says when none does."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlclient.serving import Drop, LocalServer, WireRequest
from zlclient.serving.responders.base import Ask, Fault, Finish, Pace, Pause, Text, Thinking, Tool, ToolCall, Turn
from zlclient.serving.responders.scenario import ScenarioResponder
from zlclient.serving.responders.scenario_file import read_scenarios
from zlclient.serving.responders.scenario_match import body_differences
from zlclient.serving.responders.scenario_reply import ScriptedFault

WEATHER = Tool("get_weather", {"type": "object"})


def ask_of(*texts: str, **fields: Any) -> Ask:
    """An Ask whose turns alternate, the user first."""
    turns = tuple(
        Turn("assistant" if index % 2 else "user", ({"type": "text", "text": text},))
        for index, text in enumerate(texts)
    )
    body = {"messages": [{"role": turn.role, "content": turn.text} for turn in turns]}
    return replace(Ask("anthropic", "claude-sonnet-4-6", turns, body=body), **fields)


def with_result(question: str, *, steps: int = 1) -> Ask:
    """An agent's request after `steps` calls of a tool, each with its result."""
    turns = [Turn("user", ({"type": "text", "text": question},))]
    for step in range(steps):
        call = {"type": "tool_use", "id": f"t{step}", "name": "get_weather", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"t{step}", "content": "21 °C"}
        turns += [Turn("assistant", (call,)), Turn("user", (result,))]
    return Ask("anthropic", "claude-sonnet-4-6", tuple(turns), tools=(WEATHER,))


def responder(*scenarios: Any) -> ScenarioResponder:
    return ScenarioResponder(read_scenarios(list(scenarios)))


def text_of(found: Any) -> str | None:
    return None if found is None else "".join(event.text for event in found if isinstance(event, Text))


@pytest.mark.parametrize(
    ("when", "matching", "other"),
    [
        ({"text": "llo wor"}, ask_of("hello world"), ask_of("hello")),
        ({"text": {"exact": "hello"}}, ask_of("hello"), ask_of("hello world")),
        ({"text": {"regex": r"^h\w+$"}}, ask_of("hello"), ask_of("hello world")),
        ({"system": "terse"}, ask_of("a", system="Be terse."), ask_of("a")),
        ({"model": "claude-sonnet-4-6"}, ask_of("a"), ask_of("a", model="claude-sonnet-4")),
        ({"model": {"regex": "^claude-"}}, ask_of("a"), ask_of("a", model="gpt-4o")),
        ({"role": "user"}, ask_of("a"), with_result("a")),
        ({"role": "tool"}, with_result("a"), ask_of("a")),
        ({"role": "assistant"}, ask_of("a", "b"), ask_of("a")),
        ({"wire": "chat"}, ask_of("a", wire="chat"), ask_of("a")),
        ({"tools": ["get_weather"]}, ask_of("a", tools=(WEATHER,)), ask_of("a")),
        ({"tools": []}, ask_of("a"), ask_of("a", tools=(WEATHER,))),
        ({"turn": 1}, ask_of("a", "b", "c"), ask_of("a")),
        ({"tool_result": "21"}, with_result("a"), ask_of("21")),
        ({"headers": {"X-Team": "blue"}}, ask_of("a", headers={"x-team": "blue"}), ask_of("a")),
        ({"headers": {"x-team": None}}, ask_of("a"), ask_of("a", headers={"x-team": "blue"})),
        ({"request": {"top_k": 1}}, ask_of("a", body={"top_k": 1, "model": "m"}), ask_of("a", body={"top_k": 2})),
        ({"request": {"stream": True}}, ask_of("a", body={"stream": True}), ask_of("a", body={"stream": 1})),
        ({"where": lambda ask: len(ask.turns) == 1}, ask_of("a"), ask_of("a", "b")),
    ],
)
def test_each_condition_takes_what_it_means_and_nothing_else(when: dict, matching: Ask, other: Ask):
    found = responder({"when": when, "reply": "yes"})
    assert text_of(found.respond(matching)) == "yes"
    assert found.respond(other) is None
    assert "wanted" in found.explain(other)


def test_the_first_scenario_that_matches_answers():
    found = responder(
        {"when": {"text": "hello", "turn": 1}, "reply": "again"},
        {"when": {"text": "hello"}, "reply": "first"},
        {"reply": "whatever"},
    )
    assert text_of(found.respond(ask_of("hello"))) == "first"
    assert text_of(found.respond(ask_of("hello", "hi", "hello"))) == "again"
    assert text_of(found.respond(ask_of("bye"))) == "whatever"


def test_a_reply_holds_everything_an_answer_can_hold():
    (reply,) = read_scenarios(
        [
            {
                "reply": {
                    "text": "see",
                    "thinking": "hm",
                    "tool_calls": {"name": "look", "input": {"at": 1}},
                    "usage": {"input_tokens": 3, "output_tokens": 4},
                    "stop_reason": "max_tokens",
                    "ttft": 0.5,
                    "pace": 0.1,
                }
            }
        ]
    )
    events = list(ScenarioResponder([reply]).respond(ask_of("a")) or ())
    assert events[:5] == [Pause(0.5), Pace(0.1), Thinking("hm"), Text("see"), ToolCall("look", {"at": 1})]
    assert isinstance(events[5], Finish)
    assert (events[5].stop_reason, events[5].usage.input_tokens, events[5].usage.output_tokens) == ("max_tokens", 3, 4)


def test_json_is_written_as_the_text():
    found = text_of(responder({"reply": {"json": {"name": "Zoë", "ages": [1, None]}}}).respond(ask_of("a")))
    assert found == '{"name": "Zoë", "ages": [1, null]}'


def test_a_function_makes_the_reply_from_the_request():
    found = responder({"reply": lambda ask: {"text": ask.question.upper(), "stop_reason": "max_tokens"}})
    assert text_of(found.respond(ask_of("hello"))) == "HELLO"


def test_replies_are_given_once_each_and_never_start_over():
    found = responder({"name": "three", "replies": ["a", "b", "c"]}, {"when": {"text": "x"}, "reply": "after"})
    assert [text_of(found.respond(ask_of("x"))) for _ in range(5)] == ["a", "b", "c", "after", "after"]
    assert found.respond(ask_of("y")) is None
    assert "'three' matches, but its 3 replies were all given" in found.explain(ask_of("y"))


def test_turns_belong_to_a_conversation_so_that_many_walk_through_them():
    found = responder({"when": {"text": "weather"}, "turns": [{"tool_calls": {"name": "get_weather"}}, "It is 21 °C."]})
    for question in ("weather in Paris", "weather in Rome"):
        first = list(found.respond(with_result(question, steps=0)) or ())
        assert first == [ToolCall("get_weather", {})]
        assert text_of(found.respond(with_result(question))) == "It is 21 °C."
        assert found.respond(with_result(question, steps=2)) is None
    assert "turn 2 and it has replies for turns 0 to 1" in found.explain(with_result("weather", steps=2))


def test_a_tool_call_is_not_given_again_after_its_result_unless_that_is_said():
    call = {"tool_calls": {"name": "get_weather"}}
    found = responder({"when": {"text": "weather"}, "reply": call})
    assert found.respond(ask_of("weather")) is not None
    assert found.respond(with_result("weather")) is None
    assert "for ever" in found.explain(with_result("weather"))
    assert responder({"when": {"role": "tool"}, "reply": call}).respond(with_result("weather")) is not None
    assert responder({"when": {}, "times": 9, "reply": call}).respond(with_result("weather")) is not None


def test_times_bounds_the_answers():
    found = responder({"reply": "a", "times": 2})
    assert [text_of(found.respond(ask_of("x"))) for _ in range(3)] == ["a", "a", None]
    assert "as often as its `times` allows" in found.explain(ask_of("x"))


def test_a_fault_of_limited_times_is_counted_by_the_whole_request():
    found = responder({"replies": [{"text": "a", "fault": {"status": 529, "times": 1}}, "b"]})
    one, two = ask_of("one"), ask_of("two")
    assert list(found.respond(one) or ()) == [Fault("status", 529)]
    assert text_of(found.respond(one)) == "a"
    assert text_of(found.respond(two)) == "b"
    always = responder({"reply": {"text": "a", "fault": {"status": 429, "retry_after": 7, "times": 1}}})
    for ask in (one, two):
        assert list(always.respond(ask) or ()) == [Fault("status", 429, retry_after="7")]
        assert text_of(always.respond(ask)) == "a"


def test_a_fault_of_limited_times_does_not_use_up_the_answers():
    found = responder({"reply": {"text": "a", "fault": {"status": 529, "times": 2}}, "times": 1})
    got = [found.respond(ask_of("x")) for _ in range(4)]
    assert [list(events) for events in got[:2] if events] == [[Fault("status", 529)]] * 2
    assert text_of(got[2]) == "a"
    assert got[3] is None


def test_faults_without_content_are_replies_of_their_own():
    found = responder({"replies": [{"fault": 500}, {"fault": "drop"}, "ok"]})
    got = [list(found.respond(ask_of("x")) or ()) for _ in range(3)]
    assert got == [[Fault("status", 500)], [Fault("drop")], [Text("ok")]]


@pytest.mark.parametrize(("after", "before"), [("half", "one two "), (3, "one two three"), (1, "one")])
def test_a_fault_in_mid_answer_comes_after_part_of_the_text(after: Any, before: str):
    found = responder({"reply": {"text": "one two three four", "fault": {"kind": "drop", "after": after}}})
    events = list(found.respond(ask_of("x")) or ())
    assert text_of(events) in (before, before + "t")
    assert events[-1] == Fault("drop")


@given(st.integers(0, 50), st.text(max_size=8))
def test_a_rate_is_decided_by_the_request_alone(seed: int, key: str):
    fault = ScriptedFault(Fault(), rate=0.5, seed=seed)
    assert fault.hits(key, 0) == fault.hits(key, 5)


def test_a_rate_hits_its_share_of_requests():
    fault = ScriptedFault(Fault(), rate=0.25)
    hits = sum(fault.hits(str(index), 0) for index in range(2000))
    assert 420 < hits < 580


def test_the_nearest_scenario_is_named_with_what_differs():
    found = responder(
        {"name": "greeting", "when": {"text": "hello"}, "reply": "Hello!"},
        {"name": "weather", "when": {"text": "weather in Paris", "tools": ["get_weather"]}, "reply": "21"},
    )
    message = found.explain(ask_of("What is the wether in Paris?", tools=(WEATHER,)))
    assert "None of 2 scenarios matches. The nearest is 'weather'; it differs in:" in message
    assert "contains 'weather in Paris'" in message
    assert "'What is the wether in Paris?'" in message
    assert "tools  " not in message


def test_the_place_where_long_texts_part_is_shown():
    text = "word " * 200
    found = responder({"when": {"text": {"exact": text + "end"}}, "reply": "a"})
    message = found.explain(ask_of(text + "END"))
    assert "end'" in message
    assert "END'" in message
    assert max(len(line) for line in message.splitlines()) < 160


def test_unused_scenarios_are_known():
    found = responder({"name": "a", "when": {"text": "x"}, "reply": "a"}, {"name": "b", "replies": ["1", "2"]})
    found.respond(ask_of("x"))
    found.respond(ask_of("y"))
    assert [scenario.name for scenario in found.unused()] == ["b"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(json_values, json_values)
def test_a_body_differs_from_another_and_never_from_itself(one: Any, other: Any):
    assert list(body_differences(one, one, "request")) == []
    if json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True):
        both = [*body_differences(one, other, "request"), *body_differences(other, one, "request")]
        assert both


@given(st.text(max_size=30), st.text(max_size=30), st.sampled_from(["exact", "contains", "regex"]))
def test_explaining_never_fails(wanted: str, got: str, how: str):
    pattern = wanted if how != "regex" else "".join(f"\\x{ord(c):02x}" for c in wanted if ord(c) < 256)
    found = responder({"when": {"text": {how: pattern}}, "reply": "a"})
    ask = ask_of(got)
    if found.respond(ask) is None:
        assert "it differs in" in found.explain(ask)


def post(server: LocalServer, text: str, **body: Any):
    body = {"model": "claude-sonnet-4-6", "max_tokens": 50, "messages": [{"role": "user", "content": text}], **body}
    headers = {"anthropic-version": "2023-06-01"}
    return server.handle(WireRequest("POST", "/v1/messages", headers, json.dumps(body).encode()))


def test_over_the_wire_an_unmatched_request_is_an_error_that_is_not_retried():
    server = LocalServer([responder({"when": {"text": "hello"}, "reply": "Hi"})])
    assert b'"Hi"' in post(server, "hello").body  # type: ignore[operator]
    response = post(server, "goodbye")
    assert response.status == 404
    assert response.headers["x-should-retry"] == "false"
    assert "The only scenario is 'scenario 1'" in json.loads(response.body)["error"]["message"]  # type: ignore[arg-type]


def test_over_the_wire_a_stream_breaks_where_the_scenario_says():
    fault = {"kind": "drop", "after": 2}
    server = LocalServer([responder({"reply": {"text": "one two three", "pace": 0.01, "fault": fault}})])
    pieces = list(post(server, "x", stream=True).pieces())
    assert pieces[-1] == Drop()
    sent = b"".join(piece for piece in pieces if isinstance(piece, bytes))
    assert b"two" in sent
    assert b"three" not in sent
