"""What a client is apart from its I/O: settings, adapters, what was learned, and every step between two exchanges."""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from . import corridor
from .checking.checks import check, settled
from .errors import ClientClosed, ConfigError, InputError, RateLimited, SendError
from .providers import make_provider
from .reply import Adjustment, Reply
from .request import Request
from .routing.routes import choose_route
from .routing.traffic import Traffic
from .sending.clock import Clock, SystemClock
from .sending.plan import Plan, Target
from .sending.sender import AsyncSender, Sender
from .settings import Settings
from .shaping.shorten import split_request

if TYPE_CHECKING:
    from .answering.reading import Reading
    from .prepared import Prepared
    from .providers.base import Provider
    from .sending.call import Call

log = logging.getLogger("zlclient")


class ModelRetirementWarning(UserWarning):
    """A model in use retires, or has retired, on the date given."""


class Core:
    """A client without its drivers."""

    def __init__(
        self,
        *,
        clients: Mapping[str, Any] | None = None,
        http_client: Any = None,
        settings: Settings | None = None,
        clock: Clock | None = None,
        **options: Any,
    ) -> None:
        """Settings come from the files, the environment and `options`, weakest first; see `Settings`.

        Args:
            clients: SDK clients of your own by provider name, used as they are (Bedrock, Vertex, Azure, a proxy …).
            http_client: an httpx2 client of your own that the SDK clients made here use.
            settings: settings loaded elsewhere, instead of `options`.
            clock: where time is read and spent; the system's by default.

        Raises:
            ConfigError: an option or a setting is wrong.
        """
        self.settings = Settings.load(options) if settings is None else settings
        self._clock: Clock = clock or SystemClock()
        self._clients = dict(clients or {})
        unknown = self._clients.keys() - self.settings.providers.keys()
        if unknown:
            known = ", ".join(self.settings.providers)
            raise ConfigError(f"no such provider; known are {known}", key=f"clients.{min(unknown)}")
        self._http_client = http_client
        self._providers: dict[str, Provider] = {}
        self._closed = False
        self._traffic = Traffic(self.settings)
        self._shadows: set[asyncio.Task[None]] = set()
        self._rejections: dict[tuple[str, str], frozenset[str]] = {}
        self._sender = Sender(self._clock)
        self._async_sender = AsyncSender(self._clock)
        self._lock = threading.Lock()

    def prepare(self, prompt: Any, /, **options: Any) -> Prepared:
        """The exact request that would leave, without sending: `.wire`, `.adjustments`; over a document the first one.

        Raises:
            InputError: an option is unknown or wrong, or nothing is left to answer.
        """
        request = Request.of(prompt, **options)
        return self._prepare(request if request.document is None else self._reading(request).plan.first)

    def _reading(self, request: Request) -> Reading:
        """How a request over a document goes on: planned, nothing sent."""
        from .answering.reading import Reading

        return Reading.of(request, self._prepare, self.settings, self._clock)

    def _prepare(self, request: Request, route: str | None = None) -> Prepared:
        return corridor.prepare(request, self.settings, self._clock.today(), self._rejections, route)

    def _plan(self, request: Request, route: str | None = None) -> Plan:
        routes = self.settings.fallback if request.fallback is None else request.fallback
        for name in routes:
            choose_route(name, self.settings, self._clock.today())  # a wrong name shows now, not in an outage
        first = self._prepare(request, route)
        for note in first.adjustments:
            if note.rule == "lifecycle":
                warnings.warn(note.reason, ModelRetirementWarning, stacklevel=6)
        target = self._target(first)  # the first one imports an SDK: no deadline counts that
        fallbacks = [partial(self._fallback, request, name) for name in routes]
        return Plan(self._clock.monotonic(), target, fallbacks, self._amend)

    def _target(self, prepared: Prepared) -> Target:
        return Target(prepared, self._provider(prepared), corridor.wire_of(prepared.route.provider.kind))

    def _fallback(self, request: Request, route: str) -> Target | None:
        """The request for a fallback route, or None where that route cannot take it: the first error then stands."""
        try:
            prepared = self._prepare(request, route)
            if not corridor.fits(prepared):
                raise InputError("the prompt does not fit its context window")
            asked = request.model or self.settings.model
            note = Adjustment("route", "fallback", asked, prepared.route.label, "the route before it was unavailable")
            return self._target(replace(prepared, adjustments=(*prepared.adjustments, note)))
        except (InputError, ConfigError) as error:
            log.warning("fallback skipped", extra={"zl_route": route, "zl_reason": str(error)})
            return None

    def _amend(self, target: Target, error: SendError) -> Target | None:
        """The request again without what the server refused, or shorter after a 429 where that was asked."""
        prepared = target.prepared
        amended: Prepared | None = None
        if isinstance(error, RateLimited):
            if prepared.bounds.on_rate_limit == "shorten":
                amended = corridor.shorter(prepared, self.settings)
        else:
            name = corridor.refused_parameter(prepared, error)
            if name is not None:
                amended = corridor.without(prepared, self.settings, self._learn(prepared, name))
        return None if amended is None else replace(target, prepared=amended)

    def _learn(self, prepared: Prepared, name: str) -> frozenset[str]:
        """Remember, for as long as this client lives, that the model refuses `name`."""
        key = (prepared.route.provider.name, prepared.route.model.id)
        with self._lock:
            known = self._rejections[key] = self._rejections.get(key, frozenset()) | {name}
        return known

    def _provider(self, prepared: Prepared) -> Provider:
        settings = prepared.route.provider
        if self._closed:
            raise ClientClosed("the client is closed", provider=settings.name, model=prepared.route.model.id)
        known = self._providers.get(settings.name)
        if known is None:
            with self._lock:
                if settings.name not in self._providers:
                    given = self._clients.get(settings.name)
                    made = make_provider(settings, client=given, http_client=self._http_client)
                    self._providers[settings.name] = made
                known = self._providers[settings.name]
        return known

    def _finish(self, call: Call, request: Request) -> Reply:
        """The answer with its checks, recorded."""
        prepared, decoder = call.prepared, call.decoder
        reply = Reply(
            id=f"zl_{uuid.uuid4().hex}",
            text=decoder.text,
            model=decoder.model or prepared.route.model.id,
            provider=prepared.route.provider.name,
            route=prepared.route.label,
            content=call.content,
            stop_reason=decoder.stop_reason,
            usage=decoder.usage,
            timings=call.timings(),
            adjustments=prepared.adjustments,
            attempts=tuple(call.attempts),
            sent=prepared.tuned.messages,
            request_id=call.request_id,
            responder=call.headers.get("x-zl-responder"),
        )
        reply = check(reply, request, self.settings)
        self._log(reply)
        return reply

    def _finish_stream(self, call: Call, request: Request) -> Reply:
        """As `_finish`; what was read cannot be asked again, so "retry" records."""
        return settled(self._finish(call, request), request, self.settings)

    def _log(self, reply: Reply) -> None:
        if not log.isEnabledFor(logging.INFO):
            return
        fields: dict[str, Any] = {
            "zl_id": reply.id,
            "zl_route": reply.route,
            "zl_model": reply.model,
            "zl_request_id": reply.request_id,
            "zl_attempts": len(reply.attempts),
            "zl_ttft": reply.timings.ttft,
            "zl_total": reply.timings.total,
            "zl_input_tokens": reply.usage.total_input,
            "zl_output_tokens": reply.usage.output,
            "zl_stop_reason": reply.stop_reason,
            "zl_adjustments": [f"{note.stage}/{note.rule}" for note in reply.adjustments],
        }
        if self.settings.log_content:
            fields |= {"zl_messages": list(reply.sent), "zl_text": reply.text}
        log.info("chat", extra=fields)

    def _halved(self, request: Request, error: RateLimited) -> tuple[Request, Request]:
        """Two requests instead of a rate-limited one; raises `error` where that was not asked or cannot be."""
        policy = request.on_rate_limit or self.settings.on_rate_limit
        deadline = self.settings.deadline if request.deadline is None else request.deadline
        left = None if deadline is None else deadline - error.attempts[-1].ended
        halves = split_request(request) if policy == "split" and (left is None or left > 0) else None
        if halves is None:
            raise error
        first, second = (replace(half, on_rate_limit="wait", deadline=left) for half in halves)
        return first, second
