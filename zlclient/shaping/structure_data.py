"""Loads structures from TOML, one file a structure, and chooses one for a document."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, cast

from ..errors import ConfigError, InputError
from .structure import Rule, Structure

_SAMPLE = 1 << 15  # characters looked at to detect a structure
_KEYS = {"order", "detect", "rule"}
_DETECT_KEYS = {"kinds", "headings", "cues", "cue_count"}
_RULE_KEYS = {"kind", "level", "depth", "unit", "setext", "first", "pattern"}
_NEEDED: tuple[tuple[str, type], ...] = (("kind", str), ("level", int), ("pattern", str))
_DEPTHS = ("dots", "hashes", "tag")


def find_structure(text: str, structure: str | Path | Structure | None = None) -> Structure:
    """Return the structure named, or loaded from a TOML file, or detected in the first 32,768 characters.

    Raises InputError for an unknown name and ConfigError for a wrong file.
    """
    if isinstance(structure, Structure):
        return structure
    if isinstance(structure, Path):
        return load_structure(structure.read_text("utf-8"), structure.stem, str(structure))
    known = structures()
    if structure is None:
        sample = text[:_SAMPLE]
        return next(s for s in sorted(known.values(), key=lambda s: s.order) if s.matches(sample))
    if structure not in known:
        raise InputError(f"unknown structure {structure!r}; known: {', '.join(sorted(known))}", where="structure")
    return known[structure]


@cache
def structures() -> dict[str, Structure]:
    """Return the bundled structures by name."""
    files = [f for f in _folder().iterdir() if f.name.endswith(".toml") and not f.name.startswith("_")]
    return {f.name[:-5]: load_structure(f.read_text("utf-8"), f.name[:-5], f.name) for f in files}


def load_structure(source: str, name: str, file: str) -> Structure:
    """Build a structure from TOML; ConfigError names `file` and the line of the rule that is wrong."""
    try:
        data = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not TOML: {error}", file=file) from None
    detect = data.get("detect", {})
    unknown = (data.keys() - _KEYS) or (detect.keys() - _DETECT_KEYS)
    if unknown:
        raise ConfigError("unknown key", key=min(unknown), file=file)
    lines = [i for i, line in enumerate(source.splitlines(), 1) if line.strip() == "[[rule]]"]
    cues = str(detect.get("cues", ""))
    _compiled(cues, "cues", file, None)
    return Structure(
        name=name,
        rules=tuple(_rule(raw, file, line) for raw, line in zip(data.get("rule", []), lines, strict=True)),
        order=int(data.get("order", 500)),
        detect_kinds=frozenset(map(str, detect.get("kinds", []))),
        detect_headings=int(detect.get("headings", 1)),
        cues=cues,
        cue_count=int(detect.get("cue_count", 1)),
    )


def _rule(raw: dict[str, Any], file: str, line: int) -> Rule:
    unknown = raw.keys() - _RULE_KEYS
    if unknown:
        accepted = ", ".join(sorted(_RULE_KEYS))
        raise ConfigError(f"unknown key; accepted: {accepted}", key=min(unknown), file=file, line=line)
    for key, kind in _NEEDED:
        if not isinstance(raw.get(key), kind) or raw[key] == "":
            raise ConfigError(f"a rule needs a {kind.__name__}", key=key, file=file, line=line)
    depth = raw.get("depth", "")
    if depth and depth not in _DEPTHS:
        raise ConfigError(f"accepted: {', '.join(_DEPTHS)}", key="depth", value=depth, file=file, line=line)
    pattern = _expand(raw["pattern"], _pieces(), file, line)
    plain = _expand(raw["pattern"], {**_pieces(), "mark": ""}, file, line)
    groups = _compiled(pattern, "pattern", file, line).groupindex.keys()
    missing = {depth} - groups if depth in ("hashes", "tag") else set[str]()
    if not groups & {"number", "title"} and not raw.get("setext"):
        missing = {"number or title"}
    if missing:
        raise ConfigError(f"needs a group named {min(missing)}", key="pattern", file=file, line=line)
    return Rule(
        kind=raw["kind"],
        level=raw["level"],
        first=_prefixes(raw.get("first"), "%mark%" in raw["pattern"], file, line),
        pattern=pattern,
        plain=plain,
        depth=depth,
        unit=bool(raw.get("unit", False)),
        setext=bool(raw.get("setext", False)),
    )


def _prefixes(first: object, marked: bool, file: str, line: int) -> tuple[str, ...]:
    """Return what a heading's line may begin with: the characters of a string, or a list of longer prefixes."""
    prefixes = cast("list[Any]", list(first)) if isinstance(first, str | list) else []  # pyright: ignore
    if not prefixes or not all(isinstance(p, str) and p for p in prefixes):
        raise ConfigError("a string of first characters, or a list of prefixes", key="first", file=file, line=line)
    return (*prefixes, *(("#", "**", "__") if marked else ()))


def _compiled(pattern: str, key: str, file: str, line: int | None) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"not a regular expression: {error}", key=key, file=file, line=line) from None


def _expand(pattern: str, pieces: dict[str, str], file: str, line: int) -> str:
    """Replace %name% by the piece of that name, which may hold pieces itself."""
    for _ in range(8):
        names = set(re.findall(r"%(\w+)%", pattern))
        if not names:
            break
        unknown = names - pieces.keys()
        if unknown:
            raise ConfigError("unknown piece", key=min(unknown), file=file, line=line)
        pattern = re.sub(r"%(\w+)%", lambda m: pieces[m[1]], pattern)
    return pattern


@cache
def _pieces() -> dict[str, str]:
    data = tomllib.loads((_folder() / "_common.toml").read_text("utf-8"))
    return cast("dict[str, str]", data["pieces"])


def _folder() -> Traversable:
    return resources.files("zlclient.shaping") / "structure"
