"""LocalServer: both providers' wires over a chain of responders, as one pure synchronous function.

    server = LocalServer()
    response = server.handle(WireRequest("POST", "/v1/messages", {"anthropic-version": "2023-06-01"}, b"{...}"))

It needs no socket, no event loop and no SDK. Drivers around it: `app.py` (ASGI), `transports.py` (SDK transports), the
client's local provider. Its state (batches, files, cached prefixes, stored responses) is in memory, behind locks, and
gone with it.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.util import find_spec
from typing import Any, cast

from ..models import Catalogue
from .errors import Dialect, WireError, error_response
from .faults import asked_fault, fault_response, with_fault
from .responders.base import Ask, Event, Fault, Head, Pace, Pause, Responder
from .routes import find_route
from .wire import Piece, WireRequest, WireResponse

MAX_BODY = 32 * 1024 * 1024  # the Messages API's published limit
OPEN_PATHS = frozenset(("/health", "/health/zero-layer", "/metrics"))  # whoever watches the server has no key


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and how it was answered, for whoever observes the server. `ask` is None where no model was asked."""

    number: int
    request: WireRequest
    status: int
    headers: dict[str, str]
    ask: Ask | None
    responder: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A responder's events, its leading pauses taken off and summed into `delay` seconds."""

    responder: str
    events: Iterator[Event]
    delay: float


class FaultFirst(Exception):
    """A responder, or the request's header, answers with a fault before any content."""

    def __init__(self, fault: Fault, delay: float, responder: str) -> None:
        super().__init__(fault.kind)
        self.fault, self.delay, self.responder = fault, delay, responder


class LocalServer:
    """Answers requests of the Anthropic and OpenAI APIs from `responders`, asked in order.

    Args:
        responders: who answers; None means the built-in ones.
        catalogue: which models exist and what each accepts; None means the bundled one.
        strict: only models that the catalogue lists are known.
        require_key: without a key the answer is 401.
        models: further model ids to accept on every wire, with whatever parameters.
        today: on this day models are retired or not; None means that no model is refused as retired.
        cache_minimum: prompt prefixes of fewer tokens are not cached, as the real APIs do it.
        interceptors: asked first with the raw request; one that returns a response answers (replay of recordings).
        observe: called with each Exchange once its head is decided; must be quick and thread-safe.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        responders: Sequence[Responder] | None = None,
        *,
        catalogue: Catalogue | None = None,
        strict: bool = False,
        require_key: bool = False,
        models: Iterable[str] = (),
        today: date | None = None,
        cache_minimum: int = 1024,
        interceptors: Sequence[Callable[[WireRequest], WireResponse | None]] = (),
        observe: Callable[[Exchange], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.responders = tuple(default_responders() if responders is None else responders)
        self.catalogue = catalogue or Catalogue.bundled()
        self.strict, self.require_key = strict, require_key
        self.models = frozenset(models).union(*(responder.models for responder in self.responders))
        self.today, self.cache_minimum, self.clock = today, cache_minimum, clock
        self.interceptors, self.observe = tuple(interceptors), observe
        self.lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._stores: dict[str, Any] = {}

    @classmethod
    def default(cls) -> LocalServer:
        """One shared server with the built-in responders, for in-process use."""
        return _default()

    def blocks(self, request: WireRequest) -> bool:
        """Whether a driver with an event loop should answer `request` from a worker thread.

        A responder that is slow over models of its own is asked only where the body names one, so that the others'
        requests stay quick; a name that stands elsewhere in it costs them a thread.
        """
        return any(
            responder.blocking
            and (not responder.models or any(f'"{model}"'.encode() in request.body for model in responder.models))
            for responder in self.responders
        )

    def on(self) -> date:
        """The day on which lifecycles are judged."""
        return self.today or date.fromtimestamp(self.clock())

    def new_id(self, prefix: str) -> str:
        """A fresh id; the same sequence of requests gets the same ids."""
        return f"{prefix}{next(self._numbers):024d}"

    def store(self, name: str, make: Callable[[], Any]) -> Any:
        """A wire's own state under `name`, made once."""
        with self.lock:
            if name not in self._stores:
                self._stores[name] = make()
            return self._stores[name]

    def handle(self, request: WireRequest) -> WireResponse:
        """Answer `request`. Whatever it holds, errors are answers; only what a responder itself raises is raised."""
        number = next(self._numbers)
        dialect = dialect_of(request)
        request_id = f"req_{number:024d}"
        call = Call(self, request, dialect, request_id)
        response = self._intercepted(request)
        if response is None:
            try:
                response = self._routed(call)
            except WireError as error:
                response = error_response(dialect, error, request_id)
            except FaultFirst as first:
                call.responder = first.responder
                response = fault_response(first.fault, dialect, request_id, stream=call.stream)
                response = delayed(response, first.delay)
            self._head(call, response)
        if self.observe is not None:
            responder = response.headers.get("x-zl-responder", "")
            self.observe(Exchange(number, request, response.status, response.headers, call.ask, responder))
        return response

    def answer(self, call: Call, ask: Ask) -> Answer:
        """The first responder's events for `ask`; raises FaultFirst where a fault comes before any content."""
        call.ask, call.stream = ask, ask.stream
        header = ask.headers.get("x-zl-fault")
        asked = asked_fault(header) if header else None
        if asked and not asked.mid:
            raise FaultFirst(asked.fault, 0.0, "fault")
        for responder in self.responders:
            found = responder.respond(ask)
            if found is not None:
                break
        else:
            raise WireError(404, self._unanswered(ask), headers={"x-zl-responder": "none", "x-should-retry": "false"})
        call.responder = responder.name
        events = iter(with_fault(found, asked.fault) if asked else found)
        delay, lead = 0.0, list[Event]()
        for event in events:
            if isinstance(event, Pause):
                delay += event.seconds
                continue
            if isinstance(event, Head):
                call.headers.update(event.headers)
                continue
            if isinstance(event, Fault):
                raise FaultFirst(event, delay, responder.name)
            lead.append(event)
            if not isinstance(event, Pace):
                break
        return Answer(responder.name, itertools.chain(lead, events), delay)

    def _intercepted(self, request: WireRequest) -> WireResponse | None:
        for intercept in self.interceptors:
            response = intercept(request)
            if response is not None:
                return response
        return None

    def _routed(self, call: Call) -> WireResponse:
        request = call.request
        if len(request.body) > MAX_BODY:
            raise WireError(413)
        handler, parameters = find_route(request.method, request.path)
        header = request.headers.get("x-zl-fault")
        if header and not request.path.endswith(("/messages", "/chat/completions", "/responses")):
            raise FaultFirst(asked_fault(header).fault, 0.0, "fault")
        has_key = request.headers.get("x-api-key") or request.headers.get("authorization")
        if self.require_key and not has_key and request.path not in OPEN_PATHS:
            missing = {
                "anthropic": "x-api-key header is required",
                "openai": "You didn't provide an API key. Provide it in an Authorization header using Bearer auth.",
            }
            raise WireError(401, missing[call.dialect])
        return handler(call, **parameters)

    def _unanswered(self, ask: Ask) -> str:
        reasons = [reason for responder in self.responders if (reason := responder.explain(ask))]
        return "\n".join(["zlclient serve: no responder answers this request.", *reasons])

    def _head(self, call: Call, response: WireResponse) -> None:
        headers = response.headers
        headers.setdefault("x-zl-responder", call.responder)
        headers.update(call.headers)
        if call.dialect == "anthropic":
            headers["request-id"] = call.request_id
            headers["anthropic-organization-id"] = "00000000-0000-0000-0000-000000000000"
        else:
            headers["x-request-id"] = call.request_id
            headers["openai-version"] = "2020-10-01"
            headers["openai-organization"] = "zlclient-local"
            headers["openai-processing-ms"] = "1"
        headers.update(_limits(call.dialect, response.status, self.clock()))


class Call:
    """One request on its way: what a wire's handler gets. `ask`, `responder` and `headers` are filled in while it
    is answered."""

    def __init__(self, server: LocalServer, request: WireRequest, dialect: Dialect, request_id: str) -> None:
        self.server, self.request = server, request
        self.dialect: Dialect = dialect
        self.request_id = request_id
        self.ask: Ask | None = None
        self.responder = "server"
        self.headers: dict[str, str] = {}
        self.stream = False

    def json(self) -> dict[str, Any]:
        """The body as a JSON object; raises WireError 400."""
        try:
            value: Any = json.loads(self.request.body)
        except (ValueError, RecursionError):
            raise WireError(400, "The request body is not valid JSON.") from None
        if not isinstance(value, dict):
            raise WireError(400, "The request body must be a JSON object.")
        return cast("dict[str, Any]", value)


def dialect_of(request: WireRequest) -> Dialect:
    """Whose shapes the answer has: `/models` and errors of unknown paths are shared, and told apart by a header."""
    return "anthropic" if "anthropic-version" in request.headers or "/messages" in request.path else "openai"


def default_responders() -> tuple[Responder, ...]:
    """The built-in chain: the engine, what a schema asks for, SmolLM2, and the offline responder, which answers all.

    The engine needs numpy (the extra `engine`); without it the others answer alone. Every answer says whose it is.
    """
    from .responders.offline import OfflineResponder
    from .responders.smollm2 import SmolLM2Responder
    from .responders.structured import StructuredResponder

    return (*engine_responders(yields=True), StructuredResponder(), SmolLM2Responder(), OfflineResponder())


def engine_responders(*, yields: bool) -> tuple[Responder, ...]:
    """Those of both generations; none where numpy is not installed. `yields` as in EngineResponder."""
    if find_spec("numpy") is None:
        return ()
    from .responders.engine import EngineResponder

    return (EngineResponder("auto", yields=yields), EngineResponder("legacy", yields=yields))


def delayed(response: WireResponse, seconds: float) -> WireResponse:
    """`response` whose head leaves `seconds` later."""
    if seconds <= 0:
        return response
    return WireResponse(response.status, response.headers, _after(seconds, response))


def _after(seconds: float, response: WireResponse) -> Iterator[Piece]:
    yield Pause(seconds)
    yield from response.pieces()


def _limits(dialect: Dialect, status: int, now: float) -> dict[str, str]:
    """Rate limit headers: fixed limits, of which nothing is left on a 429."""
    left = 0 if status == 429 else 1
    if dialect == "openai":
        return {
            "x-ratelimit-limit-requests": "10000",
            "x-ratelimit-remaining-requests": str(9999 * left),
            "x-ratelimit-reset-requests": "6ms",
            "x-ratelimit-limit-tokens": "2000000",
            "x-ratelimit-remaining-tokens": str(1999000 * left),
            "x-ratelimit-reset-tokens": "30ms",
        }
    reset = _rfc3339(int(now) + 60)
    return {
        "anthropic-ratelimit-requests-limit": "4000",
        "anthropic-ratelimit-requests-remaining": str(3999 * left),
        "anthropic-ratelimit-requests-reset": reset,
        "anthropic-ratelimit-tokens-limit": "2000000",
        "anthropic-ratelimit-tokens-remaining": str(1999000 * left),
        "anthropic-ratelimit-tokens-reset": reset,
    }


def _rfc3339(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))


@cache
def _default() -> LocalServer:
    return LocalServer()
