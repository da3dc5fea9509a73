"""Where the model's file is kept: in the user's cache folder, under its own name."""

from __future__ import annotations

import os
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...errors import ConfigError

COMMAND = "zlclient engine fetch smollm2"


class NotFetched(ConfigError):
    """The model's file is not in the cache; the message says how to get it there."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What weights.toml says of the file: its name, size and SHA-256, and the package that carries it."""

    file: str
    size: int
    sha256: str
    license: str
    requirement: str
    member: str


@cache
def weights() -> Weights:
    """The pinned file; raises ConfigError where the shipped data is damaged."""
    data: Any = tomllib.loads((files(__package__ or "") / "weights.toml").read_text("utf-8"))
    try:
        package = data["package"]
        return Weights(
            data["file"], data["bytes"], data["sha256"], data["license"], package["requirement"], package["member"]
        )  # fmt: skip
    except (KeyError, TypeError) as error:
        raise ConfigError(f"lacks {error}", file="engine/smollm2/weights.toml") from None


def cache_folder() -> Path:
    """zlclient's part of the user's cache: under XDG_CACHE_HOME where that is an absolute path, else the platform's."""
    told = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(told):
        return Path(told) / "zlclient"
    home = Path(os.path.expanduser("~"))  # unlike Path.home(), it never raises
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "zlclient" / "Cache"
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "zlclient"


def model_path() -> Path:
    """Where the file is, or would be."""
    return cache_folder() / "models" / weights().file


def is_fetched() -> bool:
    """Whether a file of the right size is there, and not out of this user's reach."""
    try:
        return model_path().stat().st_size == weights().size
    except OSError:
        return False


def is_right(path: Path) -> bool:
    """Whether the file's SHA-256 is the pinned one; it is computed once for a file that does not change."""
    stat = path.stat()
    return _digest(path, stat.st_size, stat.st_mtime_ns) == weights().sha256


def verified_path() -> Path:
    """The file, once its SHA-256 was found right; raises NotFetched, or ConfigError when it differs."""
    path = model_path()
    try:
        right = is_right(path)
    except OSError as error:
        problem = f"smollm2's weights are not there ({error.strerror}); fetch them with: {COMMAND}"
        raise NotFetched(problem, file=str(path)) from None
    if not right:
        raise ConfigError(f"its SHA-256 is not the pinned one; fetch it again with: {COMMAND}", file=str(path))
    return path


@cache
def _digest(path: Path, size: int, changed: int) -> str:  # noqa: ARG001 - a changed file is another file
    import hashlib  # every offline start imports this module

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
