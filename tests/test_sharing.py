"""One client, many users: threads, a fork, tasks that are cancelled, a reader that is slow."""

import asyncio
import multiprocessing
import os
import threading
import time

import pytest

import zlclient
from zlclient import AsyncClient, Client


def test_threads_share_a_client(faulty):
    answers = []
    with Client() as client:

        def work():
            answers.extend(client.chat("hi").text for _ in range(20))

        threads = [threading.Thread(target=work) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == ["Hello from loopback."] * 240


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_process_opens_connections_of_its_own(faulty):
    with Client() as client:
        client.chat("hi")
        before = faulty.connections
        context = multiprocessing.get_context("fork")
        pipe, other = context.Pipe()
        child = context.Process(target=lambda: other.send(client.chat("hi").text))
        child.start()
        assert pipe.poll(10)
        assert pipe.recv() == "Hello from loopback."
        child.join(5)
        assert faulty.connections == before + 1
        assert client.chat("hi").text == "Hello from loopback."
        assert faulty.connections == before + 1


async def test_a_cancelled_call_frees_its_connection(faulty):
    faulty.script({"stall_after": 4}, {"delay": 60})
    client = AsyncClient(providers={"anthropic": {"max_connections": 1}}, timeout=5)
    for _ in range(2):
        task = asyncio.create_task(client.chat("hi"))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (await asyncio.wait_for(client.chat("hi"), 3)).text == "Hello from loopback."
    await client.aclose()


async def test_many_tasks_at_once(faulty):
    client = AsyncClient(providers={"anthropic": {"max_connections": 8}})
    replies = await asyncio.gather(*(client.chat("hi") for _ in range(200)))
    assert {reply.text for reply in replies} == {"Hello from loopback."}
    await client.aclose()


def test_a_slow_reader_is_no_silence_of_the_server(faulty):
    with Client(timeout=0.3) as client, client.stream("hi") as answer:
        pieces = []
        for piece in answer:
            time.sleep(0.4)
            pieces.append(piece)
    assert "".join(pieces) == "Hello from loopback."


def test_the_default_client_follows_the_environment(faulty, monkeypatch):
    assert zlclient.chat("hi").provider == "anthropic"
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    assert zlclient.chat("hi").provider == "openai"
    monkeypatch.setenv("ZLCLIENT_PROVIDER", "local")
    assert zlclient.chat("hi").provider == "local"
