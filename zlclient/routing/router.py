"""The router: what the client asks which arm answers, and tells how it went.

    router = Router(rollouts, open_store("sqlite"))
    decision = router.assign("support-bot", unit=user_id)         # local, a few microseconds
    ...                                                           # answer from decision.arm
    router.record(decision, reply_id, error_type=None, ttft_s=0.18)     # buffered; never blocks, never raises
    router.outcome(reply_id, "resolved", True)

A background thread writes what was recorded, fetches the state several times a second (so a kill is in force within
one), shares breakers and budgets, and judges. While the store is away the last state stays in force, nothing
advances, and records are buffered within a bound. The thread starts with the first use, and again after a fork.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from math import isfinite
from threading import Event as Flag
from threading import Lock, Thread
from weakref import ReferenceType, finalize, ref

from ..errors import InputError
from .breaker import Breaker
from .experiments import Decision
from .judge import Judge, start
from .recorder import Counts, Recorder
from .records import Exposure, Outcome, Shadow
from .rollouts import Rollout
from .shadow import ShadowBudget
from .state import State, assigner
from .sticky import MemoryBuckets, StickyBuckets
from .stores import Store
from .targeting import Attributes

FIRST_LOOK_SECONDS = 0.5
"""How long the very first assignment may wait for the state; without one the control answers."""

_log = logging.getLogger(__name__)

_NOT_THE_ARMS_FAULT = frozenset({"BadRequest", "CheckError", "ClientClosed"})


class Router:
    """Assigns, records and watches; thread-safe and fork-safe. Close it to write what is still buffered."""

    def __init__(
        self,
        rollouts: Mapping[str, Rollout],
        store: Store,
        *,
        sticky: StickyBuckets | None = None,
        clock: Callable[[], float] = time.time,
        poll: float = 0.4,
        bound: int = 20_000,
        background: bool = True,
    ) -> None:
        """`poll` is in seconds, `bound` the number of records buffered; `sticky` is for experiments that ask for it.

        Without `sticky` buckets of your own, which may outlive the process, this process remembers.

        With `background=False` no thread is started, and whoever owns the router calls `step`.
        """
        self.rollouts, self.store = dict(rollouts), store
        self._clock, self._poll, self._background = clock, poll, background
        self._sticky = sticky or MemoryBuckets()
        self._recorder = Recorder(store, bound)
        self._states: dict[str, State | None] = {}
        self._begin()

    def update(self, rollouts: Mapping[str, Rollout]) -> None:
        """Take another configuration, as after its file changed; stages and evidence stay in the store."""
        self.rollouts = dict(rollouts)
        self._configure()

    def assign(
        self,
        name: str,
        *,
        unit: str | None = None,
        attributes: Attributes | None = None,
        force: str | None = None,
        request_id: str | None = None,
    ) -> Decision:
        """Which arm answers a request that is about to be sent; `decide`, and then the arm's breaker.

        Where the breaker is open the control answers: `arm` is the control, `assigned` what was to be, and the reason
        is "breaker_open". Every decision wants one `record`, with an error type where the call failed.
        """
        decision = self.decide(name, unit=unit, attributes=attributes, force=force, request_id=request_id)
        # Who forces an arm wants to see it, open breaker or not.
        guarded = decision.variation and decision.reason != "forced"
        breaker = self._breakers.get((name, decision.arm)) if guarded else None
        if breaker is None or breaker.allow():
            return decision
        return decision._replace(arm=self._assigners[name].experiment.arms[0], variation=0, reason="breaker_open")

    def decide(
        self,
        name: str,
        *,
        unit: str | None = None,
        attributes: Attributes | None = None,
        force: str | None = None,
        request_id: str | None = None,
    ) -> Decision:
        """The arm of a unit, without a request. No I/O, but for a short wait for the state at the very first call.

        Raises:
            InputError: no such experiment, no unit, or `force` names no arm.
        """
        if not self._looked or self._pid != os.getpid():
            self._look()
        found = self._assigners.get(name)
        if found is None:
            near = get_close_matches(name, self._assigners, 1)
            known = f"did you mean {near[0]!r}?" if near else f"configured: {', '.join(self._assigners) or 'none'}"
            raise InputError(f"no experiment or rollout is called {name!r}; {known}", where="experiment")
        return found.decide(unit, attributes, force=force, request_id=request_id)

    def record(
        self,
        decision: Decision,
        reply_id: str,
        *,
        error_type: str | None = None,
        answered_by: str | None = None,
        ttft_s: float | None = None,
        tpot_s: float | None = None,
        latency_s: float | None = None,
        cost_usd: float | None = None,
        checks: Mapping[str, bool] | None = None,
    ) -> None:
        """How the assigned arm did; see `Exposure` for the fields. Buffered; an id that came before changes nothing.

        `error_type` is the name of the assigned arm's final error, also where the control then answered
        (`answered_by`).
        """
        skipped = decision.reason == "breaker_open"
        breaker = self._breakers.get((decision.experiment, decision.assigned))
        if breaker and not skipped:
            if error_type in _NOT_THE_ARMS_FAULT:
                breaker.release()
            else:
                breaker.record(error_type is None)
        if not decision.in_experiment:
            return
        exposure = Exposure.of(
            decision,
            reply_id,
            self._clock(),
            error_type=None if skipped else error_type,
            skipped=skipped,
            answered_by=decision.arm if skipped else answered_by,
            ttft_s=ttft_s,
            tpot_s=tpot_s,
            latency_s=latency_s,
            cost_usd=cost_usd,
            checks=checks or {},
        )
        self._add(exposure)

    def outcome(self, reply_id: str, metric: str, value: bool | float) -> None:
        """What became of a reply, any time later and in any process; the first report of a metric counts.

        Raises:
            InputError: the value is neither true or false nor a finite number.
        """
        if not isinstance(value, bool | int | float) or not isfinite(value):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("must be true, false or a finite number", where="value")
        self._add(Outcome(reply_id, metric, float(value), self._clock()))

    def shadow_arm(self, decision: Decision, request_id: str) -> str | None:
        """The treatment to send a copy of this request to, or None. Every arm given wants one `record_shadow`."""
        budget = self._budgets.get(decision.experiment)
        state = self._states.get(decision.experiment)
        answered_by_plan = decision.variation == 0 and decision.reason != "breaker_open"
        if budget is None or not answered_by_plan or not state or not state.live:
            return None
        return self.rollouts[decision.experiment].treatments[0] if budget.take(request_id) else None

    def record_shadow(self, shadow: Shadow) -> None:
        """The result of a copy; its cost is taken from the budget."""
        budget = self._budgets.get(shadow.experiment)
        if budget:
            budget.settle(shadow.cost_usd)
        self._add(shadow)

    def control(self, name: str) -> str:
        """The arm that answers where another one fails."""
        return self.rollouts[name].control

    def state(self, name: str) -> State | None:
        """The last known state of a rollout; None before it was seen."""
        return self._states.get(name)

    def breaker(self, name: str, arm: str) -> Breaker | None:
        """An arm's breaker, for looking at."""
        return self._breakers.get((name, arm))

    @property
    def counts(self) -> Counts:
        """What was written and dropped by this process."""
        return self._recorder.counts

    @property
    def buffered(self) -> int:
        """How many records wait to be written."""
        return len(self._recorder)

    def step(self) -> None:
        """One turn of the background work: write, fetch, share, judge. A store that is away is counted, not raised."""
        now = self._clock()
        if self._synchronise(now):
            self._judge(now)

    def flush(self) -> bool:
        """Write what is buffered, now; False if the store is away."""
        return self._recorder.attempt(self._recorder.flush)

    def close(self) -> None:
        """Stop the background thread, write what is buffered, and close the store; what comes later is dropped."""
        self._stop.set()
        self._wake.set()
        if self._thread and self._thread.is_alive():
            self._thread.join(5.0)
        self.flush()
        self._close_at_exit.detach()
        self.store.close()

    # The background work.

    def _keep_up(self, now: float) -> bool:
        return self._survive(lambda: self._synchronise(now))

    def _survive(self, work: Callable[[], object]) -> bool:
        """Do `work`; a background thread that dies of a surprise could never bring a kill again."""
        try:
            return work() is not False
        except Exception as error:  # noqa: BLE001 - see above
            self._recorder.counts.store_errors += 1
            _log.warning("rollouts could not be kept up: %s", type(error).__name__)
            return False

    def _synchronise(self, now: float) -> bool:
        by = f"{socket.gethostname()}:{os.getpid()}"
        attempt = self._recorder.attempt
        return (
            attempt(lambda: self._fetch(now, by))
            and attempt(self._recorder.flush)
            and attempt(lambda: self._recorder.report_drops(self.rollouts, now, by))
            and attempt(self._share)
        )

    def _fetch(self, now: float, by: str) -> None:
        # Fetched before anything is written: a kill must not wait for a long write.
        for name, snapshot in self.store.load(list(self.rollouts)).items():
            state = snapshot.state
            if state is None:
                start(self.store, self.rollouts[name], now, by)
                state = self.store.load([name])[name].state
            if state != self._states.get(name):
                self._states[name] = state
                self._assigners[name] = assigner(self.rollouts[name], state, self._sticky)
            for key, value in snapshot.marks.items():
                if key.startswith("breaker:") and (name, key[8:]) in self._breakers:
                    self._breakers[name, key[8:]].open_until(value)
            if name in self._budgets:
                self._budgets[name].spent_by_all(snapshot.marks.get("shadow", 0.0))
        self._ready.set()

    def _share(self) -> None:
        while self._openings:
            (name, arm), until = next(iter(self._openings.items()))
            self.store.raise_mark(name, f"breaker:{arm}", until)
            self._openings.pop((name, arm), None)
        for name, budget in self._budgets.items():
            budget.share(lambda cost, name=name: self.store.add_mark(name, "shadow", cost))

    def _due(self, now: float) -> bool:
        return any(now >= self._turns.get(name, 0.0) for name in self.rollouts)

    def _judge(self, now: float) -> None:
        for name, rollout in self.rollouts.items():
            if now >= self._turns.get(name, 0.0):
                self._turns[name] = now + rollout.interval
                if not self._survive(lambda name=name, rollout=rollout: self._judge_one(name, rollout, now)):
                    # It may have stopped halfway through a page of records: begin again from the first.
                    self._judges[name] = Judge(rollout, self.store)

    def _judge_one(self, name: str, rollout: Rollout, now: float) -> None:
        # Of many processes one judges at a time.
        if self.store.claim(name, "judge", now, now + rollout.interval):
            self._judges[name].act(now, f"judge@{socket.gethostname()}:{os.getpid()}")

    def _publisher(self, name: str, arm: str) -> Callable[[float], None]:
        openings, wake = self._openings, self._wake  # not self: a cycle would keep a forgotten router alive

        def publish(until: float) -> None:
            openings[name, arm] = until
            wake.set()

        return publish

    def _add(self, item: Exposure | Outcome | Shadow) -> None:
        if not self._running or self._pid != os.getpid():
            self._run()
        if self._stop.is_set():
            self._recorder.counts.dropped += 1
            return
        self._recorder.add(item)
        if self._recorder.pressing:
            self._wake.set()

    # The background thread.

    def _begin(self) -> None:
        """What belongs to one process: a forked child makes its own, for it inherits locks that nobody releases."""
        self._pid, self._running, self._looked = os.getpid(), False, not self._background
        self._thread: Thread | None = None
        self._starting, self._stop, self._wake, self._ready = Lock(), Flag(), Flag(), Flag()
        self._close_at_exit = finalize(self, _last_flush, self._recorder, self._pid)
        self._configure()

    def _configure(self) -> None:
        rollouts = self.rollouts
        self._openings: dict[tuple[str, str], float] = {}
        self._breakers = {
            (name, arm): Breaker(rollout.breaker, self._clock, self._publisher(name, arm))
            for name, rollout in rollouts.items()
            if rollout.breaker
            for arm in rollout.treatments
        }
        self._budgets = {name: ShadowBudget(rollout.shadow) for name, rollout in rollouts.items() if rollout.shadow}
        self._judges = {name: Judge(rollout, self.store) for name, rollout in rollouts.items()}
        self._turns: dict[str, float] = {}
        self._assigners = {
            name: assigner(rollout, self._states.get(name), self._sticky) for name, rollout in rollouts.items()
        }

    def _run(self) -> None:
        if self._pid != os.getpid():
            self._recorder.after_fork()
            self._begin()
        with self._starting:
            if self._background and not self._running:
                self._thread = Thread(
                    target=_work, args=(ref(self), self._wake, self._stop), name="zlclient-rollouts", daemon=True
                )
                with suppress(RuntimeError):  # the interpreter is ending: what is recorded now is written at its end
                    self._thread.start()
            self._running = True

    def _look(self) -> None:
        self._run()
        if self._background:
            self._ready.wait(FIRST_LOOK_SECONDS)
        self._looked = True


def _work(owner: ReferenceType[Router], wake: Flag, stop: Flag) -> None:
    """Turns until the router is closed or forgotten: only a weak reference is held between them."""
    judging: Thread | None = None
    while not stop.is_set():
        router = owner()
        if router is None:
            return
        poll, now = router._poll, router._clock()  # pyright: ignore[reportPrivateUsage]
        alive = router._keep_up(now)  # pyright: ignore[reportPrivateUsage]
        due = alive and router._due(now)  # pyright: ignore[reportPrivateUsage]
        if due and (judging is None or not judging.is_alive()):
            # Judging may read much evidence; the state must be fetched meanwhile.
            judging = Thread(target=router._judge, args=(now,), daemon=True)  # pyright: ignore[reportPrivateUsage]
            judging.start()
        del router
        wake.wait(poll)
        wake.clear()
        if not alive:
            stop.wait(poll)
    if judging:
        judging.join(5.0)


def _last_flush(recorder: Recorder, pid: int) -> None:
    if pid == os.getpid():
        recorder.attempt(recorder.flush)
