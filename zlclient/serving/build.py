"""One place where a server is put together: the command line and the test fixtures build theirs here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date

from .responders.base import Responder
from .server import Exchange, LocalServer, default_responders


def build_server(
    *,
    responders: Sequence[Responder] = (),
    strict: bool = False,
    require_key: bool = True,
    models: Iterable[str] = (),
    today: date | None = None,
    observe: Callable[[Exchange], None] | None = None,
) -> LocalServer:
    """A server whose chain is `responders`, then, unless `strict`, the built-in ones.

    Args:
        responders: asked first, in order.
        strict: a request that none of `responders` answers is an error, and only listed models are known.
        require_key: a request without a key is answered with 401.
        models: further model ids to accept.
        today: the day on which models are retired or not; None refuses none.
        observe: called with every exchange.
    """
    return LocalServer(
        (*responders, *(() if strict else default_responders())),
        strict=strict,
        require_key=require_key,
        models=models,
        today=today,
        observe=observe,
    )
