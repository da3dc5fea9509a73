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

from .reply import Adjustment
from .request import Request
from .settings import Settings
from .shaping.anchors import add_snippets
from .shaping.domains import language_of
from .shaping.shape import shape
from .shaping.tune import texts_of

if TYPE_CHECKING:
    import anthropic

Json = Mapping[str, Any]
_Client = TypeVar("_Client")
_SAMPLING = ("temperature", "top_p", "top_k")
log = logging.getLogger("zlclient")


class BodyShaper:
    """Shapes the JSON bodies of one provider's chat requests.

    Args:
        provider: "anthropic" or "openai": whose models the catalogue is asked about.
        settings: loaded settings.
        domain, anchors, sanitize: as in `Client.chat`.
    """

    def __init__(
        self, provider: str, settings: Settings, *, domain: str | None, anchors: tuple[str, ...], sanitize: str | None
    ) -> None:
        self._provider, self._settings = provider, settings
        self._domain, self._sanitize = domain, sanitize
        self._anchors = anchors or settings.anchors

    def shape(self, body: Json, version: str | None) -> tuple[dict[str, Any], tuple[Adjustment, ...]]:
        """`body` shaped, with a note of each change. `version` is the API version it will be sent with."""
        shaped, notes = dict(body), list[Adjustment]()
        key = "messages" if "messages" in body else "input"
        turns = _turns(body.get(key))
        if turns:
            request = Request(
                messages=tuple(_neutral(turn) for turn in turns), domain=self._domain, sanitize=self._sanitize
            )
            cleaned, found = shape(request, self._settings)
            if found and len(cleaned.messages) == len(turns):
                notes.extend(found)
                shaped[key] = _put_back(body[key], turns, cleaned.messages)
        if self._anchors:
            language = language_of("".join(texts_of(tuple(_neutral(turn) for turn in turns))))
            notes.extend(self._add_snippets(shaped, key, language))
        notes.extend(self._drop_rejected(shaped, version))
        return shaped, tuple(notes)

    def _add_snippets(self, body: dict[str, Any], key: str, language: str) -> tuple[Adjustment, ...]:
        if self._provider == "anthropic" or key == "input":
            field = "system" if self._provider == "anthropic" else "instructions"
            body[field], notes = add_snippets(_system(body.get(field)), self._anchors, language)
            return notes
        messages = list(body[key])
        head = messages[0] if messages and messages[0]["role"] in ("system", "developer") else None
        system, notes = add_snippets(head["content"] if head else None, self._anchors, language)
        first = {**(head or {"role": "system"}), "content": system}
        body[key] = [first, *(messages[1:] if head else messages)]
        return notes

    def _drop_rejected(self, body: dict[str, Any], version: str | None) -> list[Adjustment]:
        models = self._settings.catalogue.provider(self._provider)
        model = models.find(str(body.get("model", "")))
        if model.takes_sampling(version or models.versions[0], body.get("reasoning_effort")):
            return []
        harmless = {"temperature": 1, "top_p": 1} if self._provider == "openai" else {}
        reason = f"{model.id} rejects sampling on {version or models.versions[0]}"
        sent = [name for name in _SAMPLING if name in body and body[name] != harmless.get(name)]
        return [Adjustment("tune", name, body.pop(name), None, reason) for name in sent]


def _turns(messages: Any) -> list[Json]:
    """The turns whose text is shaped. Other items of the OpenAI wires hold data, which stays as it is."""
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    return [m for m in messages or () if m.get("role") in ("user", "assistant") and m.get("content")]


def _neutral(turn: Json) -> Json:
    content = turn["content"]
    if not isinstance(content, str):
        content = [{**block, "type": "text"} if block["type"] == "input_text" else block for block in content]
    return {"role": turn["role"], "content": content}


def _put_back(messages: Any, turns: list[Json], cleaned: tuple[Json, ...]) -> Any:
    """`messages` with the cleaned contents in place of the turns', in the wire's own block types."""
    if isinstance(messages, str):
        return cleaned[0]["content"]
    new: dict[int, Json] = {}
    for turn, clean in zip(turns, cleaned, strict=True):
        content = clean["content"]
        if not isinstance(content, str) and any(block["type"] == "input_text" for block in turn["content"]):
            content = [{**block, "type": "input_text"} if block["type"] == "text" else block for block in content]
        new[id(turn)] = {**turn, "content": content}
    return [new.get(id(message), message) for message in messages]


def _system(system: Any) -> str | tuple[Json, ...] | None:
    return tuple(cast("list[Json]", system)) if isinstance(system, list) else system


def _shaper(provider: str, options: Mapping[str, Any], settings: Settings | None) -> BodyShaper:
    anchors = options.get("anchors") or ()
    return BodyShaper(
        provider,
        settings or Settings.load(),
        domain=options.get("domain"),
        anchors=(anchors,) if isinstance(anchors, str) else tuple(anchors),
        sanitize=options.get("sanitize"),
    )


def middleware(
    *,
    domain: str | None = None,
    anchors: Any = None,
    sanitize: str | None = None,
    settings: Settings | None = None,
) -> anthropic.Middleware:
    """Middleware for `anthropic.Anthropic(middleware=[…])` and its async twin."""
    from anthropic import Middleware

    options = {"domain": domain, "anchors": anchors, "sanitize": sanitize}
    shaper = _shaper("anthropic", options, settings)

    def shaped(request: Any) -> Any:
        body = request.json
        if not request.url.startswith("/v1/messages") or not isinstance(body, Mapping) or "messages" not in body:
            return request
        headers = {str(name).lower(): value for name, value in request.headers.items()}
        new, notes = shaper.shape(cast("Json", body), headers.get("anthropic-version"))
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

    The SDK has no middleware, so the copy overrides its public `post`; the original is left as it is.
    """
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
