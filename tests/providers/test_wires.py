"""Streams cut anywhere give the same answer; counts are cumulative; nothing is invented."""

import itertools
import json

import pytest
from faulty import anthropic_events, openai_events, sse
from hypothesis import given
from hypothesis import strategies as st

from zlclient import Client
from zlclient.errors import BadAnswer, BadRequest, Overloaded, RateLimited, ServerError, Unauthorized
from zlclient.providers.anthropic_stream import AnthropicDecoder
from zlclient.providers.failure import Failure
from zlclient.providers.openai_stream import OpenAIDecoder
from zlclient.providers.sse import SseParser
from zlclient.reply import Finish, TextDelta

texts = st.lists(st.text(min_size=1, max_size=20).filter(lambda t: t.isprintable()), min_size=1, max_size=8)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@given(texts, st.lists(st.integers(0, 10_000), max_size=12), st.sampled_from(["\n", "\r\n", "\r"]))
def test_any_cut_gives_the_same_text(parts, cuts, newline):
    for events, decoder in ((anthropic_events(parts), AnthropicDecoder()), (openai_events(parts), OpenAIDecoder())):
        data = b"".join(map(sse, events)).replace(b"\n", newline.encode())
        if newline == "\r":
            data += b":"  # a lone CR at the very end waits for what may be its LF
        found = [event for piece in pieces(data, cuts) for event in decoder.feed(piece)]
        assert decoder.complete
        assert decoder.text == "".join(parts) == "".join(e.text for e in found if isinstance(e, TextDelta))
        assert isinstance(found[-1], Finish)
        assert (decoder.usage.input, decoder.usage.output) == (12, 6)


@given(st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"").replace(b"\r", b"")), max_size=6))
def test_sse_data_lines(lines):
    parser = SseParser()
    wire = b"".join(b"data: " + line + b"\nid: 7\n: comment\n\n" for line in lines)
    assert parser.feed(wire) == lines


def test_multi_line_data_and_no_space():
    assert SseParser().feed(b"data:a\ndata: b\n\n") == [b"a\nb"]


def feed(decoder, *events):
    return [found for event in events for found in decoder.feed(sse(event))]


def test_usage_is_cumulative_and_keeps_what_is_not_repeated():
    decoder = AnthropicDecoder()
    usage = {"cache_read_input_tokens": 5, "cache_creation_input_tokens": 7}
    feed(decoder, *anthropic_events(usage=usage))
    assert (decoder.usage.input, decoder.usage.output) == (12, 6)
    assert (decoder.usage.cache_read, decoder.usage.cache_write) == (5, 7)
    assert decoder.usage.total_input == 24


def test_openai_cached_tokens_are_not_counted_twice():
    decoder = OpenAIDecoder()
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 4},
    }
    *rest, _, done = list(openai_events())
    feed(decoder, *rest, {"choices": [], "usage": usage}, done)
    assert (decoder.usage.input, decoder.usage.cache_read, decoder.usage.reasoning) == (40, 60, 4)


def test_openai_without_done_is_whole_once_it_gave_its_reason():
    decoder = OpenAIDecoder()
    feed(decoder, *list(openai_events())[:-1])
    assert not decoder.complete
    decoder.end()
    assert decoder.complete


def test_openai_tool_calls_in_pieces():
    decoder = OpenAIDecoder()
    for part in ({"id": "c1", "function": {"name": "get", "arguments": '{"a"'}}, {"function": {"arguments": ": [1]}"}}):
        feed(decoder, {"id": "x", "choices": [{"delta": {"tool_calls": [{"index": 0, **part}]}}]})
    assert decoder.content() == ({"type": "tool_use", "id": "c1", "name": "get", "input": {"a": [1]}},)


def test_thinking_and_citations_survive():
    decoder = AnthropicDecoder()
    start = {"type": "content_block_start", "index": 0}
    delta = {"type": "content_block_delta", "index": 0}
    feed(
        decoder,
        {**start, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
        {**delta, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {**delta, "delta": {"type": "signature_delta", "signature": "s"}},
    )
    assert decoder.content() == ({"type": "thinking", "thinking": "hm", "signature": "s"},)


def test_control_characters_inside_model_json_are_taken():
    decoder = AnthropicDecoder()
    raw = b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\tb"}}\n\n'
    assert decoder.feed(raw) == [TextDelta("a\tb")]


def test_error_events():
    with pytest.raises(Failure) as caught:
        feed(AnthropicDecoder(), {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
    assert caught.value.kind is Overloaded
    with pytest.raises(Failure):
        feed(OpenAIDecoder(), {"error": {"message": "boom", "type": "server_error"}})
    with pytest.raises(Failure) as caught:
        AnthropicDecoder().feed(b"data: nope\n\n")
    assert caught.value.kind is BadAnswer


def test_whole_answers():
    message = {"role": "assistant", "content": "hi", "tool_calls": None}
    decoder = OpenAIDecoder()
    decoder.feed_whole({"id": "1", "model": "m", "choices": [{"message": message, "finish_reason": "stop"}]})
    assert (decoder.text, decoder.complete, decoder.stop_reason) == ("hi", True, "end_turn")
    assert json.dumps(decoder.content())


CHARACTERS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=30)


def utf16_pieces(text, cuts):
    """`text` cut between UTF-16 units, as servers in languages with such strings cut it."""
    units = text.encode("utf-16-le")
    edges = sorted({0, len(units), *(cut % (len(units) // 2) * 2 for cut in cuts)})
    return [units[a:b].decode("utf-16-le", "surrogatepass") for a, b in itertools.pairwise(edges)]


@given(CHARACTERS, st.lists(st.integers(0, 60), max_size=8))
def test_a_character_cut_in_two_is_whole_again(text, cuts):
    parts = utf16_pieces(text, cuts)
    for events, decoder in ((anthropic_events(parts), AnthropicDecoder()), (openai_events(parts), OpenAIDecoder())):
        found = feed(decoder, *events)
        assert "".join(e.text for e in found if isinstance(e, TextDelta)) == decoder.text == text
        assert [block["text"] for block in decoder.content()] == [text]


@pytest.mark.parametrize("parts", [["a\ud83d"], ["a", "\ud83d"], ["a\ud83d", ""]])
def test_a_half_alone_becomes_a_replacement_character(parts):
    for events, decoder in ((anthropic_events(parts), AnthropicDecoder()), (openai_events(parts), OpenAIDecoder())):
        found = feed(decoder, *events)
        assert "".join(e.text for e in found if isinstance(e, TextDelta)) == decoder.text == "a\ufffd"
        assert [block["text"] for block in decoder.content()] == ["a\ufffd"]
        assert isinstance(found[-1], Finish)
    lone = OpenAIDecoder()
    feed(lone, *openai_events(["\ude00a"]))
    assert lone.text == "\ufffda"


def test_halves_in_reasoning_and_arguments():
    decoder = OpenAIDecoder()
    for delta in (
        {"reasoning_content": "\ud83d"},
        {"reasoning_content": "\ude00", "content": "a"},
        {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"a": "\ud83d'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '\ude00\\ud83d"}'}}]},
    ):
        feed(decoder, {"id": "x", "choices": [{"delta": delta}]})
    thinking, text, call = decoder.content()
    assert thinking == {"type": "thinking", "thinking": "\U0001f600"}
    assert text["text"] == "a"
    assert call["input"] == {"a": "\U0001f600\ufffd"}
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}
    delta = {"type": "content_block_delta", "index": 0}
    decoder = AnthropicDecoder()
    feed(decoder, start, *({**delta, "delta": {"type": "thinking_delta", "thinking": t}} for t in ("\ud83d", "\ude00")))
    assert decoder.content() == ({"type": "thinking", "thinking": "\U0001f600"},)
    whole = OpenAIDecoder()
    whole.feed_whole({"id": "1", "model": "m", "choices": [{"message": {"content": "\ud83d!"}}]})
    assert whole.text == "\ufffd!"


def test_reasoning_alone_is_an_answer():
    decoder = OpenAIDecoder()
    feed(decoder, {"id": "x", "choices": [{"delta": {"reasoning_content": "hm"}, "finish_reason": "length"}]}, None)
    assert decoder.content() == ({"type": "thinking", "thinking": "hm"},)
    assert (decoder.text, decoder.stop_reason) == ("", "max_tokens")


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"type": "requests", "code": "rate_limit_exceeded"}, RateLimited, 429),
        ({"type": "insufficient_quota", "code": "insufficient_quota"}, RateLimited, 429),
        ({"type": "invalid_request_error", "code": None, "param": "temperature"}, BadRequest, 400),
        ({"type": "invalid_request_error", "code": "invalid_api_key"}, Unauthorized, 401),
        ({"type": "server_error"}, ServerError, 500),
        ({"type": "engine_overloaded"}, Overloaded, 529),
        ({"object": "error", "type": "BadRequestError", "code": 400}, BadRequest, 400),
        ({"code": "429"}, RateLimited, 429),
        ({"type": "something new"}, ServerError, 500),
        ("plain text", ServerError, 500),
    ],
)
def test_an_openai_error_event_stands_for_its_status(error, kind, status):
    with pytest.raises(Failure) as caught:
        feed(OpenAIDecoder(), {"error": error})
    assert (caught.value.kind, caught.value.status) == (kind, status)
    if isinstance(error, dict):
        assert caught.value.param == error.get("param")


def test_an_error_event_before_content_is_retried(faulty, clock):
    limited = {"error": {"type": "requests", "code": "rate_limit_exceeded", "message": "slow down"}}
    faulty.script({"events": [limited]})
    with Client(clock=clock) as client:
        reply = client.chat("hi", model="openai:gpt-6.1-sol")
    assert (reply.text, [attempt.status for attempt in reply.attempts]) == ("Hello from loopback.", [429, 200])
    wrong = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
    faulty.script({"events": [wrong]})
    with Client(clock=clock) as client, pytest.raises(BadRequest):
        client.chat("hi")
    assert len(faulty.requests) == 1


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_byte_order_mark_is_no_part_of_the_first_event(size):
    for events, decoder in ((anthropic_events(), AnthropicDecoder()), (openai_events(), OpenAIDecoder())):
        data = b"\xef\xbb\xbf" + b"".join(map(sse, events))
        for start in range(0, len(data), size):
            decoder.feed(data[start : start + size])
        assert (decoder.text, decoder.usage.input, decoder.complete) == ("Hello from loopback.", 12, True)


def test_content_in_parts():
    decoder = OpenAIDecoder()
    parts = [{"type": "text", "text": "a"}, {"type": "reference", "ids": [1]}, {"type": "text", "text": "b"}]
    feed(decoder, {"id": "x", "choices": [{"delta": {"content": parts}}]})
    assert decoder.text == "ab"


@pytest.mark.parametrize("content", [5, {"text": "a"}, [5], ["a"], [{"type": "text", "text": 5}]])
def test_content_of_another_kind_is_no_answer(content):
    with pytest.raises(Failure) as caught:
        feed(OpenAIDecoder(), {"id": "x", "choices": [{"delta": {"content": content}}]})
    assert caught.value.kind is BadAnswer


@pytest.mark.parametrize(
    ("decoder", "event"),
    [
        (
            AnthropicDecoder,
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": 5}},
        ),
        (AnthropicDecoder, {"type": "content_block_start", "index": 0, "content_block": "text"}),
        (AnthropicDecoder, {"type": "message_delta", "delta": {}, "usage": {"output_tokens": "many"}}),
        (AnthropicDecoder, []),
        (OpenAIDecoder, {"choices": ["text"]}),
        (OpenAIDecoder, {"choices": [{"delta": {"tool_calls": ["f"]}}]}),
        (OpenAIDecoder, {"usage": {"prompt_tokens": "many"}}),
        (OpenAIDecoder, None),
    ],
)
def test_an_event_the_sdk_parsed_is_checked_too(decoder, event):
    with pytest.raises(Failure) as caught:
        decoder().feed_event(event)
    assert caught.value.kind is BadAnswer


@pytest.mark.parametrize(
    ("decoder", "body"),
    [
        (AnthropicDecoder, {"type": "message", "content": ["text"]}),
        (AnthropicDecoder, {"type": "message", "content": [{"text": "a"}]}),
        (OpenAIDecoder, {"choices": ["text"]}),
        (OpenAIDecoder, {"choices": [{"message": "text"}]}),
    ],
)
def test_a_whole_body_of_another_shape_is_no_answer(decoder, body):
    with pytest.raises(Failure) as caught:
        decoder().feed_whole(body)
    assert caught.value.kind is BadAnswer


def test_nesting_beyond_bounds_is_no_answer():
    deep = "[" * 100_000
    for decoder in (AnthropicDecoder(), OpenAIDecoder()):
        with pytest.raises(Failure) as caught:
            decoder.feed(f"data: {deep}\n\n".encode())
        assert caught.value.kind is BadAnswer


def test_the_last_block_is_closed_with_its_message():
    decoder = AnthropicDecoder()
    start = {"type": "content_block_start", "index": 0}
    feed(
        decoder,
        {**start, "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"a": 1}'}},
        {"type": "message_stop"},
    )
    assert decoder.content()[0]["input"] == {"a": 1}
