"""Real Redis and PostgreSQL servers on free ports, and a TCP proxy that can be cut.

Where a server's binary is missing the tests that need it are skipped with the reason; under CI they fail.
"""

import glob
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from zlclient.routing.stores import Store, open_store


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def need(binary: str | None, what: str) -> str:
    if binary:
        return binary
    if os.environ.get("CI"):
        pytest.fail(f"{what} is not installed, and CI must test it")
    pytest.skip(f"{what} is not installed")


def wait_for(ready: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "the server did not come up"
        time.sleep(0.02)


def answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


class RedisServer:
    """A redis-server that a test may kill and start again; what it holds is lost with it unless it is saved."""

    def __init__(self, folder: Path) -> None:
        self.binary = need(shutil.which("redis-server") or shutil.which("valkey-server"), "redis-server")
        self.folder, self.port = folder, free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self) -> None:
        command = [self.binary, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        self.process = subprocess.Popen(
            [*command, "--appendonly", "yes", "--appendfsync", "always", "--save", ""], stdout=subprocess.DEVNULL
        )
        wait_for(lambda: answers(self.port))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class PostgresServer:
    """A PostgreSQL cluster in a folder of its own, run as `postgres` where the tests run as root."""

    def __init__(self, folder: Path) -> None:
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres")) or [shutil.which("postgres")]
        self.bin = Path(need(found[-1], "postgresql")).parent
        self.folder, self.port = folder, free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        if os.getuid() == 0:
            shutil.chown(folder, "postgres")
        self.run("initdb", "-D", str(folder / "data"), "-A", "trust", "-U", "postgres", "--no-sync")
        self.start()

    def run(self, tool: str, *arguments: str) -> None:
        prefix = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        done = subprocess.run(
            [*prefix, str(self.bin / tool), *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, tool

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        self.run(
            "pg_ctl", "-D", str(self.folder / "data"), "-w", "-l", str(self.folder / "log"), "-o", options, "start"
        )

    def kill(self) -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop")


class Proxy:
    """Forwards to a port until it is cut: then it holds every byte back without closing, as a dead network does."""

    def __init__(self, target: int) -> None:
        self.target, self.whole = target, threading.Event()
        self.whole.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self.whole.clear()

    def mend(self) -> None:
        self.whole.set()

    def _accept(self) -> None:
        while True:
            try:
                inner, _ = self.listener.accept()
            except OSError:
                return
            outer = socket.create_connection(("127.0.0.1", self.target))
            for source, sink in ((inner, outer), (outer, inner)):
                threading.Thread(target=self._forward, args=(source, sink), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                self.whole.wait()
                sink.sendall(data)
        except OSError:
            pass
        source.close()
        sink.close()


@pytest.fixture(scope="session")
def server_folder() -> Iterator[Path]:
    # Not pytest's own folder: that one is closed to the user that PostgreSQL runs as.
    with tempfile.TemporaryDirectory(prefix="zlclient-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.fixture(scope="session")
def redis_server(server_folder: Path) -> Iterator[RedisServer]:
    folder = server_folder / "redis"
    folder.mkdir()
    server = RedisServer(folder)
    yield server
    server.kill()


@pytest.fixture(scope="session")
def postgres_server(server_folder: Path) -> Iterator[PostgresServer]:
    folder = server_folder / "postgres"
    folder.mkdir()
    server = PostgresServer(folder)
    yield server
    server.kill()


@pytest.fixture
def proxy_to() -> Callable[[int], Proxy]:
    return Proxy


@pytest.fixture(params=["sqlite", "redis", "postgresql"])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store that many processes can share."""
    return empty_store(request, request.param, tmp_path)


@pytest.fixture(params=["memory", "sqlite", "redis", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store of every kind."""
    opened = open_store(empty_store(request, request.param, tmp_path))
    yield opened
    opened.close()


def empty_store(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> str:
    if kind == "redis":
        server: Any = request.getfixturevalue("redis_server")
        redis = pytest.importorskip("redis")
        redis.Redis.from_url(server.url).flushall()
        return server.url
    if kind == "postgresql":
        server = request.getfixturevalue("postgres_server")
        psycopg = pytest.importorskip("psycopg")
        with psycopg.connect(server.url, autocommit=True) as connection:
            for table in ("states", "events", "marks", "records"):
                connection.execute(f"DROP TABLE IF EXISTS zlclient_{table}")
        return server.url
    return f"sqlite:///{tmp_path}/rollouts.db" if kind == "sqlite" else kind


@pytest.fixture
def deadline() -> Iterator[None]:
    """A hang is a failure: 30 s for the whole test."""

    def late(*_: object) -> None:
        raise AssertionError("the test hung")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
