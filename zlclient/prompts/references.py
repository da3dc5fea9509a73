"""`${env:VAR}`, `${env:VAR:default}` and `${file:path}` in front matter, resolved inside the prompt's own folder."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ..errors import ConfigError
from .sandbox import inside_root
from .yaml_nodes import read_yaml

_REFERENCE = re.compile(r"\$\{(?P<kind>env|file):(?P<name>[^}:]+)(?::(?P<default>[^}]*))?\}", re.IGNORECASE)
_LARGEST_FILE = 1_000_000
_MOST_VALUES = 20_000


class References:
    """Resolves the references of one prompt.

    Args:
        env: the environment to read.
        root: the folder that files come from; None allows no files.
        file: the prompt's name, for errors.
    """

    def __init__(self, env: Mapping[str, str], root: Path | None, file: str | None = None) -> None:
        self._env, self._root, self._file = env, root, file
        self._left = _MOST_VALUES

    def resolve(self, value: Any, key: str = "", depth: int = 0) -> Any:
        """A copy of `value` with every reference in its strings resolved; `key` names it in errors.

        Raises:
            ConfigError: a variable is not set and has no default, or a file is missing, too large or outside the root.
        """
        self._left -= 1
        if self._left < 0 or depth > 50:
            raise ConfigError("the front matter is too large once its aliases are written out", file=self._file)
        if isinstance(value, Mapping):
            items = cast("Mapping[Any, Any]", value).items()
            return {name: self.resolve(item, f"{key}.{name}".lstrip("."), depth + 1) for name, item in items}
        if isinstance(value, list):
            items = enumerate(cast("list[Any]", value))
            return [self.resolve(item, f"{key}[{index}]", depth + 1) for index, item in items]
        if not isinstance(value, str) or "${" not in value:
            return value
        whole = _REFERENCE.fullmatch(value.strip())
        if whole and whole["kind"].lower() == "file":
            return self._read(whole["name"], key, depth)
        return _REFERENCE.sub(lambda match: self._text(match, key, depth), value)

    def _text(self, match: re.Match[str], key: str, depth: int) -> str:
        if match["kind"].lower() == "file":
            found = self._read(match["name"], key, depth)
            return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
        name = match["name"]
        if name in self._env:
            return self._env[name]
        if match["default"] is None:
            raise ConfigError(f"Environment variable {name!r} not set", key=key, file=self._file)
        return match["default"]

    def _read(self, name: str, key: str, depth: int) -> Any:
        path = inside_root(self._root, name)
        if path is None:
            leaves = ".." in Path(name).parts or Path(name).is_absolute() or self._root is None
            problem = "is outside allowed roots" if leaves else "does not exist, or is outside allowed roots"
            raise ConfigError(f"the file {name!r} {problem}", key=key, file=self._file)
        if path.stat().st_size > _LARGEST_FILE:
            raise ConfigError(f"the file {name!r} is larger than {_LARGEST_FILE} bytes", key=key, file=self._file)
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            raise ConfigError(f"the file {name!r} is not UTF-8", key=key, file=self._file) from None
        if path.suffix not in (".json", ".yaml", ".yml"):
            return text
        document = read_yaml(text)
        if document.problem:
            raise ConfigError(f"the file {name!r} does not parse: {document.problem.message}", key=key, file=self._file)
        return self.resolve(document.data, key, depth + 10)
