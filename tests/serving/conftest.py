from collections.abc import Iterator
from dataclasses import dataclass

import anthropic
import httpx2
import openai
import pytest

from zlclient.serving import LocalServer, async_transport, transport
from zlclient.serving.app import Listener


@dataclass
class Clients:
    """The four official clients, without retries, over one server."""

    anthropic: anthropic.Anthropic
    openai: openai.OpenAI
    async_anthropic: anthropic.AsyncAnthropic
    async_openai: openai.AsyncOpenAI


def clients_in_process(server: LocalServer, timeout: float = 10.0) -> Clients:
    common = {"api_key": "k", "max_retries": 0, "timeout": timeout}
    sync = httpx2.Client(transport=transport(server))

    def asyncio_client() -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=async_transport(server))

    return Clients(
        anthropic.Anthropic(**common, http_client=sync),  # type: ignore[arg-type]
        openai.OpenAI(**common, http_client=sync),  # type: ignore[arg-type]
        anthropic.AsyncAnthropic(**common, http_client=asyncio_client()),  # type: ignore[arg-type]
        openai.AsyncOpenAI(**common, http_client=asyncio_client()),  # type: ignore[arg-type]
    )


def clients_at(url: str, timeout: float = 10.0) -> Clients:
    common = {"api_key": "k", "max_retries": 0, "timeout": timeout}
    return Clients(
        anthropic.Anthropic(**common, base_url=url),  # type: ignore[arg-type]
        openai.OpenAI(**common, base_url=f"{url}/v1"),  # type: ignore[arg-type]
        anthropic.AsyncAnthropic(**common, base_url=url),  # type: ignore[arg-type]
        openai.AsyncOpenAI(**common, base_url=f"{url}/v1"),  # type: ignore[arg-type]
    )


@pytest.fixture(scope="session")
def port() -> Iterator[str]:
    """The URL of a server with the built-in responders on a real port."""
    with Listener(LocalServer(require_key=True)) as listener:
        yield listener.url


@pytest.fixture
def clients() -> Clients:
    return clients_in_process(LocalServer())


@pytest.fixture(params=["process", "port"])
def either(request: pytest.FixtureRequest, port: str) -> Clients:
    """Clients in process and over a socket, with a read timeout short enough to wait for."""
    return clients_at(port, 1.0) if request.param == "port" else clients_in_process(LocalServer(), 1.0)
