import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import anthropic
import httpx2
import pytest

from zlclient.errors import ConfigError
from zlclient.serving import LocalServer, WireRequest, WireResponse, async_transport, transport
from zlclient.serving.app import App, Listener, listening_socket
from zlclient.serving.responders.base import Ask, Event, Pause, Responder, Text

BODY: Any = {"model": "claude-sonnet-5", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]}
HEADERS = {"anthropic-version": "2026-10-21", "x-api-key": "k"}


class Slow(Responder):
    """Pauses between its words; notes when it was given up."""

    name = "slow"

    def __init__(self, *, blocking: bool = False) -> None:
        self.blocking = blocking
        self.threads: set[int] = set()
        self.ended = threading.Event()

    def respond(self, ask: Ask) -> Iterator[Event]:
        try:
            for _ in range(50):
                self.threads.add(threading.get_ident())
                yield Text("word ")
                yield Pause(0.05)
        finally:
            self.ended.set()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Listener(LocalServer(require_key=True)) as listener:
        yield listener.url


def test_many_requests_share_a_connection(url: str):
    with httpx2.Client() as client:
        assert {client.post(f"{url}/v1/messages", json=BODY, headers=HEADERS).status_code for _ in range(20)} == {200}
    with httpx2.Client() as client:
        response = client.post(f"{url}/v1/messages", json=BODY, headers=HEADERS)
        assert response.headers["x-zl-responder"] == "offline"
        assert int(response.headers["content-length"]) == len(response.content)


def test_a_chunked_and_a_large_body(url: str):
    big = {**BODY, "messages": [{"role": "user", "content": "word " * 200_000}]}
    raw = json.dumps(big).encode()
    chunks = (raw[at : at + 60_000] for at in range(0, len(raw), 60_000))
    assert httpx2.post(f"{url}/v1/messages", content=chunks, headers=HEADERS).status_code == 200


def test_a_key_is_required_on_a_port(url: str):
    response = httpx2.post(f"{url}/v1/messages", json=BODY, headers={"anthropic-version": "2026-10-21"})
    assert (response.status_code, response.json()["error"]["type"]) == (401, "authentication_error")
    response = httpx2.get(f"{url}/v1/models")
    assert (response.status_code, response.json()["error"]["code"]) == (401, "invalid_api_key")
    assert httpx2.get(f"{url}/health", headers={"x-api-key": "k"}).json() == {"status": "ok"}


def test_garbage_on_the_wire_is_survived(url: str):
    host, port = url.removeprefix("http://").split(":")
    for junk in (
        b"\x16\x03\x01\x02\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\ncontent-length: 99\r\n\r\nx",
    ):
        with socket.create_connection((host, int(port)), timeout=5) as raw:
            raw.sendall(junk)
    assert httpx2.get(f"{url}/v1/nowhere", headers=HEADERS).status_code == 404
    assert httpx2.post(f"{url}/v1/messages", content=b"\xff\xfe{", headers=HEADERS).status_code == 400


@pytest.mark.parametrize("blocking", [False, True])
def test_a_client_that_goes_ends_its_stream(blocking: bool):
    slow = Slow(blocking=blocking)
    with Listener(LocalServer([slow])) as listener:
        with httpx2.stream(
            "POST", f"{listener.url}/v1/messages", json=BODY | {"stream": True}, headers=HEADERS
        ) as answer:
            next(answer.iter_bytes())
        assert slow.ended.wait(3)


def test_a_blocking_responder_leaves_the_event_loop_free():
    slow = Slow(blocking=True)
    with Listener(LocalServer([slow])) as listener, httpx2.Client() as client:
        with client.stream(
            "POST", f"{listener.url}/v1/messages", json=BODY | {"stream": True}, headers=HEADERS
        ) as answer:
            next(answer.iter_bytes())
            assert httpx2.get(f"{listener.url}/health").status_code == 200
        assert threading.get_ident() not in slow.threads


async def test_two_hundred_streams_at_once():
    server = LocalServer([Slow()])
    with Listener(server) as listener:
        limits = httpx2.Limits(max_connections=None)
        async with httpx2.AsyncClient(limits=limits, timeout=30) as client:

            async def one() -> bytes:
                body = BODY | {"stream": True, "max_tokens": 10}
                async with client.stream("POST", f"{listener.url}/v1/messages", json=body, headers=HEADERS) as answer:
                    return b"".join([part async for part in answer.aiter_bytes()])

            answers = await asyncio.gather(*(one() for _ in range(200)))
    assert all(answer.endswith(b'event: message_stop\ndata: {"type":"message_stop"}\n\n') for answer in answers)


def test_closing_a_listener_ends_open_streams():
    listener = Listener(LocalServer([Slow()]))
    listener.__enter__()
    with httpx2.stream("POST", f"{listener.url}/v1/messages", json=BODY | {"stream": True}, headers=HEADERS) as answer:
        next(answer.iter_bytes())
        begun = time.monotonic()
        listener.close()
        assert time.monotonic() - begun < 6
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(listener.url)


def test_an_address_that_cannot_be_had_is_a_config_error():
    with listening_socket("127.0.0.1", 0) as taken:
        for port in (taken.getsockname()[1], 70_000):
            with pytest.raises(ConfigError, match="port"):
                listening_socket("127.0.0.1", port)


class Canned:
    """A handler of one response."""

    def __init__(self, body: bytes | Iterable[Any]) -> None:
        self.body = body

    def handle(self, request: WireRequest) -> WireResponse:
        body = self.body if isinstance(self.body, bytes) else iter(self.body)
        return WireResponse(200, {"content-type": "text/plain"}, body)


async def test_the_app_without_our_listener():
    """Any ASGI server can run it: here, the SDKs' own ASGI transport."""
    over = httpx2.ASGITransport(app=App(LocalServer()))  # type: ignore[arg-type]
    async with httpx2.AsyncClient(transport=over, base_url="http://local") as client:
        assert (await client.post("/v1/messages", json=BODY, headers=HEADERS)).status_code == 200
        streamed = await client.post("/v1/messages", json=BODY | {"stream": True}, headers=HEADERS)
        assert streamed.text.endswith('"message_stop"}\n\n')
        with pytest.raises(ConnectionAbortedError):
            await client.post("/v1/messages", json=BODY, headers=HEADERS | {"x-zl-fault": "drop"})


def test_pauses_are_slept_and_end_at_the_read_timeout():
    slept: list[float] = []
    pieces = [Pause(0.5), b"a", Pause(2.0), b"b"]
    client = httpx2.Client(transport=transport(Canned(pieces), sleep=slept.append), timeout=5)
    assert client.get("http://local/").content == b"ab"
    assert slept == [0.5, 2.0]
    client = httpx2.Client(transport=transport(Canned(pieces), sleep=slept.append), timeout=1)
    with pytest.raises(httpx2.ReadTimeout):
        client.get("http://local/")
    assert slept[-1] == 1.0


async def test_async_pauses_are_slept_and_end_at_the_read_timeout():
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    pieces = [b"a", Pause(2.0), b"b"]
    async with httpx2.AsyncClient(transport=async_transport(Canned(pieces), sleep=sleep), timeout=5) as client:
        assert (await client.get("http://local/")).content == b"ab"
    async with httpx2.AsyncClient(transport=async_transport(Canned(pieces), sleep=sleep), timeout=1) as client:
        with pytest.raises(httpx2.ReadTimeout):
            await client.get("http://local/")
    assert slept == [2.0, 1.0]


async def test_a_blocking_responder_in_process_runs_in_a_worker_thread():
    slow = Slow(blocking=True)
    client = httpx2.AsyncClient(transport=async_transport(LocalServer([slow])))
    async with client.stream(
        "POST", "http://local/v1/messages", json=BODY | {"stream": True}, headers=HEADERS
    ) as answer:
        async for _ in answer.aiter_bytes():
            break
    assert threading.get_ident() not in slow.threads


def test_one_transport_serves_three_event_loops():
    client = anthropic.AsyncAnthropic(
        api_key="k", http_client=httpx2.AsyncClient(transport=async_transport(LocalServer()))
    )
    for _ in range(3):
        assert asyncio.run(client.messages.create(**BODY)).content


SERVE = "import argparse, sys; from zlclient.cli import serve; p = argparse.ArgumentParser(); "
SERVE += "serve.add_parser(p.add_subparsers()); a = p.parse_args(['serve', *sys.argv[1:]]); sys.exit(a.run(a))"


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_the_command_says_where_it_listens_and_stops_on_a_signal(name: str):
    command = [sys.executable, "-c", SERVE, "--port", "0", "--model", "mine"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[2]
        answer = httpx2.post(f"{url}/v1/messages", json=BODY | {"model": "mine"}, headers=HEADERS)
        assert answer.status_code == 200
        process.send_signal(getattr(signal, name))
        assert process.wait(10) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.communicate()


def test_the_command_refuses_a_port_that_is_taken():
    with listening_socket("127.0.0.1", 0) as taken:
        command = [sys.executable, "-c", SERVE, "--port", str(taken.getsockname()[1])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, "ConfigError: port" in done.stderr, "cannot listen there" in done.stderr) == (
        1,
        True,
        True,
    )


def test_the_core_imports_no_sdk_and_no_http_library():
    code = (
        "import json, sys; from zlclient.serving import LocalServer, WireRequest; "
        f"r = LocalServer.default().handle(WireRequest('POST', '/v1/messages', {HEADERS!r}, json.dumps({BODY!r}).encode())); "
        "assert r.status == 200; "
        "heavy = {'anthropic', 'openai', 'httpx2', 'starlette', 'uvicorn', 'pydantic', 'numpy', 'yaml', 'asyncio'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "[]"
