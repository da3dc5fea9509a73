"""Requests a second, server CPU a request, and 200 concurrent streams: `zlclient serve` beside other servers for tests.

    python tests/benchmarks/serving.py [--rounds 3] [--peer fakellm=/path/to/fakellm] [--peer stubllm=…] [--peer aimock=…]

A peer is the path of its command; those found on PATH are taken unasked. All servers answer the same Messages request over one
keep-alive connection, from one raw-socket client, in interleaved rounds of this one run. CPU is the server process's own
(user and system, from /proc, so on Linux only). A server whose streams do not end in message_stop is shown with how many did.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

BODY = {"model": "claude-sonnet-4-5", "max_tokens": 64, "messages": [{"role": "user", "content": "hello there"}]}
SECONDS = 2.0
STREAMS = 200
STUBLLM = """fixtures:
  - name: greeting
    match: {provider: anthropic, messages: [{role: user, content: {contains: hello}}]}
    response: {content: "This is an answer of a test server that no model gave. Give it a text with a question."}
"""
FAKELLM = """version: 1
rules:
  - name: greeting
    when: {messages_contain: hello}
    respond: {content: "This is an answer of a test server that no model gave. Give it a text with a question."}
"""
AIMOCK = {
    "fixtures": [{"match": {"userMessage": "hello"}, "response": {"content": "This is an answer of a test server."}}]
}


@dataclass
class Server:
    """A server under measurement: how to start it, and what was measured."""

    name: str
    command: list[str]
    port: int
    process: subprocess.Popen[bytes] | None = None
    rates: list[float] = field(default_factory=list)
    cpus: list[float] = field(default_factory=list)
    streams: list[float] = field(default_factory=list)
    complete: int = 0

    def start(self, folder: Path) -> bool:
        """Start it and wait until it accepts connections."""
        self.process = subprocess.Popen(
            self.command,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "CI": "1"},
        )
        for _ in range(100):
            if self.process.poll() is not None:
                return False
            try:
                socket.create_connection(("127.0.0.1", self.port), 0.2).close()
                return True
            except OSError:
                time.sleep(0.1)
        return False

    def cpu(self) -> float:
        """Seconds of CPU the process and its threads have used."""
        assert self.process is not None
        used = Path(f"/proc/{self.process.pid}/stat").read_text("ascii").rsplit(")", 1)[1].split()
        return (int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK")


def request(body: dict[str, object], port: int) -> bytes:
    """The bytes of one Messages request."""
    raw = json.dumps(body).encode()
    head = (
        f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\n"
        f"content-type: application/json\r\ncontent-length: {len(raw)}\r\n\r\n"
    )
    return head.encode() + raw


def read_whole(connection: socket.socket) -> None:
    """Read one answer with a content-length, or chunked; raises on anything but 200."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += receive(connection)
    head, _, rest = data.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise SystemExit(head.decode("latin-1"))
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            missing = int(line.split(b":")[1]) - len(rest)
            while missing > 0:
                missing -= len(receive(connection))
            return
    while not rest.endswith(b"0\r\n\r\n"):
        rest += receive(connection)


def receive(connection: socket.socket) -> bytes:
    """Some bytes; raises where the connection ends."""
    data = connection.recv(65536)
    if not data:
        raise SystemExit("the connection ended")
    return data


def measure_rate(server: Server) -> None:
    """One round over one keep-alive connection."""
    sent = request(BODY, server.port)
    with socket.create_connection(("127.0.0.1", server.port), 5) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(50):
            connection.sendall(sent)
            read_whole(connection)
        before, begun, count = server.cpu(), time.perf_counter(), 0
        while (elapsed := time.perf_counter() - begun) < SECONDS:
            connection.sendall(sent)
            read_whole(connection)
            count += 1
        server.rates.append(count / elapsed)
        server.cpus.append(1000 * (server.cpu() - before) / count)


async def one_stream(port: int) -> bool:
    """One stream on a connection of its own; whether it came to its end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request({**BODY, "stream": True}, port).replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1))
    data = await asyncio.wait_for(reader.read(-1), 60)
    writer.close()
    return b"message_stop" in data


async def streams(server: Server) -> None:
    """All streams at once."""
    begun = time.perf_counter()
    ended = await asyncio.gather(*(one_stream(server.port) for _ in range(STREAMS)), return_exceptions=True)
    server.streams.append(time.perf_counter() - begun)
    server.complete = sum(done is True for done in ended)


def servers(peers: dict[str, str], folder: Path) -> list[Server]:
    """Ours and the peers' that there are."""
    (folder / "fixtures").mkdir()
    (folder / "fixtures" / "hello.yaml").write_text(STUBLLM, "utf-8")
    (folder / "fakellm.yaml").write_text(FAKELLM, "utf-8")
    (folder / "hello.json").write_text(json.dumps(AIMOCK), "utf-8")
    arguments = {
        "fakellm": ["serve", "--port", "{port}"],
        "stubllm": ["serve", "--port", "{port}", "--fixture-dir", "fixtures", "--log-level", "error"],
        "aimock": ["--port", "{port}", "--fixtures", "hello.json", "--log-level", "silent"],
    }
    serve = "import argparse; from zlclient.cli import serve; p = argparse.ArgumentParser(); "
    serve += "serve.add_parser(p.add_subparsers()); a = p.parse_args(); raise SystemExit(a.run(a))"
    found = [Server("zlclient", [sys.executable, "-c", serve, "serve", "--port", "8960"], 8960)]
    for at, (name, rest) in enumerate(arguments.items(), 1):
        path = peers.get(name) or shutil.which("llmock" if name == "aimock" else name)
        if path:
            port = 8960 + at
            found.append(Server(name, [path, *(part.format(port=port) for part in rest)], port))
    return found


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        found = servers(dict(peer.split("=", 1) for peer in options.peer), Path(name))
        started: list[Server] = []
        try:
            started += [server for server in found if server.start(Path(name))]
            for _ in range(options.rounds):
                for server in started:
                    measure_rate(server)
                    asyncio.run(streams(server))
        finally:
            for server in found:
                if server.process is not None:
                    server.process.terminate()
    base = statistics.median(started[0].rates), statistics.median(started[0].cpus)
    print(
        f"{'server':10} {'req/s':>7} {'×ours':>6} {'CPU ms/req':>11} {'×ours':>6} {f'{STREAMS} streams s':>14} {'complete':>9}"
    )
    for server in started:
        rate, cpu, stream = (statistics.median(values) for values in (server.rates, server.cpus, server.streams))
        print(
            f"{server.name:10} {rate:7.0f} {rate / base[0]:6.2f} {cpu:11.3f} {cpu / base[1]:6.2f} {stream:14.2f} "
            f"{server.complete:5}/{STREAMS}"
        )


if __name__ == "__main__":
    main()
