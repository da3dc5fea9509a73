"""Test an application that talks to a model, without the model: no network, no key, no cost.

    def test_greeting(zl_scenario, zl_requests):
        zl_scenario.when(text="hello").reply("Hi!")
        assert my_app.greet() == "Hi!"                       # it makes its own anthropic.Anthropic() somewhere
        zl_requests.assert_called_once(model="claude-sonnet-4-6")

The fixtures come with pytest's plugin `zlclient` (`zlclient/testing/plugin.py`). Outside pytest, `transport()` gives an
SDK client the same server. Names are found lazily: importing this package imports no SDK and no HTTP library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .in_process import Transport, transport
    from .network import NetworkBlocked
    from .offline import OfflineServer
    from .received import Received, Requests
    from .scenarios import Scenarios

__all__ = ["NetworkBlocked", "OfflineServer", "Received", "Requests", "Scenarios", "Transport", "transport"]

_HOME = {
    "NetworkBlocked": "network",
    "OfflineServer": "offline",
    "Received": "received",
    "Requests": "received",
    "Scenarios": "scenarios",
    "Transport": "in_process",
    "transport": "in_process",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
