"""What watches a server with the reference engine behind it: its metrics, and which parts of the models are active."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .anthropic import json_response
from .errors import WireError
from .wire import WireResponse

if TYPE_CHECKING:
    from ..engine.metrics import Watched
    from ..engine.smollm2.assistant import Assistant
    from .responders.engine import EngineResponder
    from .server import Call, LocalServer


def metrics(call: Call) -> WireResponse:
    """GET /metrics: Prometheus text under vLLM's names, one set of samples for each engine that has been loaded."""
    from ..engine.metrics import CONTENT_TYPE, exposition

    responders, others = _responders(call.server), _loaded(call.server)
    if not responders and not others:
        raise WireError(404, "No engine is behind this server: the extra `engine` is not installed, or it has others.")
    engines: dict[str, Watched] = {
        **{name: responder.loaded for name, responder in responders.items() if responder.loaded},
        **others,
    }
    return WireResponse(200, {"content-type": CONTENT_TYPE}, exposition(engines).encode())


def zero_layer(call: Call) -> WireResponse:
    """GET /health/zero-layer: which parts of `auto` a tagged probe went through; 503 where one is there that should
    not be."""
    from ..engine.probe import probe

    responder = _responders(call.server).get("auto")
    if responder is None:
        raise WireError(404, "The model auto is not served.")
    found = probe(responder.engine)
    response = json_response(found)
    response.status = 200 if found["ok"] else 503
    return response


def _responders(server: LocalServer) -> dict[str, EngineResponder]:
    """The responders with an engine behind `server`, by generation; the first one answers."""
    from .responders.engine import EngineResponder

    found = (responder for responder in reversed(server.responders) if isinstance(responder, EngineResponder))
    return {str(responder.generation): responder for responder in found}


def _loaded(server: LocalServer) -> dict[str, Assistant]:
    """SmolLM2, once it has answered: it is not loaded to be watched."""
    from .responders.smollm2 import SmolLM2Responder

    found = (responder.assistant for responder in server.responders if isinstance(responder, SmolLM2Responder))
    return {"smollm2": assistant for assistant in found if assistant is not None}  # noqa: B035 - one at most
