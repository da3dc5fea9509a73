"""Scenario files: what they may say, and errors that name the file, the line and the key."""

from pathlib import Path
from typing import Any

import pytest

from zlclient.errors import ConfigError
from zlclient.serving.responders.base import ToolCall
from zlclient.serving.responders.scenario_file import load_scenarios, read_scenarios, read_when

GOOD = """\
# a comment
- name: weather
  when:
    text: weather
    tools: [get_weather]
  turns:
    - tool_calls: {name: get_weather, input: {city: Paris}}
    - text: It is 21 °C.
- when: {text: {regex: "^hel+o$"}, headers: {X-Team: blue}}
  reply: Hello!
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "scenarios.yaml"
    path.write_text(text, "utf-8")
    return path


def test_a_file_is_read_with_the_place_of_each_scenario(tmp_path: Path):
    path = written(tmp_path, GOOD)
    weather, hello = load_scenarios(path)
    assert weather.name == "weather"
    assert weather.origin == f"{path}:2"
    assert weather.order == "by_turn"
    assert weather.replies[0].tool_calls == (ToolCall("get_weather", {"city": "Paris"}),)
    assert weather.replies[1].text == "It is 21 °C."
    assert hello.name == "scenario 2"
    assert list(hello.when.headers) == ["x-team"]


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("- reply: a\n- when:\n    txt: hi\n  reply: b\n", 3, "txt"),
        ("- when: {text: hi}\n", 1, "one of reply, replies or turns"),
        ("- reply: a\n  replies: [b]\n", 1, "one of reply, replies or turns"),
        ("- when: {text: 5}\n  reply: a\n", 1, "a mapping with exact, contains or regex"),
        ("- when:\n    text:\n      regex: '('\n  reply: a\n", 3, "no valid regular expression"),
        ("- when:\n    text: {exact: a, contains: b}\n  reply: a\n", 2, "one of exact, contains or regex"),
        ("- reply: a\n\n- reply:\n    fault: 99\n", 4, "a status from 400 to 599"),
        ("- reply:\n    fault: explode\n", 2, "accepted: drop"),
        ("- reply:\n    text: a\n    fault: {status: 500, rate: 2}\n", 3, "a share from 0 to 1"),
        ("- reply:\n    text: a\n    ttft: -1\n", 3, "a number of seconds"),
        ("- reply:\n    text: a\n    json: {}\n", 3, "text or json"),
        ("- reply:\n    text: yes\n", 2, "a string is expected; quote it"),
        ("- reply:\n    stop_reason: done\n", 2, "accepted: end_turn"),
        ("- reply:\n    tool_calls: [{input: {}}]\n", 2, "name is missing"),
        ("- reply:\n    usage: {output_tokens: many}\n", 2, "a whole number"),
        ("- when: {turn: -1}\n  reply: a\n", 1, "a whole number of at least 0"),
        ("- when: {where: something}\n  reply: a\n", 1, "a function of the Ask"),
        ("- replies: []\n", 1, "at least one reply"),
        ("- reply: {}\n", 1, "an empty reply"),
        ("- name: a\n  reply: a\n- name: a\n  reply: b\n", 3, "is there already"),
        ("- name: a\n  reply: a\n  reply: b\n", 3, "given twice"),
        ("scenarios:\n", 1, "a list is expected"),
        ("- reply: [\n", 2, ""),
        ("", None, "a list is expected"),
    ],
)
def test_a_mistake_names_its_file_and_line(tmp_path: Path, text: str, line: int | None, part: str):
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_scenarios(path)
    assert caught.value.file == str(path)
    assert caught.value.line == line
    assert part in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"nothing\.yaml"):
        load_scenarios(tmp_path / "nothing.yaml")


def test_aliases_of_aliases_are_bounded(tmp_path: Path):
    lines = ["- &a0 {reply: a}"] + [f"- &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(ConfigError, match="more than"):
        load_scenarios(written(tmp_path, "\n".join(lines)))


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ([{"when": {"model": 3}, "reply": "a"}], "[0].when.model"),
        ([{"reply": "a"}, {"turns": ["a", {"text": 3}]}], "[1].turns[1].text"),
        ([{"reply": {"json": {1, 2}}}], "[0].reply.json"),
    ],
)
def test_a_mistake_in_python_data_names_its_key(data: Any, key: str):
    with pytest.raises(ConfigError) as caught:
        read_scenarios(data)
    assert caught.value.key == key
    assert caught.value.file is None


def test_conditions_can_be_read_alone():
    assert read_when({"text": "a", "turn": 2}).turn == 2
    with pytest.raises(ConfigError, match="accepted: text, system"):
        read_when({"txt": "a"})
