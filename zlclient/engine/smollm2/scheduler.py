"""One thread that computes the tokens of all answers, in turns: a chunk of a prompt, or a token, of each in its turn.

So a long prompt or a slow reader holds nobody up for longer than a chunk, a decoder is never used by two threads, and a
thread that waits for a token never keeps another from computing it. The decoder is loaded there, by the first job.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Protocol

from ..departure import CURRENT
from ..metrics import Metrics
from ..request import Times
from ..sampler import Sampling
from ..scheduler import Limits, Load, QueueFull
from .outcome import Outcome
from .prefix import PrefixStats

WAITING = 64  # requests; one more is refused
NOTHING_YET = -1  # is no token
SILENCE = 1.0  # seconds until a reader is told that there is nothing yet


class Decoder(Protocol):
    """What computes tokens: `Llama` or `LlamaCpp`; `at_once` sequences in turns."""

    at_once: int

    def tokens(self, prompt: Sequence[int], sampling: Sampling, room: int, outcome: Outcome) -> Generator[int | None]:
        """Up to `room` tokens that follow `prompt`, with a None for each part of the prompt read before.

        Sets `cached_tokens` of `outcome`.
        """
        ...


class Job:
    """An answer on its way. `given` is where its reader waits: tokens, then None or an exception.

    Any thread may set `cancelled`; the rest is the scheduler's.
    """

    def __init__(self, prompt: Sequence[int], sampling: Sampling, room: int) -> None:
        self.prompt, self.sampling, self.room = prompt, sampling, room
        # The scheduler's own account: its reader may be some tokens behind, or stop before.
        self.outcome = Outcome(finish="length", prompt_tokens=len(prompt))
        self.given: SimpleQueue[int | BaseException | None] = SimpleQueue()
        self.times = Times()
        self.cancelled = False
        self.source: Generator[int | None] | None = None

    @property
    def positions(self) -> int:
        """How many it may come to hold."""
        return len(self.prompt) + self.room

    def give_up(self) -> None:
        """From any thread: its reader stops waiting, and the scheduler drops it in its next turn."""
        self.cancelled = True
        self.given.put(None)


class Scheduler:
    """Runs jobs; `tokens` may be called from any thread. Its own thread lives while there is work.

    Args:
        load: makes the decoder.
        context: how many tokens a sequence may have.
        ends: the tokens that end an answer.
        metrics: where it is counted.
        clock: seconds from some moment on.
    """

    def __init__(
        self, load: Callable[[], Decoder], context: int, ends: frozenset[int], metrics: Metrics,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:  # fmt: skip
        # numpy's decoder holds 46,080 bytes for each position of SmolLM2: 755 MB at most.
        self.limits = Limits(running=1, waiting=WAITING, positions=2 * context)
        self.metrics = metrics
        self._load: Callable[[], Decoder] | None = load
        self._ends, self._clock = ends, clock
        self._decoder: Decoder | None = None
        self._stats = PrefixStats()
        self._waiting: deque[Job] = deque()
        self._running: list[Job] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def load(self) -> Load:
        """At this moment."""
        with self._lock:
            return Load(len(self._running), len(self._waiting), self._held())

    @property
    def stats(self) -> PrefixStats:
        """Of all prompts read so far."""
        return self._stats

    def tokens(self, prompt: Sequence[int], sampling: Sampling, room: int, outcome: Outcome) -> Generator[int | None]:
        """Up to `room` tokens that follow `prompt`, waiting for each; closing the iterator gives the rest up.

        The first is a None, once the job waits for its turn, and so is what comes after each second without a token.

        `outcome` is filled in as they are read; `finish` is the reader's to set where it stops for its own reasons.

        Raises:
            QueueFull: when first read, where too many wait already.
        """
        job = Job(prompt, sampling, room)
        departure = CURRENT.get()
        if departure is not None:
            departure.then(job.give_up)
        self._submit(job)
        outcome.finish = "cancelled"
        try:
            yield None
            while (got := _next(job)) is not None:
                if isinstance(got, BaseException):
                    raise got
                if got == NOTHING_YET:
                    yield None
                    continue
                outcome.tokens.append(got)
                outcome.cached_tokens = job.outcome.cached_tokens
                yield got
            if not job.cancelled:
                outcome.finish = job.outcome.finish
        finally:
            job.outcome.finish = outcome.finish
            job.cancelled = True

    def _submit(self, job: Job) -> None:
        with self._lock:
            if len(self._waiting) >= self.limits.waiting:
                self.metrics.refused()
                raise QueueFull(f"{len(self._waiting)} requests wait already")
            job.times.arrived = self._clock()
            self._waiting.append(job)
            # A forked child has none of its parent's threads.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="zlclient-smollm2", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        try:
            decoder = self._loaded()
        except Exception as problem:  # noqa: BLE001 - whatever it is, it is for those who wait
            self._give_all_up(problem)
            return
        self.limits = replace(self.limits, running=decoder.at_once)
        while True:
            with self._lock:
                self._admit(decoder)
                if not self._running:
                    self._thread = None
                    return
                turn = list(self._running)
            for job in turn:
                self._step(job)

    def _loaded(self) -> Decoder:
        if self._decoder is None:
            assert self._load is not None
            self._decoder = self._load()
            self._load = None  # and with it the file it reads
        return self._decoder

    def _give_all_up(self, problem: Exception) -> None:
        with self._lock:
            jobs, self._waiting, self._thread = self._waiting, deque(), None
        for job in jobs:
            self.metrics.ended(job, self._clock(), failed=True)
            job.given.put(problem)

    def _admit(self, decoder: Decoder) -> None:
        while self._waiting and len(self._running) < self.limits.running:
            job = self._waiting[0]
            if self._held() + job.positions > self.limits.positions:
                return
            self._running.append(self._waiting.popleft())
            job.times.scheduled = self._clock()
            job.source = decoder.tokens(job.prompt, job.sampling, job.room, job.outcome)

    def _held(self) -> int:
        return sum(job.positions for job in self._running)

    def _step(self, job: Job) -> None:
        assert job.source is not None
        try:
            token = next(job.source) if not job.cancelled else None
        except StopIteration:
            self._end(job)
        except Exception as problem:  # noqa: BLE001 - whatever it is, it is for whoever waits for the answer
            self._end(job, problem)
        else:
            if token is not None:
                self._give(job, token)
            if job.cancelled or token in self._ends:
                self._end(job)

    def _give(self, job: Job, token: int) -> None:
        if not job.outcome.tokens:
            self.metrics.read(len(job.prompt))
            before = self._stats
            self._stats = PrefixStats(before.queries + len(job.prompt), before.hits + job.outcome.cached_tokens)
        self.metrics.token(job.times, self._clock())
        job.outcome.tokens.append(token)
        if token in self._ends:
            job.outcome.finish = "end"
        job.given.put(token)

    def _end(self, job: Job, problem: BaseException | None = None) -> None:
        if job.source is not None:
            job.source.close()
        with self._lock:
            self._running.remove(job)
        self.metrics.ended(job, self._clock(), failed=problem is not None)
        job.given.put(problem)


def _next(job: Job) -> int | BaseException | None:
    try:
        return job.given.get(timeout=SILENCE)
    except Empty:
        return NOTHING_YET
