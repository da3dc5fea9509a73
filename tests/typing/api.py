"""Never run: pins the types that a user sees. `pyright` checks it in CI."""

from typing import assert_type

import zlclient
from zlclient import AsyncClient, Client, Reply
from zlclient.prepared import Prepared
from zlclient.reply import Usage
from zlclient.streams import AsyncStream, Stream


def sync(client: Client) -> None:
    reply = client.chat("hi", model="auto", temperature=0.2)
    assert_type(reply, Reply)
    assert_type(reply.text, str)
    assert_type(reply.usage, Usage)
    assert_type(reply.cost, float | None)
    assert_type(client.prepare("hi"), Prepared)
    with client.stream("hi") as answer:
        assert_type(answer, Stream)
        for piece in answer:
            assert_type(piece, str)
        assert_type(answer.reply, Reply)
    assert_type(zlclient.chat("hi"), Reply)
    assert_type(zlclient.sanitize("hi").text, str)
    assert_type(zlclient.__version__, str)


async def asynchronous(client: AsyncClient) -> None:
    assert_type(await client.chat("hi"), Reply)
    async with await client.astream("hi") as answer:
        assert_type(answer, AsyncStream)
        async for piece in answer:
            assert_type(piece, str)
        assert_type(await answer.reply(), Reply)
    assert_type(await zlclient.achat("hi"), Reply)
