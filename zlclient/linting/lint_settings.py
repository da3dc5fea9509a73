"""Settings of the linter: `[tool.zlclient.lint]` of pyproject.toml and `[lint]` of zlclient.toml.

    [tool.zlclient.lint]
    select = ["ALL"]                 # replaces the defaults; extend-select adds to them
    ignore = ["ZL3", "wall-of-text"]
    per-file-ignores = { "tests/**" = ["ZL120"] }
    extend-exclude = ["vendor"]
    target-model = "anthropic:claude-opus-5@2026-10-21"
    languages = ["zh", "en"]

The files of a folder and all folders above it count, the nearest first, key by key; `root = true` stops the climb.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, cast

from zlclient.errors import ConfigError
from zlclient.settings_sources import Source, read_file

from .lexicon import LANGUAGES
from .registry import check_selectors, selected
from .rule import Rule
from .target import Target, parse_target

_KINDS: dict[str, type] = {
    "select": list,
    "extend-select": list,
    "ignore": list,
    "per-file-ignores": dict,
    "extend-exclude": list,
    "target-model": str,
    "languages": list,
    "max-size": int,
    "respect-gitignore": bool,
    "root": bool,
    "temperature-range": list,
    "domain-tags": list,
    "anchor-density": float,
}
_HOUSE = ("temperature-range", "domain-tags", "anchor-density")


@dataclass(frozen=True, slots=True, kw_only=True)
class LintSettings:
    """Effective settings. `per_file_ignores` are (folder, pattern, selectors); `max_size` is in bytes."""

    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    extend_exclude: tuple[tuple[str, str], ...] = ()
    target_model: str | None = None
    force_target: bool = False
    languages: tuple[str, ...] = LANGUAGES
    max_size: int = 2_000_000
    respect_gitignore: bool = True
    house: Mapping[str, Any] = field(default_factory=dict[str, Any])
    today: date = field(default_factory=date.today)

    def __post_init__(self) -> None:
        for key, values in (("select", self.select), ("extend-select", self.extend_select), ("ignore", self.ignore)):
            check_selectors(values, key=key)
        if self.target_model:
            parse_target(self.target_model, self.today)
        for language in self.languages:
            if language not in LANGUAGES:
                raise ConfigError(f"must be among {', '.join(LANGUAGES)}", key="languages", value=language)

    @property
    def target(self) -> Target | None:
        """The model that prompts without a model of their own are for."""
        return parse_target(self.target_model, self.today) if self.target_model else None

    def rules_for(self, path: str | None) -> tuple[Rule, ...]:
        """The rules that run on `path`."""
        ignore = self.ignore
        if path and self.per_file_ignores:
            full = Path(path).resolve()
            for folder, pattern, selectors in self.per_file_ignores:
                if _fits(full, Path(folder), pattern):
                    ignore += selectors
        return selected(self.select, self.extend_select, ignore)

    def with_options(self, **options: Any) -> LintSettings:
        """A copy with options of the command line: those that are None or empty change nothing."""
        return replace(self, **{name: value for name, value in options.items() if value not in (None, (), [])})


def _fits(path: Path, folder: Path, pattern: str) -> bool:
    import fnmatch

    try:
        relative = path.relative_to(folder).as_posix()
    except ValueError:
        return False
    if pattern.endswith("/**") and relative.startswith(pattern[:-2]):
        return True
    return fnmatch.fnmatchcase(relative, pattern) or fnmatch.fnmatchcase(path.name, pattern)


def load_settings(folder: Path, **options: Any) -> LintSettings:
    """The settings that hold in `folder`, with `options` (fields of LintSettings) over them.

    Raises:
        ConfigError: a file is not TOML, or a key is unknown or has a wrong value; names file and line.
    """
    settings = LintSettings(**{key: options[key] for key in ("today",) if options.get(key)})
    for source in reversed(_sources(folder.resolve())):
        settings = _merge(settings, source)
    return settings.with_options(**options)


def _sources(folder: Path) -> list[Source]:
    """The configuration files that hold in `folder`, nearest first."""
    found: list[Source] = []
    for place in (folder, *folder.parents):
        for name, table in (("pyproject.toml", ("tool", "zlclient", "lint")), ("zlclient.toml", ("lint",))):
            path = place / name
            if not path.is_file() or (
                name == "pyproject.toml" and "zlclient" not in path.read_text("utf-8", "replace")
            ):
                continue
            source = read_file(path, table)
            if source.values:
                found.append(source)
                if source.values.get("root") is True:
                    return found
    return found


def _merge(settings: LintSettings, source: Source) -> LintSettings:
    file = source.default_origin.file
    folder = str(Path(file).parent) if file else "."
    changes: dict[str, Any] = {}
    house = dict(settings.house)
    for key, value in source.values.items():
        line = source.origin_of(key).line
        _check(key, value, file, line)
        if key == "per-file-ignores":
            entries = tuple((folder, pattern, tuple(rules)) for pattern, rules in value.items())
            changes["per_file_ignores"] = settings.per_file_ignores + entries
        elif key == "extend-exclude":
            changes["extend_exclude"] = settings.extend_exclude + tuple((folder, pattern) for pattern in value)
        elif key in _HOUSE:
            house[key] = value
        elif key != "root":
            changes[key.replace("-", "_")] = tuple(cast("list[str]", value)) if isinstance(value, list) else value
    try:
        return replace(settings, house=house, **changes)
    except ConfigError as error:
        if error.file:
            raise
        line = source.origin_of(error.key or "").line
        raise ConfigError(_problem(error), key=error.key, value=error.value, file=file, line=line) from None


def _problem(error: ConfigError) -> str:
    return str(error).removeprefix(f"{error.key} = {error.value!r}: ").removeprefix(f"{error.key}: ")


def _check(key: str, value: Any, file: str | None, line: int | None) -> None:
    kind = _KINDS.get(key)
    if kind is None:
        accepted = ", ".join(sorted(_KINDS))
        raise ConfigError(f"unknown setting; accepted are {accepted}", key=f"lint.{key}", file=file, line=line)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        kind = int
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ConfigError(f"must be a {kind.__name__}", key=f"lint.{key}", value=value, file=file, line=line)
    if key == "per-file-ignores":
        for pattern, rules in cast("dict[str, Any]", value).items():
            if not isinstance(rules, list):
                raise ConfigError("must be a list of rules", key=f"lint.{key}.{pattern}", file=file, line=line)
            check_selectors(cast("list[str]", rules), key=f"lint.{key}.{pattern}", file=file, line=line)
    elif kind is list:
        item: type | tuple[type, ...] = (int, float) if key == "temperature-range" else str
        if not all(isinstance(each, item) for each in cast("list[Any]", value)):
            raise ConfigError("holds an entry of a wrong type", key=f"lint.{key}", value=value, file=file, line=line)
        pair = cast("list[Any]", value)
        if key == "temperature-range" and (len(pair) != 2 or pair[0] > pair[1]):
            raise ConfigError("must be [low, high]", key=f"lint.{key}", value=value, file=file, line=line)
    elif key == "max-size" and value < 1:
        raise ConfigError("must be 1 or more", key=f"lint.{key}", value=value, file=file, line=line)
