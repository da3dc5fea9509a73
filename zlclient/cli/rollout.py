"""`zlclient rollout`: where a rollout stands, and moving it by hand."""

from __future__ import annotations

import json
import socket
import time
from datetime import UTC, datetime
from getpass import getuser
from typing import TYPE_CHECKING, Any, cast

from ..errors import InputError
from ..routing.configured import configure
from ..routing.judge import Judge, Judgement, change_state, start
from ..routing.rollouts import Rollout
from ..routing.state import Action, State, possible_actions
from ..routing.stores import Store
from ..settings import Settings

if TYPE_CHECKING:
    import argparse

_ACTIONS = {
    "advance": "go to the next stage, if the verdict is PROMOTE (or --force)",
    "hold": "stop advancing; traffic and evidence go on, and it is still rolled back if it fails",
    "resume": "end a hold",
    "rollback": "send everything to the control",
    "kill": "send everything to the control at once, in every process within a second",
    "restart": "begin again at the first stage, after a rollback or a kill",
}


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser("rollout", help="show staged rollouts, and advance, hold, roll back or kill them")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    status = actions.add_parser("status", help="the verdict, with every gate's evidence")
    status.add_argument("name", nargs="?", metavar="NAME", help="all rollouts without one")
    status.add_argument("--json", action="store_true")
    status.set_defaults(run=_status)
    history = actions.add_parser("history", help="what was done, by whom and why")
    history.add_argument("name", metavar="NAME")
    history.add_argument("--json", action="store_true")
    history.set_defaults(run=_history)
    for action, summary in _ACTIONS.items():
        command = actions.add_parser(action, help=summary)
        command.add_argument("name", metavar="NAME")
        command.add_argument("--reason", default="by hand", help="for the history")
        if action == "advance":
            command.add_argument("--force", action="store_true", help="whatever the verdict is")
        command.set_defaults(run=_act, action=action)


def opened(name: str | None = None) -> tuple[dict[str, Rollout], Store]:
    """The configured rollouts, or the one called `name`, and their store.

    Raises:
        InputError: no rollout is called `name`.
    """
    settings = Settings.load()
    rollouts, store = configure(settings.rollouts, settings.store, settings.origins)
    if name is None:
        return rollouts, store
    if name not in rollouts:
        known = ", ".join(rollouts) or "none; add [tool.zlclient.rollouts.NAME] to pyproject.toml"
        raise InputError(f"no rollout is called {name!r}; configured: {known}", where="NAME")
    return {name: rollouts[name]}, store


def _status(args: argparse.Namespace) -> int:
    from ..routing.report import as_json, summarise

    rollouts, store = opened(args.name)
    now = time.time()
    if args.json:
        found = {name: as_json(summarise(rollout, store, now)) for name, rollout in rollouts.items()}
        print(json.dumps(found[args.name] if args.name else found, ensure_ascii=False, indent=2))
        return 0
    if not rollouts:
        print("no rollouts are configured; add [tool.zlclient.rollouts.NAME] to pyproject.toml")
    for name, rollout in rollouts.items():
        print(f"{name}: " + "\n".join(status_lines(rollout, Judge(rollout, store).look(now))))
    return 0


def status_lines(rollout: Rollout, judgement: Judgement) -> list[str]:
    """The sentence, where it stands, and a line for every gate."""
    state, tally, verdict = judgement
    lines = [verdict.sentence]
    if state:
        since = datetime.fromtimestamp(state.started, UTC).strftime("%Y-%m-%d %H:%M UTC")
        stages = ", ".join(
            f"[{stage * 100:g} %]" if number == state.stage and state.live else f"{stage * 100:g} %"
            for number, stage in enumerate(rollout.stages)
        )
        lines.append(f"  {state.status.replace('_', ' ')} since {since}; stages {stages or 'none, fixed shares'}")
        lines.append(f"  possible: {', '.join(possible_actions(state))}")
    for arm, found in tally.arms.items():
        lines.append(f"  {arm}: {found.requests:,} requests, {found.errors.total():,} errors")
    for result in verdict.gates:
        mark = {"shown": "+", "refuted": "!"}.get(result.standing, " ")
        more = f"; {result.missing:,} more requests" if result.missing else ""
        lines.append(f"  {mark} {result.describe()}{more}")
    return lines


def _history(args: argparse.Namespace) -> int:
    _, store = opened(args.name)
    events = store.history(args.name)
    if args.json:
        print(json.dumps([json.loads(event.dump()) for event in events], ensure_ascii=False, indent=2))
        return 0
    for event in events:
        at = datetime.fromtimestamp(event.at, UTC).strftime("%Y-%m-%d %H:%M:%S")
        print(f"{at}  {event.action:<9} stage {event.stage + 1}  {event.by}  {event.reason}")
    return 0


def _act(args: argparse.Namespace) -> int:
    rollouts, store = opened(args.name)
    rollout, now, by = rollouts[args.name], time.time(), f"{_user()}@{socket.gethostname()}"
    action = cast("Action", args.action)
    started = start(store, rollout, now, by)
    judgement = Judge(rollout, store).look(now)
    state = judgement.state
    assert state is not None, "it was started above"
    if action == "advance":
        if started:
            return _say(rollout, state)
        if judgement.verdict.decision != "PROMOTE" and not args.force:
            raise InputError(f"{judgement.verdict.sentence}. --force advances all the same", where="advance")
    after = change_state(store, rollout, state, action, now, by, args.reason)
    if after is None:
        raise InputError("somebody else moved it at the same moment; look at its status and try again", where=action)
    return _say(rollout, after)


def _say(rollout: Rollout, state: State) -> int:
    share = f" at {rollout.stages[state.stage] * 100:g} %" if rollout.stages and state.live else ""
    where = "" if state.live else f"; everything goes to {rollout.control}"
    print(f"{rollout.name} is {state.status.replace('_', ' ')}{share}{where}")
    return 0


def _user() -> str:
    try:
        return getuser()
    except (KeyError, OSError):  # a container without a user's name
        return "unknown"
