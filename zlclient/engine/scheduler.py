"""Continuous batching: one thread that reads the prompts and decodes the answers of all requests of an engine.

    waiting ──admit──▶ reading ──last chunk──▶ decoding ──end──▶ gone
                          └───────────cancelled───────┴────────▶ gone

Each round it lets waiting requests in as far as the bounds allow, reads at most one chunk of the prompts, and decodes
one token of every answer; so a long prompt holds the others up for no more than a chunk. A request holds room for all
the positions that it may come to use, from admission to its end: nothing is ever preempted, which would compute its
keys and values anew, in another order of addition, and change its bits.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import InputError, ZlclientError
from .cache import PrefixCache, Reading
from .metrics import Metrics
from .model import CHUNK, LONGEST, Model
from .request import Request
from .state import Step

IDLE_SECONDS = 5.0  # without work for this long the thread ends; the next request starts another


class QueueFull(ZlclientError):
    """As many requests wait as the engine lets wait; try again later."""


class PromptTooLong(InputError):
    """The prompt and the tokens asked for are more than the engine has room for."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much at once.

    running    requests that are read or decoded
    waiting    requests that wait for that; one more is refused
    positions  tokens that all running ones may come to hold, 3,072 bytes each in the shipped models: 604 MB
    """

    running: int = 64
    waiting: int = 256
    positions: int = LONGEST


@dataclass(frozen=True, slots=True)
class Load:
    """Requests running and waiting, and the positions held for the running ones."""

    running: int
    waiting: int
    positions: int


class Scheduler:
    """Runs requests; `submit` may be called from any thread. Its own starts with the first request."""

    def __init__(
        self, model: Model, cache: PrefixCache, limits: Limits, metrics: Metrics, clock: Callable[[], float]
    ) -> None:
        self.limits, self.metrics = limits, metrics
        self._model, self._cache, self._clock = model, cache, clock
        self._waiting: deque[Request] = deque()
        self._running: dict[Request, Reading | None] = {}  # None before its first turn
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._rounds = 0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_Renewal(self))

    @property
    def load(self) -> Load:
        """At this moment."""
        with self._changed:
            return Load(len(self._running), len(self._waiting), self._held())

    def check(self, request: Request) -> None:
        """Raise PromptTooLong where `request` would never fit."""
        most = min(LONGEST, self.limits.positions)
        if request.positions > most:
            raise PromptTooLong(
                f"a prompt of {len(request.prompt)} tokens and its answer may take {request.positions} positions, "
                f"which are not within {most}"
            )

    def submit(self, request: Request) -> None:
        """Let `request` wait for its turn; its pieces come from its queue.

        Raises:
            QueueFull: too many wait already.
            PromptTooLong: it would never fit.
        """
        self.check(request)
        with self._changed:
            if len(self._waiting) >= self.limits.waiting:
                self.metrics.refused()
                raise QueueFull(f"{len(self._waiting)} requests wait already")
            request.times.arrived = self._clock()
            self._waiting.append(request)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name=f"engine-{self._model.config.generation}", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def renew(self) -> None:
        """In a forked child, which has none of the parent's threads: start empty, and end what was going on."""
        left = [*self._running, *self._waiting]
        self._waiting, self._running = deque(), {}
        self._changed, self._thread = threading.Condition(), None
        self._cache.clear()
        self.metrics.renew()
        for request in left:
            request.pieces.put(
                ZlclientError("a stream goes on only in the process that began it, and this is a fork of it")
            )

    def _run(self) -> None:
        while self._admit():
            self._round()

    def _admit(self) -> bool:
        """Wait for work and let in what there is room for; False when nothing came for a while."""
        with self._changed:
            while True:
                self._drop_cancelled()
                while self._waiting and self._fits(self._waiting[0]):
                    request = self._waiting.popleft()
                    request.times.scheduled = self._clock()
                    self._running[request] = None
                if self._running:
                    return True
                if not self._changed.wait(IDLE_SECONDS) and not self._waiting:
                    self._thread = None
                    return False

    def _fits(self, request: Request) -> bool:
        if len(self._running) >= self.limits.running:
            return False
        return self._held() + request.positions <= self.limits.positions

    def _held(self) -> int:
        return sum(request.positions for request in self._running)

    def _drop_cancelled(self) -> None:
        for request in [*self._running, *self._waiting]:
            if request.cancelled:
                self._end(request)

    def _round(self) -> None:
        self._rounds += 1
        decoding = [request for request in self._running if not request.reading]
        reading = [request for request in self._running if request.reading]
        self._read_chunk(reading)
        if decoding:
            self._decode(decoding)

    def _read_chunk(self, reading: list[Request]) -> None:
        """Read at most CHUNK tokens: a part of one prompt, or the ends of several."""
        room = CHUNK
        while reading:
            request = self._next_to_read(reading)
            size = min(request.left, CHUNK)
            if size > room:
                return
            room -= size
            self._read(request)
            if not request.reading or request not in self._running:
                reading.remove(request)

    def _next_to_read(self, reading: list[Request]) -> Request:
        """In turn the oldest, which so is never starved, and the one with the least left, which so waits little."""
        return reading[0] if self._rounds % 2 else min(reading, key=lambda request: request.left)

    def _read(self, request: Request) -> None:
        try:
            reading = self._running[request] or self._reading(request)
            step = reading.turn()
        except Exception as problem:  # noqa: BLE001 - it goes to the request's consumer
            self._finish(request, problem)
            return
        if step is not None:
            request.reading = False
            request.outcome.cached_tokens += reading.cached
            self.metrics.read(len(request.prompt))
            self._take(request, step)

    def _reading(self, request: Request) -> Reading:
        state = request.state = self._model.start(request.domain, limit=request.positions)
        reading = self._running[request] = Reading(self._model, self._cache, request.prompt, state)
        return reading

    def _decode(self, requests: list[Request]) -> None:
        states = [request.state for request in requests if request.state is not None]
        try:
            steps = self._model.decode([request.token for request in requests], states)
        except Exception as problem:  # noqa: BLE001 - it goes to the requests' consumers
            for request in requests:
                self._finish(request, problem)
            return
        for request, step in zip(requests, steps, strict=True):
            self._take(request, step)

    def _take(self, request: Request, step: Step) -> None:
        if request.cancelled:
            return
        made = len(request.outcome.tokens)
        try:
            more = request.take(step)
        except Exception as problem:  # noqa: BLE001 - a constraint's or a sampler's: the others go on
            self._finish(request, problem)
            return
        if len(request.outcome.tokens) > made:
            self.metrics.token(request.times, self._clock())
        if not more:
            self._finish(request)
        elif request.reading:
            self._running[request] = None  # another prompt

    def _finish(self, request: Request, problem: Exception | None = None) -> None:
        with self._changed:
            self._end(request, problem)

    def _end(self, request: Request, problem: Exception | None = None) -> None:
        if self._running.pop(request, None) is None:
            self._waiting.remove(request)
        if request.cancelled:
            request.outcome.finish = "cancelled"
        self.metrics.ended(request, self._clock(), failed=problem is not None)
        request.close(problem)


class _Renewal:
    """What a forked child calls; it does not keep the scheduler alive."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = weakref.ref(scheduler)

    def __call__(self) -> None:
        scheduler = self._scheduler()
        if scheduler is not None:
            scheduler.renew()
