"""Where a rollout stands, and the moves it can make.

The state is small and immutable. Every change is a new state with the next `epoch`; a store takes it only from whoever
has seen the one before, so of many processes that judge at once exactly one moves the rollout.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Literal

from ..errors import InputError
from .experiments import Assigner, Reason
from .rollouts import Rollout
from .sticky import StickyBuckets

Status = Literal["running", "held", "completed", "rolled_back", "killed"]
Action = Literal["start", "advance", "hold", "resume", "rollback", "kill", "restart", "note"]


@dataclass(frozen=True, slots=True)
class State:
    """`since` is the first epoch with the present traffic: evidence counts from there. `started` is its wall time."""

    status: Status
    stage: int
    epoch: int
    since: int
    started: float

    @property
    def live(self) -> bool:
        """Whether the treatments get traffic."""
        return self.status in {"running", "held", "completed"}

    def dump(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @staticmethod
    def parse(text: str) -> State:
        """From `dump`."""
        return State(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a rollout's history: what was done, by whom, and why."""

    name: str
    epoch: int
    action: Action
    stage: int
    at: float
    by: str
    reason: str

    def dump(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self), separators=(",", ":"), ensure_ascii=False)

    @staticmethod
    def parse(text: str) -> Event:
        """From `dump`."""
        return Event(**json.loads(text))


def first_state(now: float) -> State:
    """The state a rollout begins with: running, at its first stage."""
    return State("running", 0, 1, 1, now)


def move(rollout: Rollout, state: State, action: Action, now: float) -> State:
    """The state after `action`.

    Traffic changes with advance, rollback, kill and restart, and evidence starts anew with it.

    Raises:
        InputError: the action makes no sense from this state; the message says which do.
    """
    last = len(rollout.stages) - 1
    fresh = replace(state, epoch=state.epoch + 1, since=state.epoch + 1, started=now)
    kept = replace(state, epoch=state.epoch + 1)
    match action:
        case "kill" if state.status != "killed":
            return replace(fresh, status="killed")
        case "rollback" if state.live:
            return replace(fresh, status="rolled_back")
        case "hold" if state.status == "running":
            return replace(kept, status="held")
        case "resume" if state.status == "held":
            return replace(kept, status="running")
        case "advance" if state.status in {"running", "held"} and state.stage < last:
            return replace(fresh, status="running", stage=state.stage + 1)
        case "advance" if state.status in {"running", "held"}:
            return replace(kept, status="completed")
        case "restart" if not state.live:
            return replace(fresh, status="running", stage=0)
        case _:
            raise InputError(
                f"{rollout.name!r} is {state.status}: {action} is not possible; "
                f"possible: {', '.join(possible_actions(state))}",
                where=action,
            )


def assigner(rollout: Rollout, state: State | None, sticky: StickyBuckets | None = None) -> Assigner:
    """Who gets which arm in `state`.

    Without a state, or with one of a configuration that had more stages, everything goes to the control: it is safe.
    """
    if state is None or state.stage >= max(len(rollout.stages), 1):
        return Assigner(rollout.experiment, rollout.cells(0), halted="no_state")
    halted: Reason | None = None
    if not state.live:
        halted = "killed" if state.status == "killed" else "rolled_back"
    cells = rollout.cells(state.stage)
    return Assigner(rollout.experiment, cells, stage=state.stage, epoch=state.since, halted=halted, sticky=sticky)


def possible_actions(state: State) -> tuple[Action, ...]:
    """What can be done from here."""
    match state.status:
        case "running":
            return ("advance", "hold", "rollback", "kill")
        case "held":
            return ("advance", "resume", "rollback", "kill")
        case "completed":
            return ("rollback", "kill")
        case "rolled_back":
            return ("restart", "kill")
        case "killed":
            return ("restart",)
