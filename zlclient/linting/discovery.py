"""Which files to lint: those named; in folders, those with a suffix of prompts that nothing excludes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from zlclient.errors import ConfigError

from .lint_settings import LintSettings
from .wordset import words_of

SUFFIXES = words_of(".prompty .prompt .j2 .jinja .jinja2 .md .markdown .txt .yml .yaml .py")
SKIPPED = words_of(
    ".git .hg .svn .venv venv node_modules __pycache__ .tox .nox .mypy_cache .ruff_cache "
    ".pytest_cache dist build site-packages .eggs .idea .vscode"
)
# Files for people, which tools put beside prompts.
_NO_PROMPTS = words_of(
        "readme.md changelog.md contributing.md code_of_conduct.md security.md license.md license.txt "
        "requirements.txt robots.txt cmakelists.txt .pre-commit-config.yaml mkdocs.yml pnpm-lock.yaml"
    )  # fmt: skip


def find_files(paths: Iterable[str | Path], settings: LintSettings) -> list[Path]:
    """The files to lint, each once, sorted within each folder. A file that is named is linted whatever its name.

    Raises:
        ConfigError: a path does not exist.
    """
    found: dict[Path, None] = {}
    for given in paths:
        path = Path(given)
        if path.is_dir():
            found.update(dict.fromkeys(_walk(path, settings)))
        elif path.exists():
            found[path] = None
        else:
            raise ConfigError("no such file or folder", key="path", value=str(given))
    return list(found)


def _walk(root: Path, settings: LintSettings) -> Iterator[Path]:
    ignores = _Ignores(root, settings)
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        ignores.enter(here)
        folders[:] = sorted(
            name for name in folders if name not in SKIPPED and not ignores.matches(here / name, is_folder=True)
        )
        for name in sorted(names):
            path = here / name
            if path.suffix.lower() in SUFFIXES and name.lower() not in _NO_PROMPTS and not ignores.matches(path):
                yield path


class _Ignores:
    """The patterns of every .gitignore from the repository's root down, and `extend-exclude`."""

    def __init__(self, root: Path, settings: LintSettings) -> None:
        self._use_git = settings.respect_gitignore
        self._by_folder: dict[Path, Any] = {}
        for folder, pattern in settings.extend_exclude:
            self._add(Path(folder), [pattern])
        if self._use_git:
            root = root.resolve()
            repository = next((f for f in (root, *root.parents) if (f / ".git").exists()), root)
            for folder in (root, *root.parents):
                self.enter(folder)
                if folder == repository:
                    break

    def _add(self, folder: Path, lines: Iterable[str]) -> None:
        from pathspec import GitIgnoreSpec

        known = self._by_folder.get(folder)
        spec = GitIgnoreSpec.from_lines(lines)
        self._by_folder[folder] = known + spec if known else spec

    def enter(self, folder: Path) -> None:
        """Read the folder's own .gitignore."""
        file = folder / ".gitignore"
        if self._use_git and file.is_file():
            self._add(folder.resolve(), file.read_text("utf-8", "replace").splitlines())

    def matches(self, path: Path, *, is_folder: bool = False) -> bool:
        """Whether any pattern leaves `path` out."""
        if not self._by_folder:
            return False
        full = path.resolve()
        for folder, spec in self._by_folder.items():
            if full != folder and full.is_relative_to(folder):
                name = full.relative_to(folder).as_posix()
                if spec.match_file(name + "/" if is_folder else name):
                    return True
        return False
