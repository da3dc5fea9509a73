"""The server behind the fixtures and `transport()`: scenarios, a replay, the requests that arrived."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..serving.recording import load_cassette
from ..serving.responders.replay import Replay
from ..serving.responders.scenario import ScenarioResponder
from ..serving.server import Exchange, LocalServer, default_responders
from ..serving.wire import WireRequest, WireResponse
from .received import Requests
from .scenarios import Scenarios

if TYPE_CHECKING:
    from ..serving.app import Listener

# The part of a path that the APIs know. Gateways and compatible servers put something of their own before it.
_KNOWN = re.compile(r"(?:/v1)?/(?:messages|chat/completions|responses|models|embeddings|files|batches)(?:/[^?]*)?\Z")

_MODEL = re.compile(rb'"model"\s*:\s*"([^"\\]+)"')
OWN_HOSTS = frozenset({"api.anthropic.com", "api.openai.com"})


class OfflineServer:
    """A LocalServer with its scenarios and a list of what arrived.

    Args:
        scenario: a scenario file, or scenarios as data.
        replay: a cassette, answered from before the scenarios.
        strict: a request that nothing is prepared for is an error; otherwise the offline responder answers it.
        delays: wait as scenarios and recordings say. None: scenarios wait, recordings answer at once. False: waits are
            only reckoned: one longer than the client's read timeout is that timeout at once, others are no time at
            all. Over `url` the scenarios' waits are real in any case.
        today: the day on which models are retired or not.
        models: further model ids that the providers' own hosts know; other hosts know every model.
        folder: where relative files are.
    """

    def __init__(
        self,
        *,
        scenario: str | Path | Sequence[Any] = (),
        replay: str | Path | None = None,
        strict: bool = True,
        delays: bool | None = None,
        today: date | str | None = None,
        models: Sequence[str] = (),
        folder: Path | None = None,
    ) -> None:
        responder = ScenarioResponder()
        self.strict, self.delays = strict, delays
        self.requests = Requests()
        self.scenario = Scenarios(responder, folder)
        self.unmatched: list[str] = []
        """Why requests were not answered, one text for each."""
        if isinstance(scenario, str | Path):
            self.scenario.load(scenario)
        else:
            self.scenario.add(*scenario)
        self._responder = responder
        self._replay: Replay | None = None
        if replay is not None:
            cassette = load_cassette((folder or Path()) / replay)
            self._replay = Replay(cassette, strict=strict, timing=bool(delays))
        self._server = LocalServer(
            (responder, *(() if strict else default_responders())),
            interceptors=(self._from_replay,),
            today=date.fromisoformat(today) if isinstance(today, str) else today,
            models=models,
            observe=self._observe,
        )
        self._lock = threading.Lock()
        self._listener: Listener | None = None

    @property
    def url(self) -> str:
        """The address on a real port, opened when it is first asked for; `openai_url` is the one for OpenAI's SDK."""
        with self._lock:
            if self._listener is None:
                from ..serving.app import Listener

                self._listener = Listener(self)
                self._listener.__enter__()
            return self._listener.url

    @property
    def openai_url(self) -> str:
        """`url` with `/v1`."""
        return f"{self.url}/v1"

    @property
    def listens_at(self) -> str:
        """The address where a port is open, "" where none is."""
        return "" if self._listener is None else self._listener.url

    def blocks(self, request: WireRequest) -> bool:
        """As of LocalServer."""
        return self._server.blocks(request)

    def handle(self, request: WireRequest) -> WireResponse:
        """Answer `request`, noting it, and why when nothing matched."""
        known = _KNOWN.search(request.path)
        if known and known.start():
            request = replace(request, path=known[0])
        if request.headers.get("host", "api.anthropic.com") not in OWN_HOSTS:
            self._accept_model(request)
        response = self._server.handle(request)
        if response.headers.get("x-zl-responder") == "none":
            self.unmatched.append(_message(response))
        return response

    def close(self) -> None:
        """Close the port, if one is open."""
        with self._lock:
            if self._listener is not None:
                self._listener.close()
                self._listener = None

    def _from_replay(self, request: WireRequest) -> WireResponse | None:
        """The recorded answer. A miss is the scenarios', where there are any, and then theirs to explain."""
        response = None if self._replay is None else self._replay(request)
        missed = response is not None and response.headers["x-zl-responder"] == "none"
        return None if missed and self._responder.scenarios else response

    def _accept_model(self, request: WireRequest) -> None:
        """Whatever a gateway or a compatible server is asked for, it has."""
        found = _MODEL.search(request.body)
        if found:
            name = found[1].decode("utf-8", "replace")
            catalogue = self._server.catalogue
            if not any(catalogue.find(provider, name).known for provider in ("anthropic", "openai")):
                with self._lock:
                    self._server.models |= {name}

    def _observe(self, exchange: Exchange) -> None:
        self.requests.add(exchange.request, exchange.status, exchange.responder, exchange.ask)


def _message(response: WireResponse) -> str:
    assert isinstance(response.body, bytes)
    return json.loads(response.body)["error"]["message"]
