"""A run that is killed at random moments ends as if it never was, and asks hardly anything twice."""

import json
import multiprocessing
import random
import time
from collections import Counter
from pathlib import Path

import pytest
from faulty import FaultyServer, anthropic_events

ROWS, KILLS, AT_ONCE = 2000, 20, 16
# What a process does that was forked from one in which the SDK is loaded already: loading takes longer than its life.
COMMAND = """
import argparse, os, sys
from zlclient.cli import batch
os.environ.update(environment)
os.chdir(folder)
sys.stdout = open("report.json", "w")
parser = argparse.ArgumentParser()
batch.add_parser(parser.add_subparsers())
args = parser.parse_args(words)
sys.exit(args.run(args))
"""


class Echo(FaultyServer):
    """Answers with the prompt's own words after a few milliseconds, and counts how often each was asked."""

    def __init__(self):
        super().__init__()
        self.asked = []

    async def _answer(self, writer, path, raw, step):
        prompt = json.loads(raw)["messages"][0]["content"]
        self.asked.append(prompt)
        number = int(prompt.split()[-1])
        if number % 100 == 99:
            return await super()._answer(writer, path, raw, {"status": 400, "delay": 0.01})
        events = list(anthropic_events((f"answer {number}",)))
        return await super()._answer(writer, path, raw, {"events": events, "delay": 0.01})


def start(server, folder, output):
    """A run in a process of its own."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["anthropic", "zlclient.batch.running", "zlclient.cli.batch"])
    words = ["batch", "prompts.jsonl", "-o", output, "--concurrency", str(AT_ONCE), "-q", "--json"]
    environment = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"}
    values = {"environment": environment, "folder": str(folder), "words": words}
    process = context.Process(target=exec, args=(COMMAND, values))
    process.start()
    return process


def finish(process, folder):
    process.join(60)
    return process.exitcode, json.loads((folder / "report.json").read_text())


def wait_for(server, count, process):
    end = time.monotonic() + 60
    while len(server.asked) < count:
        assert process.is_alive()
        assert time.monotonic() < end
        time.sleep(0.002)


@pytest.mark.slow
def test_twenty_kills_lose_nothing_and_pay_nothing_twice(tmp_path: Path):
    source = tmp_path / "prompts.jsonl"
    source.write_text("".join(json.dumps({"id": i, "prompt": f"Say {i % 1900}"}) + "\n" for i in range(ROWS)))
    moments = random.Random(7)
    with Echo() as server:
        broken = []
        for _ in range(KILLS):
            before = len(server.asked)
            process = start(server, tmp_path, "replies.jsonl")
            # some way into this run's own sending, so that what was in flight at the last kill is answered by now
            wait_for(server, before + moments.randint(2 * AT_ONCE, 90), process)
            time.sleep(moments.random() / 100)
            process.kill()
            process.join()
            broken.append(server.asked[before:])
        before = len(server.asked)
        code, report = finish(start(server, tmp_path, "replies.jsonl"), tmp_path)
        broken.append(server.asked[before:])
        total = Counter(server.asked)

        server.asked.clear()
        whole_code, whole = finish(start(server, tmp_path, "whole.jsonl"), tmp_path)
        assert len(server.asked) == 1900

    assert code == whole_code == 1  # some rows fail
    assert all(len(set(asked)) == len(asked) for asked in broken)  # no run asks the same twice
    assert len(total) == 1900
    assert max(total.values()) <= 2
    assert sum(total.values()) - 1900 <= KILLS * AT_ONCE
    for name in ("replies.jsonl", "replies.errors.jsonl"):
        expected = (tmp_path / name.replace("replies", "whole")).read_bytes()
        assert (tmp_path / name).read_bytes() == expected
    assert (report["rows"], report["answered"], report["failed"]) == (ROWS, 1980, 20)
    assert report["requests"] == len(broken[-1])
    assert whole["reused"] == 100
