"""The fixtures' parts put together without the plugin, so that these tests hold whether it is installed or not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from zlclient.testing import OfflineServer
from zlclient.testing.interception import Interception
from zlclient.testing.network import Guard

Offline = Callable[..., OfflineServer]


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Makes an OfflineServer that answers the SDKs until the test ends."""
    made: list[OfflineServer] = []

    def make(*scenario: Any, allow: tuple[str, ...] = (), **options: Any) -> OfflineServer:
        server = OfflineServer(scenario=scenario, folder=tmp_path, **options)
        guard = Guard(allow)
        guard.install(monkeypatch)
        Interception(server, guard).install(monkeypatch)
        made.append(server)
        return server

    yield make
    for server in made:
        server.close()
