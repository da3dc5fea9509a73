"""The local provider in an event loop: a responder that computes for long leaves the loop free."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from zlclient import AsyncClient
from zlclient.serving import LocalServer
from zlclient.serving.responders.base import Ask, Event, Responder, Text


class Waiting(Responder):
    """Says two words, each once it is allowed to."""

    name = "waiting"

    def __init__(self, *, blocking: bool) -> None:
        self.blocking = blocking
        self.allowed = threading.Semaphore(0)
        self.threads: set[str] = set()

    def respond(self, ask: Ask) -> Iterator[Event]:
        for word in ("Two", " words."):
            assert self.allowed.acquire(timeout=5)
            self.threads.add(threading.current_thread().name)
            yield Text(word)


async def asked(responder: Waiting, *, stream: bool) -> str:
    async with AsyncClient(provider="local", clients={"local": LocalServer([responder])}) as client:
        if not stream:
            return (await client.chat("hello")).text
        async with await client.stream("hello") as answer:
            return "".join([text async for text in answer])


@pytest.mark.parametrize("stream", [False, True])
async def test_a_blocking_responder_leaves_the_loop_free(stream):
    responder = Waiting(blocking=True)

    async def allow() -> None:  # runs only if the loop is free while the responder waits
        responder.allowed.release(2)

    text, _ = await asyncio.gather(asked(responder, stream=stream), allow())
    assert text == "Two words."
    assert threading.current_thread().name not in responder.threads


@pytest.mark.parametrize("stream", [False, True])
async def test_a_quick_responder_stays_in_the_loops_thread(stream):
    responder = Waiting(blocking=False)
    responder.allowed.release(2)
    assert await asked(responder, stream=stream) == "Two words."
    assert responder.threads == {threading.current_thread().name}
