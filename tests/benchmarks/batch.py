"""Rows a second and memory of `zlclient.batch` beside a bare loop over the same AsyncClient, in one run.

    python tests/benchmarks/batch.py [--rows 10000] [--concurrency 64] [--rounds 3]

Both ask our own server over a socket, in a process of its own. Each measurement is a process of its own too, so that its
peak of memory is its own; the bare loop (asyncio.gather behind a semaphore) keeps no ledger and holds all replies. The
last lines repeat the run with its ledger, with nothing left to send, and tell how memory grows with the rows.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PRELUDE = """
import asyncio, json, resource, sys, time
import zlclient
from zlclient.batch import batch
source, output, at_once = sys.argv[1], sys.argv[2], int(sys.argv[3])
began = time.perf_counter()
"""
OURS = """
answered = batch(source, output=output, concurrency=at_once, timeout=60).answered
"""
BARE = """
async def main():
    gate = asyncio.Semaphore(at_once)
    async with zlclient.AsyncClient(timeout=60) as client:
        async def ask(row):
            async with gate:
                return await client.chat(row["prompt"])
        return await asyncio.gather(*(ask(json.loads(line)) for line in open(source)))
answered = len(asyncio.run(main()))
"""
EPILOGUE = """
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([answered, time.perf_counter() - began, peak]))
"""


def server() -> tuple[subprocess.Popen[bytes], str]:
    """Our own server on a free port, once it accepts connections."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "zlclient.cli", "serve", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return process, f"http://127.0.0.1:{port}"
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not start")


def measure(program: str, source: Path, output: Path, at_once: int, url: str) -> tuple[float, float]:
    """(seconds, peak MiB) of one run; raises unless every row was answered."""
    env = {**os.environ, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k"}
    words = [sys.executable, "-c", PRELUDE + program + EPILOGUE, str(source), str(output), str(at_once)]
    done = subprocess.run(words, env=env, check=True, stdout=subprocess.PIPE)
    answered, seconds, peak = json.loads(done.stdout.splitlines()[-1])
    rows = sum(1 for _ in source.open())
    if answered != rows:
        raise SystemExit(f"{rows - answered} rows were lost")
    return seconds, peak


def write(path: Path, rows: int) -> Path:
    """An input of so many different rows."""
    path.write_text(
        "".join(json.dumps({"id": i, "prompt": f"Paris has {i} gates. How many?"}) + "\n" for i in range(rows))
    )
    return path


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    process, url = server()
    ours: list[tuple[float, float]] = []
    bare: list[tuple[float, float]] = []
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            source = write(folder / "rows.jsonl", options.rows)
            for at in range(options.rounds):
                ours.append(measure(OURS, source, folder / f"{at}.jsonl", options.concurrency, url))
                bare.append(measure(BARE, source, folder / "none", options.concurrency, url))
            again = measure(OURS, source, folder / "0.jsonl", options.concurrency, url)
            ids = [json.loads(line)["id"] for line in (folder / "0.jsonl").open()]
            assert ids == list(range(options.rows))
            fifth = measure(
                OURS, write(folder / "fifth.jsonl", options.rows // 5), folder / "f.jsonl", options.concurrency, url
            )
    finally:
        process.terminate()
    print(f"{options.rows} rows, {options.concurrency} at once, no row lost")
    print(f"{'':14} {'rows/s':>7} {'ratio':>6} {'peak MiB':>9} {'ratio':>6}")
    base = statistics.median(options.rows / seconds for seconds, _ in bare), statistics.median(peak for _, peak in bare)
    for label, runs in (("zlclient.batch", ours), ("bare loop", bare)):
        rate = statistics.median(options.rows / seconds for seconds, _ in runs)
        peak = statistics.median(peak for _, peak in runs)
        print(f"{label:14} {rate:7.0f} {rate / base[0]:6.2f} {peak:9.1f} {peak / base[1]:6.2f}")
    print(f"resumed, nothing left to send: {options.rows / again[0]:.0f} rows/s")
    peak = statistics.median(peak for _, peak in ours)
    print(f"peak at {options.rows // 5} rows {fifth[1]:.1f} MiB, at {options.rows} rows {peak:.1f} MiB")


if __name__ == "__main__":
    main()
