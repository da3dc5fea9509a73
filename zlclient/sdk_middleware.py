"""The same shaping for someone's own SDK client, so that adopting it changes one line.

    anthropic.Anthropic(middleware=[zlclient.middleware(domain="finance")])
    zlclient.shaped(openai.OpenAI(), domain="finance")

Only what the request says is shaped: texts are cleaned, the domain tag and snippets added, parameters that the model
rejects left out. Routing, retries and timeouts stay the SDK client's own.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .errors import InputError
from .settings import Settings
from .shaping.body import BodyShaper

if TYPE_CHECKING:
    import anthropic

    from .reply import Adjustment

Json = Mapping[str, Any]
_Client = TypeVar("_Client")
log = logging.getLogger("zlclient")


def _shaper(provider: str, options: Mapping[str, Any], settings: Settings | None) -> BodyShaper:
    return BodyShaper(provider, settings or Settings.load(), **options)


def middleware(
    *,
    domain: str | None = None,
    anchors: Any = None,
    sanitize: str | None = None,
    settings: Settings | None = None,
) -> anthropic.Middleware:
    """Middleware for `anthropic.Anthropic(middleware=[…])` and its async twin; the requests of a batch are shaped too.

    Raises:
        InputError: an option is wrong.
    """
    from anthropic import Middleware

    options = {"domain": domain, "anchors": anchors, "sanitize": sanitize}
    shaper = _shaper("anthropic", options, settings)

    def shaped(request: Any) -> Any:
        body = request.json
        if not request.url.startswith("/v1/messages") or not isinstance(body, Mapping):
            return request
        shape = shaper.shape if "messages" in body else shaper.shape_batch if "requests" in body else None
        if shape is None:
            return request
        headers = {str(name).lower(): value for name, value in request.headers.items()}
        new, notes = shape(cast("Json", body), headers.get("anthropic-version"))
        _log(notes)
        return request.copy(body=new) if notes else request

    class ShapingMiddleware(Middleware):
        def handle(self, request: Any, call_next: Any) -> Any:
            return call_next(shaped(request))

        async def handle_async(self, request: Any, call_next: Any) -> Any:
            return await call_next(shaped(request))

    return ShapingMiddleware()


def shaped(
    client: _Client,
    *,
    domain: str | None = None,
    anchors: Any = None,
    sanitize: str | None = None,
    settings: Settings | None = None,
) -> _Client:
    """A copy of an `openai.OpenAI` or `AsyncOpenAI` client whose chat requests are shaped before they leave.

    The SDK has no middleware, so the copy overrides its public `post`; the original is left as it is. A batch is a file
    that was uploaded before, and is not shaped.

    Raises:
        InputError: an option is wrong, or `client` is no client of the `openai` SDK.
    """
    if not hasattr(type(client), "responses"):
        raise InputError("must be an openai.OpenAI or AsyncOpenAI client", where="client")
    options = {"domain": domain, "anchors": anchors, "sanitize": sanitize}
    shaper = _shaper("openai", options, settings)
    kind: Any = type(client)

    def shape_body(path: str, options: dict[str, Any]) -> dict[str, Any]:
        body = options.get("body")
        if path not in ("/chat/completions", "/responses") or not isinstance(body, Mapping):
            return options
        new, notes = shaper.shape(cast("Json", body), None)
        _log(notes)
        return {**options, "body": new} if notes else options

    def post(self: Any, path: str, **options: Any) -> Any:
        return kind.post(self, path, **shape_body(path, options))

    # A subclass, not a patched object: what the copy's own `with_options` makes is shaped too.
    copied: Any = cast("Any", client).with_options()
    copied.__class__ = type(kind.__name__, (kind,), {"post": post})
    return copied


def _log(notes: tuple[Adjustment, ...]) -> None:
    if notes and log.isEnabledFor(logging.INFO):
        log.info("shaped", extra={"zl_adjustments": [f"{note.stage}/{note.rule}" for note in notes]})
