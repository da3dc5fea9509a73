"""What arrived at the server, and assertions on it.

    zl_requests.assert_called_once(text="weather", headers={"anthropic-version": "2026-10-21"})
    zl_requests.assert_order({"tools": ["get_weather"]}, {"role": "tool"})
    assert zl_requests.last.body["max_tokens"] == 300

Conditions are those of a scenario's `when`. Every HTTP request counts, so a retry counts too.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast, overload

from ..serving.responders.base import Ask, Event, Responder, Wire
from ..serving.responders.scenario_file import read_when
from ..serving.responders.scenario_match import Difference, When, summary
from ..serving.server import LocalServer
from ..serving.wire import WireRequest

_LISTED = 20  # requests that a failed assertion lists


@dataclass(frozen=True)
class Received:
    """One request: `number` counts from 1; `status` and `responder` tell how it was answered."""

    number: int
    request: WireRequest
    status: int
    responder: str
    known_ask: Ask | None = None

    @property
    def method(self) -> str:
        """GET, POST or DELETE."""
        return self.request.method

    @property
    def path(self) -> str:
        """The path, without the query."""
        return self.request.path

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, by lower-case name."""
        return self.request.headers

    @cached_property
    def body(self) -> Any:
        """The decoded JSON body, the bytes of any other, None where there is none."""
        if not self.request.body:
            return None
        try:
            return json.loads(self.request.body)
        except ValueError:
            return self.request.body

    @cached_property
    def ask(self) -> Ask:
        """The request in the form that is the same for every API: turns, system, tools, …"""
        return self.known_ask or read_ask(self.request, self.body)

    @property
    def model(self) -> str:
        """The model asked for."""
        return self.ask.model

    @property
    def text(self) -> str:
        """The text of the last user turn that has any."""
        return self.ask.question

    @property
    def system(self) -> str:
        """The system prompt."""
        return self.ask.system

    @property
    def tools(self) -> list[str]:
        """The names of the tools offered."""
        return [tool.name for tool in self.ask.tools]

    @property
    def turn(self) -> int:
        """How many assistant turns came before."""
        return self.ask.turn

    def __str__(self) -> str:
        what = summary(self.ask) if self.ask.model else f"{self.method} {self.path}"
        return f"{self.number}. {what} → {self.status}"


class Requests(Sequence[Received]):
    """The requests that arrived, in order."""

    def __init__(self) -> None:
        self._received: list[Received] = []
        self._lock = threading.Lock()

    def add(self, request: WireRequest, status: int, responder: str, ask: Ask | None) -> None:
        """Note a request that was answered."""
        with self._lock:
            self._received.append(Received(len(self._received) + 1, request, status, responder, ask))

    @overload
    def __getitem__(self, index: int) -> Received: ...
    @overload
    def __getitem__(self, index: slice) -> list[Received]: ...
    def __getitem__(self, index: int | slice) -> Received | list[Received]:
        return self._received[index]

    def __len__(self) -> int:
        return len(self._received)

    def __iter__(self) -> Iterator[Received]:
        return iter(list(self._received))

    @property
    def last(self) -> Received:
        """The latest request. Raises AssertionError when there is none."""
        if not self._received:
            raise AssertionError("no request has arrived")
        return self._received[-1]

    def matching(self, **conditions: Any) -> list[Received]:
        """The requests that meet the conditions. Raises ConfigError for conditions that there are not."""
        when = read_when(conditions)
        return [received for received in self if not when.differences(received.ask)]

    def assert_called(self, **conditions: Any) -> list[Received]:
        """At least one request meets the conditions; returns those that do."""
        found = self.matching(**conditions)
        if not found:
            raise AssertionError(self._report("at least 1 request", conditions, found))
        return found

    def assert_called_once(self, **conditions: Any) -> Received:
        """Exactly one request meets the conditions; returns it."""
        return self.assert_count(1, **conditions)[0]

    def assert_not_called(self, **conditions: Any) -> None:
        """No request meets the conditions; without any, nothing arrived at all."""
        self.assert_count(0, **conditions)

    def assert_count(self, count: int, **conditions: Any) -> list[Received]:
        """Exactly `count` requests meet the conditions; returns them."""
        found = self.matching(**conditions)
        if len(found) != count:
            noun = "request" if count == 1 else "requests"
            raise AssertionError(self._report(f"{count or 'no'} {noun}", conditions, found))
        return found

    def assert_order(self, *steps: Mapping[str, Any]) -> list[Received]:
        """Requests that meet the steps came in this order, others between them or not; returns them."""
        found: list[Received] = []
        rest = iter(self)
        for step in steps:
            when = read_when(step)
            match = next((received for received in rest if not when.differences(received.ask)), None)
            if match is None:
                after = f" after request {found[-1].number}" if found else ""
                expected = f"step {len(found) + 1} of {len(steps)}{after}: a request"
                raise AssertionError(self._report(expected, step, None))
            found.append(match)
        return found

    def _report(self, expected: str, conditions: Mapping[str, Any], found: Sequence[Received] | None) -> str:
        described = _described(conditions)
        got = "" if found is None else f", got {len(found)} of {len(self)}"
        lines = [f"expected {expected}{f' with {described}' if described else ''}{got}. What arrived:"]
        lines += [f"  {received}" for received in self[:_LISTED]] or ["  nothing"]
        if len(self) > _LISTED:
            lines.append(f"  … and {len(self) - _LISTED} more")
        nearest = None if found else self._nearest(read_when(conditions))
        if nearest is not None:
            number, differences = nearest
            lines.append(f"The nearest is request {number}; it differs in:")
            for difference in differences:
                lines += difference.lines()
        return "\n".join(lines)

    def _nearest(self, when: When) -> tuple[int, tuple[Difference, ...]] | None:
        ranked = sorted(
            ((when.differences(received.ask), received.number) for received in self),
            key=lambda entry: (sum(1 - difference.closeness for difference in entry[0]), entry[1]),
        )
        return next(((number, differences) for differences, number in ranked if differences), None)


def _described(conditions: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in conditions.items())


class _Probe(Responder):
    """Keeps the Ask that a wire makes of a request."""

    name = "probe"

    def __init__(self) -> None:
        self.asks: list[Ask] = []

    def respond(self, ask: Ask) -> Iterable[Event]:
        self.asks.append(ask)
        return ()


def read_ask(request: WireRequest, body: Any) -> Ask:
    """The Ask of a request that no responder saw (replayed, or refused); one without turns where it is none."""
    probe = _Probe()
    LocalServer([probe]).handle(request)
    if probe.asks:
        return probe.asks[0]
    wire: Wire = "anthropic" if "/messages" in request.path else "chat" if "/chat/" in request.path else "responses"
    fields = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
    model = fields.get("model")
    return Ask(wire, model if isinstance(model, str) else "", (), headers=request.headers, body=fields)
