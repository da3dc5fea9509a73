"""What watches a server with the reference engine behind it: its metrics, and which parts of the models are active."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .anthropic import json_response
from .errors import WireError
from .wire import WireResponse

if TYPE_CHECKING:
    from ..engine.metrics import Watched
    from ..engine.runner import Engine
    from ..engine.smollm2.assistant import Assistant
    from .server import Call, LocalServer


def metrics(call: Call) -> WireResponse:
    """GET /metrics: Prometheus text under vLLM's names, one set of samples for each engine."""
    from ..engine.metrics import CONTENT_TYPE, exposition

    engines: dict[str, Watched] = {**engines_of(call.server), **_loaded(call.server)}
    if not engines:
        raise WireError(404, "No engine is behind this server: start it with `zlclient serve --engine`.")
    return WireResponse(200, {"content-type": CONTENT_TYPE}, exposition(engines).encode())


def zero_layer(call: Call) -> WireResponse:
    """GET /health/zero-layer: which parts of `auto` a tagged probe went through; 503 where one is there that should
    not be."""
    from ..engine.probe import probe

    engine = engines_of(call.server).get("auto")
    if engine is None:
        raise WireError(404, "The model auto is not served.")
    found = probe(engine)
    response = json_response(found)
    response.status = 200 if found["ok"] else 503
    return response


def engines_of(server: LocalServer) -> dict[str, Engine]:
    """The engines behind `server`, by generation."""
    from .responders.engine import EngineResponder

    return {
        str(responder.generation): responder.engine
        for responder in server.responders
        if isinstance(responder, EngineResponder)
    }


def _loaded(server: LocalServer) -> dict[str, Assistant]:
    """SmolLM2, once it has answered: it is not loaded to be watched."""
    from .responders.smollm2 import SmolLM2Responder

    found = (responder.assistant for responder in server.responders if isinstance(responder, SmolLM2Responder))
    return {"smollm2": assistant for assistant in found if assistant is not None}  # noqa: B035 - one at most
