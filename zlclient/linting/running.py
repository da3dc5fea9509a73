"""Lint many files: settings per folder, a process pool where it pays, fixes written back, and watching for changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .discovery import find_files
from .engine import UNREADABLE, FileReport, lint_file
from .fixing import fix_text
from .lint_settings import LintSettings, load_settings
from .sharing_out import can_fork, map_forked

if TYPE_CHECKING:
    from .cache import LintCache

_POOL_FROM = 150
"""Files from which on a second process saves more than it costs to start."""


@dataclass
class Linter:
    """Lints paths with the settings of each file's folder; `options` (of the command line) win over them.

    `cache_folder` is where findings of large runs are remembered; None remembers nothing.
    """

    options: dict[str, Any] = field(default_factory=dict[str, Any])
    jobs: int = 0
    cache_folder: Path | None = None
    _settings: dict[Path, LintSettings] = field(default_factory=dict[Path, LintSettings], repr=False)

    def settings_for(self, path: Path) -> LintSettings:
        """The settings that hold for a file or folder."""
        folder = path if path.is_dir() else path.parent
        if folder not in self._settings:
            self._settings[folder] = load_settings(folder.resolve(), **self.options)
        return self._settings[folder]

    def files(self, paths: Iterable[str | Path]) -> list[Path]:
        """The files that `paths` mean."""
        given = list(paths) or ["."]
        return list(dict.fromkeys(file for path in given for file in find_files([path], self.settings_for(Path(path)))))

    def reports(self, files: list[Path]) -> list[FileReport]:
        """A report for each file, in order."""
        pairs = [(str(file), self.settings_for(file)) for file in files]
        if self.cache_folder is None or len(pairs) < _POOL_FROM:
            return self._lint(pairs)
        from .cache import LintCache

        return self._lint_with_cache(pairs, LintCache(self.cache_folder))

    def _lint(self, pairs: list[tuple[str, LintSettings]]) -> list[FileReport]:
        jobs = self.jobs or min(os.cpu_count() or 1, 8)
        if jobs < 2 or len(pairs) < _POOL_FROM or not can_fork():
            return [lint_file(name, settings) for name, settings in pairs]
        # Forked processes share the rules and lexicons that are compiled by now.
        return [lint_file(*pairs[0]), *map_forked(_lint_pair, pairs[1:], jobs)]

    def _lint_with_cache(self, pairs: list[tuple[str, LintSettings]], cache: LintCache) -> list[FileReport]:
        reports: dict[str, FileReport] = {}
        keys: dict[str, str] = {}
        for name, settings in pairs:
            try:
                data = Path(name).read_bytes()
            except OSError:
                continue
            keys[name] = cache.key(data, name, settings)
            known = cache.get(name, keys[name])
            if known is not None:
                text = None if any(item.code in UNREADABLE for item in known) else data.decode("utf-8")
                reports[name] = FileReport(name, known, text)
        for report in self._lint([pair for pair in pairs if pair[0] not in reports]):
            reports[report.path] = report
            if report.path in keys:
                cache.put(report.path, keys[report.path], report.diagnostics)
        cache.save()
        return [reports[name] for name, _ in pairs]

    def fix(self, files: Iterable[Path], *, unsafe: bool) -> int:
        """Fix files in place; how many fixes were made. Files that cannot be read are left alone."""
        made = 0
        for file in files:
            settings = self.settings_for(file)
            report = lint_file(file, settings)
            if report.text is None:
                continue
            fixed, count = fix_text(report.text, str(file), settings, unsafe=unsafe)
            if fixed != report.text:
                file.write_bytes(fixed.encode("utf-8"))
                made += count
        return made


def _lint_pair(pair: tuple[str, LintSettings]) -> FileReport:
    return lint_file(*pair)


def watch(
    files: Callable[[], list[Path]], sleep: Callable[[float], None], *, interval: float = 0.5
) -> Iterator[list[Path]]:
    """Yield the files at first, and then each time those that are new or have changed; polls modification times."""
    seen: dict[Path, tuple[int, int]] = {}
    while True:
        now: dict[Path, tuple[int, int]] = {}
        for file in files():
            try:
                status = file.stat()
            except OSError:
                continue
            now[file] = (status.st_mtime_ns, status.st_size)
        changed = [file for file, stamp in now.items() if seen.get(file) != stamp]
        is_first = not seen
        gone = seen.keys() - now.keys()
        seen = now
        if changed or is_first or gone:
            yield changed
        sleep(interval)
