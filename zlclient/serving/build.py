"""Where the command line puts its server together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import TYPE_CHECKING

from .responders.base import Responder
from .server import Exchange, LocalServer, default_responders

if TYPE_CHECKING:
    from .responders.replay import Replay


def build_server(
    *,
    responders: Sequence[Responder] = (),
    scenario: str | os.PathLike[str] | None = None,
    replay: str | os.PathLike[str] | None = None,
    redact: Sequence[str] = (),
    strict: bool = False,
    require_key: bool = True,
    models: Iterable[str] = (),
    today: date | None = None,
    observe: Callable[[Exchange], None] | None = None,
) -> LocalServer:
    """A server whose chain is `responders`, the scenarios and, unless `strict`, the built-in ones.

    Args:
        responders: asked first, in order.
        scenario: a file of scenarios, asked after `responders`.
        replay: a cassette; what it recorded is answered from it, before any responder.
        redact: the patterns that were removed when the cassette was recorded, so that requests still match it.
        strict: a request that none of these answers is an error, and only listed models are known.
        require_key: a request without a key is answered with 401.
        models: further model ids to accept.
        today: the day on which models are retired or not; None refuses none.
        observe: called with every exchange.

    Raises:
        ConfigError: a file cannot be read, or holds a mistake; it names the line.
    """
    interceptors: list[Replay] = []
    if scenario is not None:
        from .responders.scenario import ScenarioResponder
        from .responders.scenario_file import load_scenarios

        responders = (*responders, ScenarioResponder(load_scenarios(scenario)))
    if replay is not None:
        from .recording import load_cassette
        from .redaction import Redaction
        from .responders.replay import Replay

        redaction = Redaction(patterns=redact)
        interceptors.append(Replay(load_cassette(replay), strict=strict and not responders, redaction=redaction))
    return LocalServer(
        (*responders, *(() if strict else default_responders())),
        strict=strict,
        require_key=require_key,
        models=models,
        today=today,
        interceptors=interceptors,
        observe=observe,
    )
