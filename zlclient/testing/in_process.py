"""An httpx2 transport, sync and async in one, that any SDK client takes in its `http_client`.

    client = anthropic.Anthropic(api_key="x", http_client=httpx2.Client(transport=transport("weather.yaml")))
    client = openai.AsyncOpenAI(api_key="x", http_client=httpx2.AsyncClient(transport=transport([{"reply": "Hi"}])))

Each transport has a server of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import httpx2

from ..serving.transports import AsyncLocalTransport, LocalTransport
from .offline import OfflineServer
from .received import Requests
from .scenarios import Scenarios


class Transport(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """Answers from an OfflineServer, in process."""

    def __init__(self, server: OfflineServer) -> None:
        self.server = server
        waits = server.delays is not False
        self._sync = LocalTransport(server, time.sleep if waits else _skip)
        self._async = AsyncLocalTransport(server, asyncio.sleep if waits else _skip_async)

    @property
    def requests(self) -> Requests:
        """What arrived, with assertions."""
        return self.server.requests

    @property
    def scenario(self) -> Scenarios:
        """The scenarios, to add more."""
        return self.server.scenario

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer; raises httpx2.ReadTimeout and RemoteProtocolError where a real connection would."""
        return self._sync.handle_request(request)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer; raises httpx2.ReadTimeout and RemoteProtocolError where a real connection would."""
        return await self._async.handle_async_request(request)


def transport(
    scenario: str | Path | Sequence[Any] = (),
    *,
    replay: str | Path | None = None,
    strict: bool | None = None,
    delays: bool | None = None,
    today: date | str | None = None,
) -> Transport:
    """A transport over a server of its own.

    Args:
        scenario: a scenario file, or scenarios as data; more can be added to the transport's `scenario`.
        replay: a cassette to answer from.
        strict: a request that nothing is prepared for is an error; None: where a scenario or replay is given.
        delays, today: as of OfflineServer.

    Raises:
        ConfigError: a file cannot be read or holds a mistake; it names the line.
    """
    found = bool(scenario) or replay is not None if strict is None else strict
    return Transport(OfflineServer(scenario=scenario, replay=replay, strict=found, delays=delays, today=today))


def _skip(_: float) -> None:
    """Wait for nothing."""


async def _skip_async(_: float) -> None:
    """Wait for nothing, but let others run."""
    await asyncio.sleep(0)
