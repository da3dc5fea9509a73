"""The client: chat, stream and their async twins over one corridor.

with zlclient.Client(model="auto", timeout=5) as client:
    reply = client.chat("2024年Q1特斯拉交付量是多少？", domain="finance")
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from .checking.checks import again, kept, left_of, settled, wants_another
from .core import Core, ModelRetirementWarning
from .errors import CheckError, RateLimited, SendError
from .reply import Reply, after_half, joined
from .request import Request
from .streams import AsyncStream, Stream

if TYPE_CHECKING:
    from .routing.traffic import Trial
    from .sending.call import Call
    from .sending.sender import AsyncOpened, Opened

__all__ = ["AsyncClient", "Client", "ModelRetirementWarning"]


class _Drivers(Core):
    """The two drivers of a call. Each pair of methods differs only in what it awaits."""

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
            with trial.falling_back():
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
            with trial.falling_back():
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
            reply = self._once(request, route)
        except RateLimited as error:
            first, second = self._halved(request, error)
            one = self._answer(first, route)
            try:
                return joined(one, self._answer(left_of(second, self.settings, one), route), error)
            except SendError as late:
                raise after_half(late, one, error) from late.__cause__
        if wants_another(reply, request, self.settings):
            try:
                reply = again(reply, self._once(left_of(request, self.settings, reply), route))
            except SendError as error:
                reply = kept(reply, error)
        return settled(reply, request, self.settings)

    async def _aanswer(self, request: Request, route: str | None = None) -> Reply:
        if request.document is not None:
            from .answering.driving import aanswer_over

            return await aanswer_over(self._reading(by_route(request, route)), self._aanswer)
        try:
            reply = await self._aonce(request, route)
        except RateLimited as error:
            first, second = self._halved(request, error)
            one = await self._aanswer(first, route)
            try:
                return joined(one, await self._aanswer(left_of(second, self.settings, one), route), error)
            except SendError as late:
                raise after_half(late, one, error) from late.__cause__
        if wants_another(reply, request, self.settings):
            try:
                reply = again(reply, await self._aonce(left_of(request, self.settings, reply), route))
            except SendError as error:
                reply = kept(reply, error)
        return settled(reply, request, self.settings)

    def _once(self, request: Request, route: str | None) -> Reply:
        return self._finish(self._sender.send(self._plan(request, route), whole=True).call, request)

    async def _aonce(self, request: Request, route: str | None) -> Reply:
        opened = await self._async_sender.send(self._plan(request, route), whole=True)
        return self._finish(opened.call, request)

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
            with trial.falling_back():
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
            with trial.falling_back():
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
        self._closed = True
        for provider in self._providers.values():
            provider.close()
        self._traffic.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop, and of this process."""
        self._closed = True
        for provider in self._providers.values():
            await provider.aclose()
        await asyncio.to_thread(self._traffic.close)


def by_route(request: Request, route: str | None) -> Request:
    """`request` as one that asks for `route`."""
    return request if route is None else replace(request, experiment=None, model=route, provider=None)


class Client(_Drivers):
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


class AsyncClient(_Drivers):
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
