"""Streams cut anywhere give the same answer; counts are cumulative; nothing is invented."""

import json

import pytest
from faulty import anthropic_events, openai_events, sse
from hypothesis import given
from hypothesis import strategies as st

from zlclient.errors import BadAnswer, Overloaded
from zlclient.providers.anthropic_wire import AnthropicDecoder
from zlclient.providers.failure import Failure
from zlclient.providers.openai_wire import OpenAIDecoder
from zlclient.providers.sse import SseParser
from zlclient.reply import Finish, TextDelta

texts = st.lists(st.text(min_size=1, max_size=20).filter(lambda t: t.isprintable()), min_size=1, max_size=8)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in zip(edges, edges[1:], strict=False)]


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
