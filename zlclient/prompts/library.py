"""A folder of templates: found by name, language and version."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path

from ..errors import ConfigError, InputError
from .prompt import Prompt

_SUFFIXES = (".prompty", ".prompt", ".j2", ".jinja", ".jinja2", ".prompt.yml", ".prompt.yaml", ".md", ".txt")
_NOT_TEMPLATES = re.compile(r"\A(?:_.*|\..*|readme|license|licence|changelog)\Z", re.IGNORECASE)
_LANGUAGE = re.compile(r"\.([a-z]{2}(?:-[A-Za-z]{2,4})?)\Z")


@dataclass(frozen=True)
class Entry:
    """One template of a library."""

    name: str
    language: str | None
    version: str | None
    path: Path


@dataclass(frozen=True)
class Library:
    """The templates under a folder. Files whose name begins with an underscore are partials, no templates.

    A template's name, language and version are those of its front matter; without them the file's name gives the
    name and the language, as in `summary.zh.prompty`.
    """

    path: Path

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Every template, by name, language and version.

        Raises:
            ConfigError: the folder does not exist, a template is wrong, or two are the same one.
        """
        if not self.path.is_dir():
            raise ConfigError("there is no such folder", file=str(self.path))
        found: dict[tuple[str, str | None, str | None], Entry] = {}
        for path in sorted(self.path.rglob("*")):
            if not path.name.endswith(_SUFFIXES) or _NOT_TEMPLATES.match(path.name.split(".")[0]):
                continue
            entry = self._entry(path)
            key = (entry.name, entry.language, entry.version)
            if key in found:
                raise ConfigError(f"is the same name, language and version as {found[key].path}", file=str(path))
            found[key] = entry
        return tuple(sorted(found.values(), key=lambda e: (e.name, e.language or "", _order(e.version))))

    def _entry(self, path: Path) -> Entry:
        prompt = Prompt.load(path, root=self.path)
        stem = path.name
        for suffix in sorted(_SUFFIXES, key=len, reverse=True):
            stem = stem.removesuffix(suffix)
        language = _LANGUAGE.search(stem)
        name = prompt.name or (stem[: language.start()] if language else stem)
        return Entry(name, prompt.language or (language[1] if language else None), prompt.version, path)

    @property
    def names(self) -> tuple[str, ...]:
        """The templates' names, each once."""
        return tuple(dict.fromkeys(entry.name for entry in self.entries))

    def versions(self, name: str, *, language: str | None = None) -> tuple[str, ...]:
        """The versions of a template, oldest first."""
        return tuple(
            entry.version
            for entry in self.entries
            if entry.name == name and entry.version and language in (None, entry.language)
        )

    def get(self, name: str, *, language: str | None = None, version: str | None = None) -> Prompt:
        """The template; without a version the newest one, without a language the only one.

        Raises:
            InputError: there is none such; names what there is.
        """
        named = [entry for entry in self.entries if entry.name == name]
        if not named:
            near = difflib.get_close_matches(name, self.names, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(self.names) or 'none'}"
            raise InputError(f"there is no template {name!r}; {hint}", where="name")
        languages = tuple(dict.fromkeys(entry.language for entry in named))
        spoken = [entry for entry in named if language in (None, entry.language)]
        if not spoken or (language is None and len(languages) > 1):
            known = ", ".join(str(language) for language in languages)
            raise InputError(f"{name!r} is there in {known}; give one of them", where="language")
        chosen = [entry for entry in spoken if version in (None, entry.version)]
        if not chosen:
            known = ", ".join(self.versions(name, language=language)) or "none"
            raise InputError(f"{name!r} has no version {version!r}; known are {known}", where="version")
        return Prompt.load(chosen[-1].path, root=self.path)


def _order(version: str | None) -> tuple[tuple[int, int, str], ...]:
    """1.10 after 1.9, and numbers before words."""
    parts = re.findall(r"\d+|[A-Za-z]+", version or "")
    return tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts)


@cache
def bundled_library() -> Library:
    """The library shipped with this release; in a checkout, its `templates` folder."""
    package = Path(str(files(__package__.split(".")[0] if __package__ else "zlclient")))
    for folder in (package / "templates", package.parent / "templates"):
        if folder.is_dir():
            return Library(folder)
    raise ConfigError("the bundled templates are missing from this installation", file=str(package / "templates"))
