"""The local runner against a server that limits, fails and refuses."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from faulty import anthropic_events
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from zlclient.batch import batch, local
from zlclient.batch.report import BatchReport
from zlclient.batch.running import Plan, execute
from zlclient.errors import ConfigError, CredentialsError, InputError, Unauthorized
from zlclient.serving import LocalServer

LIMITED = {"status": 429, "headers": {"retry-after": "2"}}
PROMPTS = [{"id": f"r{i}", "prompt": f"Say {i}"} for i in range(30)]


def test_every_row_is_answered_in_order_and_duplicates_are_sent_once(folder, faulty):
    rows = [{"id": i, "prompt": f"Say {i % 4}", "metadata": {"n": i}} for i in range(20)]
    report = folder.run(rows, provider=None)
    assert [reply["id"] for reply in folder.replies] == list(range(20))
    assert {reply["text"] for reply in folder.replies} == {"Hello from loopback."}
    assert folder.replies[3]["metadata"] == {"n": 3}
    assert len(faulty.requests) == report.requests == 4
    assert report.ok
    assert (report.rows, report.answered, report.failed, report.reused) == (20, 20, 0, 16)
    assert (report.usage.input, report.usage.output) == (48, 24)
    assert report.cost == pytest.approx(sum(reply["cost"] for reply in folder.replies[:4]))
    assert folder.failures == []
    assert not (folder.path / "replies.errors.jsonl").exists()


def test_a_second_run_sends_nothing_and_writes_the_same(folder, faulty):
    folder.run(PROMPTS, provider=None)
    before, sent = folder.output.read_bytes(), len(faulty.requests)
    folder.output.write_bytes(before[:100])
    report = folder.run(PROMPTS, provider=None)
    assert folder.output.read_bytes() == before
    assert len(faulty.requests) == sent
    assert (report.requests, report.reused) == (0, 30)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(choices=st.lists(st.integers(0, 12), min_size=1, max_size=40), data=st.data())
def test_a_resume_at_any_prefix_gives_the_same_output(tmp_path_factory, choices, data):
    rows = [{"id": at, "prompt": f"Paris is {choice}. Which?"} for at, choice in enumerate(choices)]
    rows[len(rows) // 2]["temprature"] = 1
    path = tmp_path_factory.mktemp("resume")
    options = {"provider": "local", "concurrency": data.draw(st.integers(1, 8))}
    batch(rows, output=path / "whole.jsonl", **options)
    ledger = f"sqlite:///{path}/shared.db"
    for cut in sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3))):
        batch(rows[:cut], output=path / "broken.jsonl", ledger=ledger, **options)
    batch(rows, output=path / "broken.jsonl", ledger=ledger, **options)
    for name in ("{}.jsonl", "{}.errors.jsonl"):
        assert (path / name.format("broken")).read_bytes() == (path / name.format("whole")).read_bytes()


def test_unordered_gives_the_same_rows_as_they_come(folder, faulty):
    faulty.script({"delay": 0.15}, default={})
    folder.run(PROMPTS, provider=None, concurrency=4, ordered=False)
    ids = [reply["id"] for reply in folder.replies]
    assert ids[0] != "r0"
    assert sorted(ids) == sorted(row["id"] for row in PROMPTS)


def test_failed_rows_go_aside_and_a_new_run_tries_them_again(folder, faulty):
    faulty.script({"status": 400}, {}, {"status": 404}, {}, default={})
    report = folder.run(PROMPTS[:5], provider=None, concurrency=1)
    assert (report.answered, report.failed, report.ok) == (3, 2, False)
    assert [line["id"] for line in folder.failures] == ["r0", "r2"]
    assert folder.failures[0]["input"] == PROMPTS[0]
    error = folder.failures[0]["error"]
    assert (error["type"], error["status"]) == ("BadRequest", 400)
    report = folder.run(PROMPTS[:5], provider=None)
    assert (report.requests, report.answered, report.failed) == (2, 5, 0)
    assert folder.failures == []
    assert [reply["id"] for reply in folder.replies] == [row["id"] for row in PROMPTS[:5]]


def test_rate_limits_slow_down_and_lose_nothing(folder, faulty, clock):
    faulty.script({}, {}, *[LIMITED] * 6, {}, LIMITED, default={})
    report = folder.run(PROMPTS, provider=None, concurrency=8, clock=clock)
    assert (report.answered, report.failed) == (30, 0)
    assert report.requests == 37
    assert sum(clock.slept) >= 2
    assert len({request.raw for request in faulty.requests}) == 30


def test_a_row_that_is_always_limited_fails_in_the_end(folder, faulty, clock):
    faulty.script(default=LIMITED)
    report = folder.run(PROMPTS[:1], provider=None, clock=clock)
    assert report.failed == 1
    assert len(faulty.requests) == local.LIMITED_TRIES
    assert folder.failures[0]["error"]["type"] == "RateLimited"


def test_what_the_user_says_about_429_is_kept(folder, faulty, clock):
    faulty.script(LIMITED, default={})
    report = folder.run(PROMPTS[:1], provider=None, clock=clock, on_rate_limit="wait")
    assert (report.answered, report.requests) == (1, 2)


def test_a_refused_key_stops_the_run_and_keeps_what_was_answered(folder, faulty):
    faulty.script({}, {}, default={"status": 401})
    with pytest.raises(Unauthorized):
        folder.run(PROMPTS, provider=None, concurrency=2)
    assert len(faulty.requests) <= 4
    faulty.script(default={})
    assert folder.run(PROMPTS, provider=None).requests == 28


def test_no_key_is_an_error_at_once(folder):
    with pytest.raises(CredentialsError):
        folder.run(PROMPTS, provider=None)


def test_a_budget_of_requests_stops_cleanly_and_the_next_run_goes_on(folder, faulty):
    report = folder.run(PROMPTS, provider=None, max_requests=10)
    assert (report.stopped, report.requests, report.answered) == ("budget", 10, 10)
    assert [reply["id"] for reply in folder.replies] == [f"r{i}" for i in range(10)]
    assert "start it again" in str(report)
    report = folder.run(PROMPTS, provider=None, max_requests=20)
    assert (report.stopped, report.requests, report.answered) == (None, 20, 30)
    assert len(faulty.requests) == 30


def test_budgets_of_tokens_and_money_are_kept(folder, faulty):
    report = folder.run(PROMPTS, provider=None, max_tokens_total=100)
    assert report.stopped == "budget"
    assert 18 * 3 <= report.usage.total_input + report.usage.output <= 100
    one = report.cost / report.requests
    report = folder.run(PROMPTS, provider=None, max_cost=one * 6)
    assert report.stopped == "budget"
    assert 0 < report.cost <= one * 6


def test_what_a_failed_check_took_counts_too(folder, faulty):
    rows = [{"prompt": "p", "format": {"max_words": 1}, "format_policy": "raise"}]
    report = folder.run(rows, provider=None)
    assert (report.failed, report.usage.output) == (1, 6)
    assert folder.failures[0]["error"]["type"] == "CheckError"
    assert folder.failures[0]["error"]["text"] == "Hello from loopback."


def test_parsed_answers_and_checks_are_in_the_output(folder):
    class Person(BaseModel):
        name: str
        age: int

    rows = [{"prompt": "extract the person: Ada Lovelace is 36 years old", "source": "Ada Lovelace is 36 years old"}]
    folder.run(rows, output_type=Person)
    assert folder.replies[0]["parsed"] == {"name": "Ada Lovelace", "age": 36}
    assert folder.replies[0]["checks"]["fidelity"]


def test_a_document_is_answered_over(folder):
    (folder.path / "contract.txt").write_text("Article 1\nThe fee is 300 euros.\n\nArticle 2\nThe term is 2 years.\n")
    folder.run([{"prompt": "What is the fee?", "document": str(folder.path / "contract.txt")}])
    assert "300" in folder.replies[0]["text"]


def test_templates_and_formats(folder):
    (folder.path / "rows.csv").write_text("id,what,colour\n1,Paris is big,red\n2,Rome is old,blue\n")
    (folder.path / "t.prompty").write_text("user:\n{{ what }}. What is said?")
    report = folder.run(folder.path / "rows.csv", template=folder.path / "t.prompty")
    assert [reply["id"] for reply in folder.replies] == ["1", "2"]
    assert report.unused == ("colour",)
    assert "colour" in str(report)


def test_a_folder_of_texts(folder):
    texts = folder.path / "texts"
    texts.mkdir()
    for i in range(3):
        (texts / f"{i}.txt").write_text(f"Revenue was {i}00 million.")
    folder.run(str(texts), template="summary")
    assert [reply["id"] for reply in folder.replies] == ["0.txt", "1.txt", "2.txt"]
    assert folder.run(str(texts)).answered == 3


def test_standard_input_is_read_as_it_comes(folder, faulty):
    program = "import sys, zlclient.batch as b; print(b.batch('-', output=sys.argv[1], provider='local').answered)"
    lines = "".join(json.dumps(row) + "\n" for row in PROMPTS[:3])
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder.output)], input=lines, capture_output=True, text=True, check=True
    )
    assert done.stdout == "3\n"


def test_memory_is_bounded_by_the_window(folder):
    held = []

    def rows():
        for i in range(6000):
            held.append(i - len(folder.output.read_bytes().splitlines()) if i % 500 == 499 else 0)
            yield {"id": i, "prompt": f"Say {i % 2000}"}

    report = folder.run(rows(), concurrency=16)
    assert report.answered == 6000
    assert max(held) <= 1024 + 2 * local.CHUNK


def test_inside_a_running_loop(folder):
    import asyncio

    async def notebook():
        return folder.run(PROMPTS[:2])

    assert asyncio.run(notebook()).answered == 2


def test_ctrl_c_inside_a_running_loop_gives_up_what_is_in_flight(folder, faulty):
    import asyncio

    faulty.script(default={"delay": 0.1})

    async def notebook():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.6, os.kill, (os.getpid(), signal.SIGINT)).start()
        return folder.run([f"p{i}" for i in range(500)], provider=None, concurrency=4, timeout=5)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(notebook())
    assert len(faulty.requests) < 500


def test_the_package_is_called_like_its_function(folder):
    package: Any = sys.modules["zlclient.batch"]
    assert isinstance(package(["hello"], output=folder.output, provider="local"), BatchReport)


def test_two_runs_cannot_write_one_file(folder):
    def rows():
        yield {"prompt": "first"}
        with pytest.raises(InputError, match="another run is writing it"):
            folder.run(["second"])

    assert folder.run(rows()).answered == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "concurrency"),
        ({"max_requests": 0}, "max_requests"),
        ({"runner": "spark"}, "must be one of local, provider, ray"),
        ({"temprature": 1}, "did you mean"),
        ({"ledger": "redis://x"}, "postgresql"),
        ({"template": "nowhere.prompty"}, "no such file"),
    ],
)
def test_wrong_options_are_told_before_anything_is_touched(folder, options, message):
    folder.output.write_text("precious")
    with pytest.raises((InputError, ConfigError), match=message):
        folder.run(["a"], **options)
    assert folder.output.read_text() == "precious"


def test_the_source_is_never_overwritten(folder):
    source = folder.rows(PROMPTS, "replies.jsonl")
    with pytest.raises(InputError, match="overwrite the source"):
        folder.run(source)
    source = folder.rows(PROMPTS, "replies.errors.jsonl")
    (folder.path / "replies.jsonl").unlink()
    with pytest.raises(InputError, match="overwrite the source"):
        folder.run(source)


def test_ctrl_c_waits_for_what_is_in_flight_and_keeps_it(folder, faulty):
    faulty.script(default={"delay": 0.2})
    source = folder.rows(PROMPTS)

    def interrupt():
        while len(faulty.requests) < 6:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    report = execute(Plan(source=source, output=folder.output, concurrency=4))
    assert report.stopped == "interrupted"
    assert report.answered == report.requests == len(faulty.requests) < 30
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert folder.run(source, provider=None).requests == 30 - report.requests


def test_thrice_the_rows_take_no_more_memory(tmp_path):
    """A smaller copy of tests/benchmarks/batch.py."""
    program = """
import resource, sys
import zlclient.batch as b
rows = ({"id": i, "prompt": f"Say {i}"} for i in range(int(sys.argv[1])))
report = b.batch(rows, output=sys.argv[2], provider="local", concurrency=64)
print(report.answered, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    peaks = []
    for count in (1500, 4500):
        words = [sys.executable, "-c", program, str(count), str(tmp_path / f"{count}.jsonl")]
        answered, peak = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
        assert int(answered) == count
        peaks.append(int(peak))
    assert peaks[1] < peaks[0] * 1.1


def test_answers_with_more_than_text_keep_their_blocks(folder, faulty):
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    events = list(anthropic_events(()))
    events[1:3] = [{"type": "content_block_start", "index": 0, "content_block": call}, events[2]]
    faulty.script(default={"events": events})
    folder.run(PROMPTS[:1], provider=None)
    assert folder.replies[0]["content"][0]["name"] == "f"


def test_an_sdk_client_of_ones_own(folder):
    server = LocalServer()
    assert folder.run(PROMPTS[:2], clients={"local": server}).answered == 2


def test_a_source_that_breaks_is_told_after_what_was_read_is_kept(folder, faulty):
    (folder.path / "rows.csv").write_bytes(b"prompt\n" + b"".join(b"p%d\n" % i for i in range(100)) + b'"open\n')
    with pytest.raises(InputError, match="line"):
        folder.run(folder.path / "rows.csv", provider=None, concurrency=4)
    sent = len(faulty.requests)
    assert len(folder.replies) == sent
    (folder.path / "rows.csv").write_bytes(b"prompt\n" + b"".join(b"p%d\n" % i for i in range(100)))
    assert folder.run(folder.path / "rows.csv", provider=None).requests == 100 - sent


def test_large_rows_are_read_a_few_at_a_time(folder, monkeypatch):
    monkeypatch.setattr(local, "WINDOW_BYTES", 100_000)
    monkeypatch.setattr("zlclient.batch.jobs.CHUNK_BYTES", 50_000)
    ahead = []

    def rows():
        for i in range(60):
            ahead.append(i - folder.output.read_bytes().count(b"\n"))
            yield f"{i} " + "long " * 2000

    assert folder.run(rows(), sanitize="off").answered == 60
    assert max(ahead) <= 20
