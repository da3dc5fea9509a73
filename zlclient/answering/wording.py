"""What a model is told beside the question, from `data/wording.toml`, and the sentence for "not stated"."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from ..shaping.domains import language_of

Task = Literal["one", "part", "merge"]
_MARKS = re.compile(r"[\W_]+")


def instruction(task: Task, mode: str, question: str) -> str:
    """The system text for a task ("one", "part", "merge") in a mode ("answer", "summary", "extract")."""
    return _wording()[language_of(question)][task][mode]


def not_stated(question: str) -> str:
    """What a model is told to answer where the text does not cover the question."""
    return _wording()[language_of(question)]["not_stated"]


def states_nothing(answer: str) -> bool:
    """Whether `answer` is that sentence, in either language, whatever marks stand around it, or holds no word."""
    return _bare(answer) in {"", *(_bare(words["not_stated"]) for words in _wording().values())}


def _bare(text: str) -> str:
    return _MARKS.sub("", text).lower()


@cache
def _wording() -> dict[str, Any]:
    return tomllib.loads((files("zlclient.answering") / "data" / "wording.toml").read_text("utf-8"))
