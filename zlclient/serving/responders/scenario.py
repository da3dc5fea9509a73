"""Scenarios: a list of conditions and replies that stands in for a model.

    - name: weather
      when: {text: weather, tools: [get_weather]}
      turns:
        - tool_calls: {name: get_weather, input: {city: Paris}}
        - text: It is 21 °C in Paris.
    - when: {text: hello}
      reply: Hello!

The first scenario that matches and still has a reply answers. `reply` is given every time; `replies` are given one
after another, each once; `turns` are chosen by the number of assistant turns before, so that every conversation walks
through them by itself. Nothing starts over: after the last one the request is the next scenario's, or responder's.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .base import Ask, Event, Responder
from .scenario_match import Difference, When, summary
from .scenario_reply import ScriptedFault, ScriptedReply, fingerprint

Order = Literal["always", "once", "by_turn"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Conditions and the replies to what meets them.

    order  always: the only reply, every time; once: one after another; by_turn: the one of the request's turn
    times  how many answers it gives in all; None: no bound
    origin where it was written, such as `weather.yaml:12`
    """

    name: str
    when: When
    replies: tuple[ScriptedReply, ...]
    order: Order = "always"
    times: int | None = None
    origin: str = ""

    def __str__(self) -> str:
        return f"{self.name!r} ({self.origin})" if self.origin else repr(self.name)


@dataclass(slots=True)
class _Given:
    """What a scenario gave so far: answers in all, and faults of limited times by reply and request."""

    answers: int = 0
    faults: Counter[tuple[int, str]] = field(default_factory=Counter[tuple[int, str]])


class ScenarioResponder(Responder):
    """Answers from scenarios, asked in order. More may be added while it runs."""

    name = "scenario"

    def __init__(self, scenarios: Iterable[Scenario] = ()) -> None:
        self._lock = threading.RLock()  # a reply made in Python may add scenarios
        self._entries: list[tuple[Scenario, _Given]] = []
        self.add(*scenarios)

    def add(self, *scenarios: Scenario) -> None:
        """Add scenarios behind those there are."""
        with self._lock:
            self._entries.extend((scenario, _Given()) for scenario in scenarios)

    @property
    def scenarios(self) -> Sequence[Scenario]:
        """The scenarios, in order."""
        with self._lock:
            return tuple(scenario for scenario, _ in self._entries)

    def unused(self) -> list[Scenario]:
        """The scenarios with replies that were never given."""
        with self._lock:
            return [scenario for scenario, given in self._entries if _has_left(scenario, given)]

    def respond(self, ask: Ask) -> Iterable[Event] | None:
        """The events of the first scenario that matches and has a reply left."""
        with self._lock:
            entries = list(self._entries)
        for scenario, given in entries:
            if scenario.when.differences(ask):
                continue
            with self._lock:
                chosen = _choose(scenario, given, ask)
            if chosen is not None:
                return chosen
        return None

    def explain(self, ask: Ask) -> str:
        """How the request differs from the nearest scenario."""
        with self._lock:
            entries = list(self._entries)
        lines = [f"The request: {summary(ask)}"]
        if not entries:
            return "\n".join(["There are no scenarios.", *lines])
        ranked = sorted(((scenario.when.differences(ask), scenario, given) for scenario, given in entries), key=_rank)
        differences, scenario, given = ranked[0]
        if not differences:
            return "\n".join([f"Scenario {scenario} matches, but {_why_silent(scenario, given, ask)}", *lines])
        found = (
            "The only scenario is" if len(entries) == 1 else f"None of {len(entries)} scenarios matches. The nearest is"
        )
        lines.append(f"{found} {scenario}; it differs in:")
        for difference in differences:
            lines += difference.lines()
        return "\n".join(lines)


def _choose(scenario: Scenario, given: _Given, ask: Ask) -> Iterable[Event] | None:
    """The events of the reply whose turn it is; counts it as given."""
    index = _index(scenario, given, ask)
    if index is None:
        return None
    reply = scenario.replies[index].for_ask(ask)
    if _would_loop(scenario, reply, ask):
        return None
    faulty = reply.fault is not None and _falls(reply.fault, given, (index, fingerprint(ask)))
    # A fault of limited times comes before its own reply, which therefore is still to be given.
    if not (faulty and reply.fault is not None and reply.fault.times is not None):
        given.answers += 1
    return reply.events(faulty=faulty)


def _falls(fault: ScriptedFault, given: _Given, key: tuple[int, str]) -> bool:
    """Whether the request of `key` gets the fault; counts it where the count matters."""
    hits = fault.hits(key[1], given.faults[key])
    if hits and fault.times is not None:
        given.faults[key] += 1
    return hits


def _index(scenario: Scenario, given: _Given, ask: Ask) -> int | None:
    if scenario.times is not None and given.answers >= scenario.times:
        return None
    index = {"always": 0, "once": given.answers, "by_turn": ask.turn}[scenario.order]
    return index if index < len(scenario.replies) else None


def _would_loop(scenario: Scenario, reply: ScriptedReply, ask: Ask) -> bool:
    """Whether the reply calls a tool once more after its result, for ever, though nothing says that it should."""
    return (
        scenario.order == "always"
        and scenario.times is None
        and bool(reply.tool_calls and ask.tool_results)
        and not scenario.when.expects_results
    )


def _has_left(scenario: Scenario, given: _Given) -> bool:
    if scenario.order == "once":
        return given.answers < len(scenario.replies)
    return given.answers == 0


def _why_silent(scenario: Scenario, given: _Given, ask: Ask) -> str:
    if scenario.times is not None and given.answers >= scenario.times:
        return f"it has answered {given.answers} times, as often as its `times` allows."
    if scenario.order == "once" and given.answers >= len(scenario.replies):
        return f"its {len(scenario.replies)} replies were all given."
    if scenario.order == "by_turn" and ask.turn >= len(scenario.replies):
        return f"this is turn {ask.turn} and it has replies for turns 0 to {len(scenario.replies) - 1}."
    return (
        "its reply calls a tool, and this request brings the tool's result: an agent would go round for ever. "
        "Give the steps as `turns`, or say `role: tool` to mean it."
    )


def _rank(entry: tuple[tuple[Difference, ...], Scenario, _Given]) -> float:
    return sum(1 - difference.closeness for difference in entry[0])
