"""pytest fixtures: the official SDKs answered in process, from scenarios or recordings.

    zl_scenario   say what the model answers; a request that nothing is said about fails the test
    zl_requests   what arrived, with assertions
    zl_server     the server itself; `zl_server.url` opens a real port

    @pytest.mark.zlclient(scenario="weather.yaml", replay="cassette.jsonl", strict=True, delays=False,
                          today="2027-02-01", models=["my-model"], allow=["db.internal"])

Importing this module imports pytest and nothing else: what a test does not use costs it nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .offline import OfflineServer
    from .received import Requests
    from .scenarios import Scenarios

_MARKER = "zlclient"
_OPTIONS = ("scenario", "replay", "strict", "delays", "today", "models", "allow")
_SERVER: pytest.StashKey[OfflineServer] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the settings."""
    parser.addini("zl_allow", "hosts that tests with zlclient's fixtures may reach", type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    options = ", ".join(f"{name}=…" for name in _OPTIONS)
    config.addinivalue_line("markers", f"{_MARKER}({options}): how zlclient's fixtures answer this test")


@pytest.fixture
def zl_server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Generator[OfflineServer]:
    """The server that answers the SDKs in this test. Strict where the test says what is answered, in `zl_scenario` or
    the marker; otherwise the offline responder answers everything."""
    from .interception import Interception
    from .network import Guard
    from .offline import OfflineServer

    options = _options(request.node)
    allow = [*request.config.getini("zl_allow"), *options.pop("allow", ())]
    says_what = "zl_scenario" in request.fixturenames or bool({"scenario", "replay"} & options.keys())
    options.setdefault("strict", says_what)
    server = OfflineServer(**options, folder=request.path.parent)
    request.node.stash[_SERVER] = server
    guard = Guard(allow)
    guard.install(monkeypatch)
    Interception(server, guard).install(monkeypatch)
    yield server
    server.close()


@pytest.fixture
def zl_scenario(zl_server: OfflineServer) -> Scenarios:
    """Say what the model answers: `zl_scenario.when(text="hello").reply("Hi!")`."""
    return zl_server.scenario


@pytest.fixture
def zl_requests(zl_server: OfflineServer) -> Requests:
    """What arrived: `zl_requests.assert_called_once(text="hello")`."""
    return zl_server.requests


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test in strict mode that sent what nothing was prepared for, even if the application swallowed the
    error."""
    try:
        result = yield
    except BaseException:
        server = item.stash.get(_SERVER, None)
        if server is not None and server.unmatched:
            item.add_report_section("call", "zlclient", _unmatched(server))
        raise
    server = item.stash.get(_SERVER, None)
    if server is not None and server.unmatched:
        pytest.fail(_unmatched(server), pytrace=False)
    return result


def _options(node: pytest.Item) -> dict[str, Any]:
    """The marker's options, those nearest to the test first; raises UsageError for unknown ones."""
    options: dict[str, Any] = {}
    for marker in node.iter_markers(_MARKER):
        unknown = sorted(marker.kwargs.keys() - set(_OPTIONS))
        if unknown or marker.args:
            what = f"{unknown[0]!r}" if unknown else "a positional argument"
            raise pytest.UsageError(f"@pytest.mark.{_MARKER} has no {what}; accepted: {', '.join(_OPTIONS)}")
        options = {**marker.kwargs, **options}
    return options


def _unmatched(server: OfflineServer) -> str:
    count = len(server.unmatched)
    head = "A request was" if count == 1 else f"{count} requests were"
    return f"{head} sent that nothing was prepared for.\n\n" + "\n\n".join(dict.fromkeys(server.unmatched))
