"""Judging a rollout that runs: read the evidence, decide, and move the state, once for all processes."""

from __future__ import annotations

from typing import NamedTuple

from .rollouts import Rollout
from .state import Action, Event, State, first_state, move
from .stores import Store
from .tally import Tally
from .verdict import Verdict, judge


class Judgement(NamedTuple):
    """A rollout's state and tally at one moment, and the verdict on them."""

    state: State | None
    tally: Tally
    verdict: Verdict


class Judge:
    """Keeps a tally between judgements, so each reads only what is new. Not thread-safe: one thread judges."""

    def __init__(self, rollout: Rollout, store: Store) -> None:
        self._rollout, self._store = rollout, store
        self._tally = Tally(rollout)

    def look(self, now: float) -> Judgement:
        """The verdict at `now`, changing nothing."""
        state = self._store.load([self._rollout.name])[self._rollout.name].state
        if state and state.since != self._tally.since:
            self._tally = Tally(self._rollout, state.since)
        self._tally.read(self._store)
        return Judgement(state, self._tally, judge(self._rollout, state, self._tally, now))

    def act(self, now: float, by: str) -> Judgement:
        """Look, and carry the verdict out: a rollback always, a promotion only where the rollout advances by itself.

        Of several processes one claims the turn; the others only look at the claim. A held rollout is not promoted,
        but is rolled back all the same.
        """
        judgement = self.look(now)
        state, _, verdict = judgement
        if state is None or not state.live:
            return judgement
        if verdict.decision == "ROLLBACK":
            change_state(self._store, self._rollout, state, "rollback", now, by, verdict.sentence)
        elif verdict.decision == "PROMOTE" and self._advances(state):
            change_state(self._store, self._rollout, state, "advance", now, by, verdict.sentence)
        return judgement

    def _advances(self, state: State) -> bool:
        return self._rollout.advance == "auto" and state.status == "running" and bool(self._rollout.stages)


def start(store: Store, rollout: Rollout, now: float, by: str) -> bool:
    """Put a rollout that has no state yet at its first stage; True for the one process that did."""
    state = first_state(now)
    first = f"{rollout.stages[0] * 100:g} %" if rollout.stages else "fixed shares"
    return store.swap(rollout.name, 0, state, Event(rollout.name, 1, "start", 0, now, by, first))


def change_state(
    store: Store, rollout: Rollout, state: State, action: Action, now: float, by: str, reason: str
) -> State | None:
    """Move from `state`; the new state, or None if another process moved first.

    Raises:
        InputError: the action makes no sense from this state.
    """
    after = move(rollout, state, action, now)
    event = Event(rollout.name, after.epoch, action, after.stage, now, by, reason)
    return after if store.swap(rollout.name, state.epoch, after, event) else None
