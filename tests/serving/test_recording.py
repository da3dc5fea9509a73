"""Cassettes: what is written, by whom at the same time, and what is read back."""

import json
import threading
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlclient.errors import ConfigError
from zlclient.serving.build import build_server
from zlclient.serving.recording import (
    CassetteWriter,
    ExchangeRecorder,
    Recorded,
    body_bytes,
    body_record,
    load_cassette,
    request_key,
    request_record,
)
from zlclient.serving.redaction import Redaction
from zlclient.serving.wire import WireRequest

KEY = "sk-ant-api03-AbCdEf0123456789"
HEADERS = {"x-api-key": KEY, "anthropic-version": "2023-06-01", "content-type": "application/json", "cookie": "c=d"}


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def request_of(text: str = "hello", **headers: str) -> WireRequest:
    body = json.dumps({"messages": [{"role": "user", "content": text}]}).encode()
    return WireRequest("POST", "/v1/messages", {**HEADERS, **headers}, body, {"beta": ["true"]})


def recorded(text: str = "hello") -> Recorded:
    recorder = ExchangeRecorder(request_of(text), clock=Clock())
    recorder.head(200, {"content-type": "application/json"})
    recorder.data(json.dumps({"answer": text}).encode())
    return recorder.end()


def test_an_exchange_holds_what_a_replay_needs_and_no_secret():
    clock = Clock()
    recorder = ExchangeRecorder(request_of(f"my key is {KEY}"), clock=clock, now=lambda: 0.0, recording="r")
    clock.now += 0.3
    recorder.head(401, {"Content-Type": "application/json", "set-cookie": "s", "anthropic-organization-id": "o"})
    recorder.data(b'{"error": {"message": "invalid ')
    recorder.data(KEY.encode() + b'"}}')
    exchange = recorder.end()
    assert exchange.started == "1970-01-01T00:00:00Z"
    assert exchange.request == {
        "method": "POST",
        "path": "/v1/messages",
        "query": {"beta": ["true"]},
        "headers": {"anthropic-version": "2023-06-01", "content-type": "application/json"},
        "body": {"json": {"messages": [{"role": "user", "content": "my key is REMOVED"}]}},
    }
    assert exchange.response == {
        "status": 401,
        "headers": {"content-type": "application/json"},
        "delay": 0.3,
        "body": {"json": {"error": {"message": "invalid REMOVED"}}},
    }
    assert KEY not in exchange.line().decode()


def test_a_stream_is_kept_by_event_with_its_timing_however_it_was_cut():
    clock = Clock()
    recorder = ExchangeRecorder(request_of(), clock=clock)
    clock.now += 0.5
    recorder.head(200, {"content-type": "text/event-stream; charset=utf-8"})
    whole = 'event: a\ndata: {"t":"中文"}\n\nevent: b\ndata: {}\n\n'.encode()
    for cut in (whole[:20], whole[20:22], whole[22:]):
        clock.now += 0.1
        recorder.data(cut)
    clock.now += 0.2
    recorder.data(b"data: [DO")
    response = recorder.end(broken=True).response
    assert response["delay"] == 0.5
    texts = [text for _, text in response["events"]]
    assert "".join(texts) == whole.decode() + "data: [DO"
    assert [seconds for seconds, _ in response["events"]] == pytest.approx([0.3, 0.2])
    assert response["broken"] is True


@given(st.binary(max_size=200))
def test_a_body_comes_back_as_it_was_or_as_the_same_json(body: bytes):
    record = body_record(body, Redaction())
    back = body_bytes(json.loads(json.dumps(record)))
    assert back == body or json.loads(back) == json.loads(body)


def test_a_request_is_the_same_whoever_asks_and_another_when_anything_else_differs():
    clean = Redaction()
    key = request_key(request_record(request_of(), clean))
    same = request_of(**{"x-api-key": "another", "user-agent": "other"})
    assert request_key(request_record(same, clean)) == key
    for other in (request_of("hello!"), request_of(**{"anthropic-version": "2026-10-21"})):
        assert request_key(request_record(other, clean)) != key


def test_what_is_written_is_read_back_in_order(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    writer = CassetteWriter(path)
    written = [recorded(text) for text in ("a", "b", "a")]
    for exchange in written:
        writer.append(exchange)
    assert [exchange.id for exchange in load_cassette(path)] == [exchange.id for exchange in written]
    assert path.stat().st_mode & 0o077 == 0


def _write_many(arguments: tuple[str, int]) -> None:
    path, count = arguments
    writer = CassetteWriter(path)
    threads = [threading.Thread(target=lambda: [writer.append(recorded("x" * 9000)) for _ in range(count)])]
    threads += [threading.Thread(target=lambda: [writer.append(recorded("y" * 70000)) for _ in range(count)])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_writers_in_threads_and_processes_never_collide(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(_write_many, [(str(path), 20)] * 3))
    found = load_cassette(path)
    assert len(found) == 120
    assert len({exchange.id for exchange in found}) == 120


def test_a_half_line_of_a_killed_writer_is_named_and_spoils_no_other(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    path.write_bytes(recorded("a").line() + recorded("b").line()[:50])
    CassetteWriter(path).append(recorded("c"))
    with pytest.raises(ConfigError) as caught:
        load_cassette(path)
    assert (caught.value.file, caught.value.line) == (str(path), 2)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[2])
    assert len(load_cassette(path)) == 2


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b'{"format": "other/1"}',
        b"{}",
        recorded().line().replace(b'"status": 200', b'"status": null'),
        recorded().line().replace(b'"path"', b'"way"'),
    ],
)
def test_a_line_that_is_none_is_named(tmp_path: Path, line: bytes):
    path = tmp_path / "c.jsonl"
    path.write_bytes(recorded().line() + b"\n" + line)
    with pytest.raises(ConfigError) as caught:
        load_cassette(path)
    assert caught.value.line == 3


def test_a_cassette_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"none\.jsonl"):
        load_cassette(tmp_path / "none.jsonl")


def test_a_replay_is_told_what_was_removed_by_wish(tmp_path):
    """`record --redact` and `serve --redact` with the same pattern meet; without it the request finds no recording."""
    cassette = tmp_path / "c.jsonl"
    body = b'{"model": "claude-sonnet-5-5", "max_tokens": 9, "messages": [{"role": "user", "content": "order 4711"}]}'
    headers = {"x-api-key": "k", "anthropic-version": "2026-10-21", "content-type": "application/json"}
    request = WireRequest("POST", "/v1/messages", headers, body)
    recorder = ExchangeRecorder(request, Redaction(patterns=[r"order \d+"]))
    recorder.head(200, {"content-type": "application/json"})
    recorder.data(b'{"type": "message", "content": [{"type": "text", "text": "recorded"}]}')
    CassetteWriter(cassette).append(recorder.end())
    told = build_server(replay=cassette, redact=[r"order \d+"]).handle(request)
    assert b"recorded" in b"".join(piece for piece in told.pieces() if isinstance(piece, bytes))
