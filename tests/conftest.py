"""Fixtures every test may use. No test sees the developer's own keys, settings files or network."""

import os
from datetime import date
from pathlib import Path

import pytest
from faulty import FaultyServer

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of facts, cases and vectors beside the checkout; a test that needs it skips without it."""
    if not SHARED.is_dir():
        pytest.skip("../shared is not beside this checkout")
    return SHARED


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC_", "OPENAI_", "ZLCLIENT_")):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def _faulty_server():
    with FaultyServer() as server:
        yield server


@pytest.fixture
def faulty(_faulty_server, monkeypatch):
    """A faulty server that both providers' addresses point to, with dummy keys."""
    _faulty_server.script()
    monkeypatch.setenv("ANTHROPIC_BASE_URL", _faulty_server.url)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{_faulty_server.url}/v1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key")
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    return _faulty_server


class FakeClock:
    """Waits in no time and notes how long; `now` moves by what was waited."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)

    def today(self) -> date:
        return date(2026, 11, 30)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
