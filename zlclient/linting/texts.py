"""The long text of every rule, read from `texts/<family>.toml`."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any, cast

from zlclient.errors import ConfigError


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule's page: `what` it does, `why` it matters, `example` and `instead`, `fix_safety`, `source`.

    `path` names the kind of file the examples are, such as "a.prompty".
    """

    what: str
    why: str
    example: str
    instead: str
    source: str
    fix_safety: str = ""
    path: str = "prompt.md"
    note: str = ""


def parse_texts(text: str, file: str) -> dict[str, RuleText]:
    """The texts in one TOML file by code.

    Raises:
        ConfigError: not TOML, or an entry with an unknown, missing or empty key; names file and line.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        raise ConfigError(str(error), file=file, line=int(found[1]) if found else text.count("\n") + 1) from None
    known = {item.name for item in fields(RuleText)}
    texts: dict[str, RuleText] = {}
    for code, entry in data.items():
        line = text[: max(0, text.find(f"[{code}]"))].count("\n") + 1
        values = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
        unknown = values.keys() - known
        missing = {"what", "why", "example", "instead", "source"} - values.keys()
        if unknown or missing:
            problem = f"unknown: {', '.join(sorted(unknown))}" if unknown else f"missing: {', '.join(sorted(missing))}"
            raise ConfigError(problem, key=code, file=file, line=line)
        texts[code] = RuleText(**values)
    return texts


@cache
def rule_texts() -> dict[str, RuleText]:
    """Every rule's text by code."""
    folder = files(__package__ or "zlclient.linting") / "texts"
    texts: dict[str, RuleText] = {}
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        if entry.name.endswith(".toml"):
            texts.update(parse_texts(entry.read_text("utf-8"), f"linting/texts/{entry.name}"))
    return texts
