"""Scenarios written in a test.

    zl_scenario.when(text="weather").turns({"tool_calls": {"name": "get_weather"}}, "It is 21 °C.")
    zl_scenario.when(model={"regex": "^gpt-"}).reply(json={"ok": True}, usage={"output_tokens": 7})
    zl_scenario.reply("anything else")
    zl_scenario.load("more.yaml")

The forms of conditions and replies are those of a scenario file (`zlclient/serving/responders/scenario_file.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..serving.responders.scenario import ScenarioResponder
from ..serving.responders.scenario_file import load_scenarios, read_scenarios, scenario_of


class Scenarios:
    """What a server answers, in the order it was said. Relative files are looked for in `folder`."""

    def __init__(self, responder: ScenarioResponder, folder: Path | None = None) -> None:
        self._responder = responder
        self._folder = folder or Path()

    def when(self, **conditions: Any) -> Conditions:
        """For requests that meet the conditions: text, system, tool_result, model, role, wire, tools, turn, headers,
        request, where (see `docs/test-your-llm-application-offline.md`)."""
        return Conditions(self, conditions)

    def reply(self, reply: Any = None, /, **fields: Any) -> None:
        """For any request: give this every time."""
        self._add({"reply": _one(reply, fields)}, _caller())

    def replies(self, *replies: Any) -> None:
        """For any request: give these one after another, each once."""
        self._add({"replies": list(replies)}, _caller())

    def turns(self, *replies: Any) -> None:
        """For any request: give the one of the conversation's turn."""
        self._add({"turns": list(replies)}, _caller())

    def add(self, *scenarios: Mapping[str, Any]) -> None:
        """Add scenarios in the form of a scenario file. Raises ConfigError."""
        self._responder.add(*read_scenarios(list(scenarios)))

    def load(self, path: str | Path) -> None:
        """Add the scenarios of a file. Raises ConfigError with file and line."""
        self._responder.add(*load_scenarios(self._folder / path))

    def assert_all_used(self) -> None:
        """Every scenario has answered; of those with `replies`, every reply was given."""
        unused = self._responder.unused()
        if unused:
            raise AssertionError("never used up: " + ", ".join(str(scenario) for scenario in unused))

    def _add(self, data: Mapping[str, Any], origin: str) -> None:
        given = {key: value for key, value in data.items() if value is not None}
        scenario = replace(scenario_of(given), origin=origin)
        if "name" not in given:
            scenario = replace(scenario, name=f"scenario {len(self._responder.scenarios) + 1}")
        self._responder.add(scenario)


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions that wait for their reply."""

    scenarios: Scenarios
    conditions: Mapping[str, Any]

    def reply(self, reply: Any = None, /, *, name: str | None = None, times: int | None = None, **fields: Any) -> None:
        """Give this every time (or `times` times): a text, a function of the Ask, or fields such as text, json,
        tool_calls, thinking, usage, stop_reason, ttft, pace and fault."""
        self._add({"name": name, "times": times, "reply": _one(reply, fields)}, _caller())

    def replies(self, *replies: Any, name: str | None = None) -> None:
        """Give these one after another, each once."""
        self._add({"name": name, "replies": list(replies)}, _caller())

    def turns(self, *replies: Any, name: str | None = None) -> None:
        """Give the one of the conversation's turn: the first to a question, the second after the first answer, …"""
        self._add({"name": name, "turns": list(replies)}, _caller())

    def _add(self, data: Mapping[str, Any], origin: str) -> None:
        self.scenarios._add({"when": self.conditions, **data}, origin)  # pyright: ignore[reportPrivateUsage]


def _one(reply: Any, fields: Mapping[str, Any]) -> Any:
    if reply is not None and fields:
        raise TypeError("a reply is one value, or fields; both were given")
    return dict(fields) if reply is None else reply


def _caller() -> str:
    """`file.py:12` of the test that called the method that calls this."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
