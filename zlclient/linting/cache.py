"""Remembered findings: a file whose content, rules and settings are those of the last run is not linted again."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from .diagnostic import Diagnostic, Edit, Fix
from .lint_settings import LintSettings

FOLDER = ".zlclient_cache"
_FILE = "lint.json"


class LintCache:
    """Findings by path, with a key of all that decided them. A cache that cannot be read or written is no cache."""

    def __init__(self, root: Path) -> None:
        self._path = root / FOLDER / _FILE
        self._stamp = _stamp()
        self._entries: dict[str, Any] = {}
        self._changed = False
        try:
            data: Any = json.loads(self._path.read_text("utf-8"))
            if data["stamp"] == self._stamp:
                self._entries = cast("dict[str, Any]", data["files"])
        except (OSError, ValueError, KeyError, TypeError):
            return

    @staticmethod
    def key(data: bytes, path: str, settings: LintSettings) -> str:
        """What decides a file's findings: its bytes, name, rules, options, and the day (models retire)."""
        rules = ",".join(rule.code for rule in settings.rules_for(path))
        options = (settings.target_model, settings.force_target, settings.languages, settings.max_size)
        words = repr((rules, options, sorted(settings.house.items()), settings.today.isoformat(), path))
        return sha256(words.encode("utf-8", "surrogatepass") + data).hexdigest()

    def get(self, path: str, key: str) -> tuple[Diagnostic, ...] | None:
        """The findings remembered for this key."""
        entry = self._entries.get(path)
        if entry is None or entry[0] != key:
            return None
        return tuple(_diagnostic(dict(item)) for item in entry[1])

    def put(self, path: str, key: str, diagnostics: tuple[Diagnostic, ...]) -> None:
        """Remember the findings of a file."""
        self._entries[path] = [key, [asdict(item) for item in diagnostics]]
        self._changed = True

    def save(self) -> None:
        """Write what was added; two runs at once each write a whole file, and the last one stays."""
        if not self._changed:
            return
        try:
            self._path.parent.mkdir(exist_ok=True)
            (self._path.parent / ".gitignore").write_text("*\n", "utf-8")
            draft = self._path.with_suffix(f".{os.getpid()}")
            draft.write_text(json.dumps({"stamp": self._stamp, "files": self._entries}), "utf-8")
            draft.replace(self._path)
        except OSError:
            return


def _diagnostic(item: dict[str, Any]) -> Diagnostic:
    fix = item.pop("fix")
    if fix is not None:
        edits = tuple(Edit(*edit) for edit in fix["edits"])
        fix = Fix(fix["title"], edits, fix["safety"], tuple(fix["touches"]))
    return Diagnostic(**item, fix=fix)


def _stamp() -> str:
    """Changes with every release, and with every edit of the linter's or the parser's files."""
    from zlclient import __version__

    stamps: list[str] = [__version__]
    for package in ("zlclient.linting", "zlclient.prompts", "zlclient.models", "zlclient.shaping"):
        root = Path(str(files(package)))
        found = [file for file in root.rglob("*") if file.suffix in (".py", ".toml")]
        stamps += sorted(f"{file}:{file.stat().st_mtime_ns}" for file in found)
    return sha256("\n".join(stamps).encode()).hexdigest()
