"""The local server: the official SDKs' wires, answered in process or on a loopback port.

    from zlclient.serving import LocalServer, transport
    client = anthropic.Anthropic(api_key="local", http_client=httpx2.Client(transport=transport()))

Names are found lazily: importing this package imports neither an SDK nor an HTTP library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .app import App, Listener
    from .build import build_server
    from .server import Exchange, LocalServer
    from .transports import async_transport, transport
    from .wire import Drop, WireRequest, WireResponse

__all__ = [
    "App",
    "Drop",
    "Exchange",
    "Listener",
    "LocalServer",
    "WireRequest",
    "WireResponse",
    "async_transport",
    "build_server",
    "transport",
]

_HOME = {
    "App": "app",
    "Listener": "app",
    "Drop": "wire",
    "WireRequest": "wire",
    "WireResponse": "wire",
    "Exchange": "server",
    "LocalServer": "server",
    "build_server": "build",
    "async_transport": "transports",
    "transport": "transports",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{home}", __name__), name)
