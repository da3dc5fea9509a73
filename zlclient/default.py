"""The module's own chat and stream, over one default client: the only global state of this library.

The client is made at the first call from the files, the environment and nothing else, and made anew when one of the
variables that name a provider's address or key changes.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from .client import Client

if TYPE_CHECKING:
    from .prepared import Prepared
    from .reply import Reply
    from .streams import AsyncStream, Stream

_WATCHED = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "ZLCLIENT_MODEL",
    "ZLCLIENT_PROVIDER",
)
_lock = threading.Lock()
_default: tuple[tuple[str | None, ...], Client] | None = None


def default_client() -> Client:
    """The client behind the functions of this module."""
    global _default  # noqa: PLW0603 - the documented default client
    seen = tuple(map(os.environ.get, _WATCHED))
    known = _default
    if known is None or known[0] != seen:
        with _lock:
            if _default is None or _default[0] != seen:
                _default = (seen, Client())
            known = _default
    return known[1]


def chat(prompt: Any, /, **options: Any) -> Reply:
    """Ask the default client; see `Client.chat`."""
    return default_client().chat(prompt, **options)


def stream(prompt: Any, /, **options: Any) -> Stream:
    """Ask the default client and read the answer as it arrives; see `Client.stream`."""
    return default_client().stream(prompt, **options)


async def achat(prompt: Any, /, **options: Any) -> Reply:
    """Ask the default client from asyncio; see `Client.achat`."""
    return await default_client().achat(prompt, **options)


async def astream(prompt: Any, /, **options: Any) -> AsyncStream:
    """Ask the default client from asyncio and read the answer as it arrives; see `Client.astream`."""
    return await default_client().astream(prompt, **options)


def outcome(reply: Reply | str, metric: str, value: bool | float) -> None:
    """Report what became of a reply of an experiment; see `Client.outcome`."""
    default_client().outcome(reply, metric, value)


def prepare(prompt: Any, /, **options: Any) -> Prepared:
    """The exact request that `chat` would send; see `Client.prepare`."""
    return default_client().prepare(prompt, **options)
