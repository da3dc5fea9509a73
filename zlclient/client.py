"""The client: chat, stream and their async twins over one corridor.

with zlclient.Client(model="auto", timeout=5) as client:
    reply = client.chat("2024年Q1特斯拉交付量是多少？", domain="finance")
"""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from . import corridor
from .checking.checks import again, check, left_of, settled, wants_another
from .errors import CheckError, RateLimited, SendError
from .providers import make_provider
from .reply import Adjustment, Reply, joined
from .request import Request
from .routing.traffic import Traffic
from .sending.clock import Clock, SystemClock
from .sending.plan import Plan, Target
from .sending.sender import AsyncSender, Sender
from .settings import Settings
from .shaping.shorten import split_request
from .streams import AsyncStream, Stream

if TYPE_CHECKING:
    from .answering.reading import Reading
    from .prepared import Prepared
    from .providers.base import Provider
    from .routing.traffic import Trial
    from .sending.call import Call
    from .sending.sender import AsyncOpened, Opened

log = logging.getLogger("zlclient")


class ModelRetirementWarning(UserWarning):
    """A model in use retires, or has retired, on the date given."""


class _Base:
    """What both clients share: settings, adapters, what was learned, and every step that is not I/O."""

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
        self._http_client = http_client
        self._providers: dict[str, Provider] = {}
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
        began = self._clock.monotonic()
        first = self._prepare(request, route)
        for note in first.adjustments:
            if note.rule == "lifecycle":
                warnings.warn(note.reason, ModelRetirementWarning, stacklevel=5)
        routes = self.settings.fallback if request.fallback is None else request.fallback
        fallbacks = [partial(self._fallback, request, name) for name in routes]
        return Plan(began, self._target(first), fallbacks, self._amend)

    def _target(self, prepared: Prepared) -> Target:
        return Target(prepared, self._provider(prepared), corridor.wire_of(prepared.route.provider.kind))

    def _fallback(self, request: Request, route: str) -> Target | None:
        """The request for a fallback route, or None where its window is too small for the prompt."""
        prepared = self._prepare(request, route)
        if not corridor.fits(prepared):
            log.info("fallback skipped", extra={"zl_route": route, "zl_reason": "context window too small"})
            return None
        asked = request.model or self.settings.model
        note = Adjustment("route", "fallback", asked, prepared.route.label, "the route before it was unavailable")
        return self._target(replace(prepared, adjustments=(*prepared.adjustments, note)))

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
        halves = split_request(request) if policy == "split" else None
        if halves is None:
            raise error
        first, second = halves
        return replace(first, on_rate_limit="wait"), replace(second, on_rate_limit="wait")

    # The two drivers. Each pair differs only in what it awaits.

    def _chat(self, request: Request) -> Reply:
        if request.experiment is None:
            return self._answer(request)
        trial = self._traffic.begin(request)
        try:
            reply = self._answer(request, trial.arm)
        except SendError as error:
            control = trial.control_request(error)
            if control is None:
                raise
            reply = self._answer(control, trial.control)
        except CheckError as error:
            trial.failed(error)
            raise
        reply = trial.answered(reply)
        self._send_copy(trial, reply)
        return reply

    async def _achat(self, request: Request) -> Reply:
        if request.experiment is None:
            return await self._aanswer(request)
        trial = self._traffic.begin(request)
        try:
            reply = await self._aanswer(request, trial.arm)
        except SendError as error:
            control = trial.control_request(error)
            if control is None:
                raise
            reply = await self._aanswer(control, trial.control)
        except CheckError as error:
            trial.failed(error)
            raise
        reply = trial.answered(reply)
        self._asend_copy(trial, reply)
        return reply

    def _send_copy(self, trial: Trial, reply: Reply) -> None:
        """Send a shadow copy to the treatment, if one is due; nobody waits for it."""
        arm = trial.shadow_arm()
        if arm is not None:
            threading.Thread(target=self._shadow, args=(trial, arm, reply), daemon=True).start()

    def _asend_copy(self, trial: Trial, reply: Reply) -> None:
        arm = trial.shadow_arm()
        if arm is not None:
            task = asyncio.create_task(self._ashadow(trial, arm, reply))
            self._shadows.add(task)  # the loop itself keeps only a weak reference
            task.add_done_callback(self._shadows.discard)

    def _shadow(self, trial: Trial, arm: str, reply: Reply) -> None:
        try:
            trial.shadowed(reply, self._answer(trial.request, arm))
        except SendError as error:
            trial.shadowed(reply, error)

    async def _ashadow(self, trial: Trial, arm: str, reply: Reply) -> None:
        try:
            trial.shadowed(reply, await self._aanswer(trial.request, arm))
        except SendError as error:
            trial.shadowed(reply, error)

    def _answer(self, request: Request, route: str | None = None) -> Reply:
        """The checked answer, by `route` instead of the request's own where an experiment chose one."""
        if request.document is not None:
            from .answering.driving import answer_over

            return answer_over(self._reading(by_route(request, route)), self._answer)
        try:
            opened = self._sender.send(self._plan(request, route), whole=True)
        except RateLimited as error:
            first, second = self._halved(request, error)
            return joined(self._answer(first, route), self._answer(second, route), error)
        reply = self._finish(opened.call, request)
        if wants_another(reply, request, self.settings):
            opened = self._sender.send(self._plan(left_of(request, self.settings, reply), route), whole=True)
            reply = again(reply, self._finish(opened.call, request))
        return settled(reply, request, self.settings)

    async def _aanswer(self, request: Request, route: str | None = None) -> Reply:
        if request.document is not None:
            from .answering.driving import aanswer_over

            return await aanswer_over(self._reading(by_route(request, route)), self._aanswer)
        try:
            opened = await self._async_sender.send(self._plan(request, route), whole=True)
        except RateLimited as error:
            first, second = self._halved(request, error)
            return joined(await self._aanswer(first, route), await self._aanswer(second, route), error)
        reply = self._finish(opened.call, request)
        if wants_another(reply, request, self.settings):
            opened = await self._async_sender.send(
                self._plan(left_of(request, self.settings, reply), route), whole=True
            )
            reply = again(reply, self._finish(opened.call, request))
        return settled(reply, request, self.settings)

    def _stream(self, request: Request) -> Stream:
        if request.experiment is None:
            return Stream(*self._open(request))
        trial = self._traffic.begin(request)
        try:
            opened, finish = self._open(request, trial.arm)
        except SendError as error:
            control = trial.control_request(error)
            if control is None:
                raise
            opened, finish = self._open(control, trial.control)

        def finish_trial(call: Call) -> Reply:
            reply = trial.answered(finish(call))
            self._send_copy(trial, reply)
            return reply

        return Stream(opened, finish_trial, trial.failed)

    async def _astream(self, request: Request) -> AsyncStream:
        if request.experiment is None:
            return AsyncStream(*await self._aopen(request))
        trial = self._traffic.begin(request)
        try:
            opened, finish = await self._aopen(request, trial.arm)
        except SendError as error:
            control = trial.control_request(error)
            if control is None:
                raise
            opened, finish = await self._aopen(control, trial.control)

        def finish_trial(call: Call) -> Reply:
            reply = trial.answered(finish(call))
            self._asend_copy(trial, reply)
            return reply

        return AsyncStream(opened, finish_trial, trial.failed)

    def _open(self, request: Request, route: str | None = None) -> tuple[Opened, Callable[[Call], Reply]]:
        """The answer under way, and what makes a reply of the call it comes from."""
        if request.document is not None:
            from .answering.driving import open_over

            return open_over(self._reading(by_route(request, route)), self._answer, self._open)
        opened = self._sender.send(self._plan(request, route), whole=False)
        return opened, partial(self._finish_stream, request=request)

    async def _aopen(self, request: Request, route: str | None = None) -> tuple[AsyncOpened, Callable[[Call], Reply]]:
        """As `_open`."""
        if request.document is not None:
            from .answering.driving import aopen_over

            return await aopen_over(self._reading(by_route(request, route)), self._aanswer, self._aopen)
        opened = await self._async_sender.send(self._plan(request, route), whole=False)
        return opened, partial(self._finish_stream, request=request)

    def outcome(self, reply: Reply | str, metric: str, value: bool | float) -> None:
        """Report what became of a reply of an experiment, any time later; the first report of a metric counts.

        Raises:
            InputError: the value is neither true or false nor a finite number.
        """
        self._traffic.outcome(reply, metric, value)

    def close(self) -> None:
        """Close the connections of this process, and write what experiments have recorded."""
        for provider in self._providers.values():
            provider.close()
        self._traffic.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop, and of this process."""
        for provider in self._providers.values():
            await provider.aclose()
        await asyncio.to_thread(self._traffic.close)


def by_route(request: Request, route: str | None) -> Request:
    """`request` as one that asks for `route`."""
    return request if route is None else replace(request, experiment=None, model=route, provider=None)


class Client(_Base):
    """A thread-safe client. Its async methods work too, on any event loop."""

    def chat(self, prompt: Any, /, **options: Any) -> Reply:
        """Ask and wait for the whole, checked answer. Options are those of `Request`.

        Raises:
            InputError: the call is wrong; nothing was sent.
            SendError: every attempt on every route failed.
            CheckError: a check with policy "raise" failed.
        """
        return self._chat(Request.of(prompt, **options))

    def stream(self, prompt: Any, /, **options: Any) -> Stream:
        """Ask, and read the answer as it arrives. Options and errors as in `chat`; returns at the first content."""
        return self._stream(Request.of(prompt, **options))

    async def achat(self, prompt: Any, /, **options: Any) -> Reply:
        """As `chat`, for asyncio."""
        return await self._achat(Request.of(prompt, **options))

    async def astream(self, prompt: Any, /, **options: Any) -> AsyncStream:
        """As `stream`, for asyncio."""
        return await self._astream(Request.of(prompt, **options))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class AsyncClient(_Base):
    """The client for asyncio. One object serves any number of event loops, each with connections of its own."""

    async def chat(self, prompt: Any, /, **options: Any) -> Reply:
        """Ask and wait for the whole, checked answer; see `Client.chat`."""
        return await self._achat(Request.of(prompt, **options))

    async def stream(self, prompt: Any, /, **options: Any) -> AsyncStream:
        """Ask, and read the answer as it arrives; see `Client.stream`."""
        return await self._astream(Request.of(prompt, **options))

    achat = chat
    astream = stream

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.aclose()
