"""`zlclient batch` as a person meets it: options, streams, the report, exit codes."""

import argparse
import io
import json

import pytest

from zlclient.batch.progress import Progress
from zlclient.batch.report import BatchReport
from zlclient.cli import batch


def main(*words: object) -> int:
    parser = argparse.ArgumentParser()
    batch.add_parser(parser.add_subparsers())
    args = parser.parse_args(["batch", *map(str, words)])
    return args.run(args)


@pytest.fixture
def source(folder):
    return folder.rows([{"id": i, "prompt": f"Paris has {i} gates. How many?"} for i in range(3)])


def test_offline_without_a_key_says_so(folder, source, capsys):
    assert main(source, "-o", folder.output) == 0
    out, err = capsys.readouterr()
    assert out.startswith("3 of 3 rows answered")
    assert "offline engine (no key is set)" in err
    assert [reply["id"] for reply in folder.replies] == [0, 1, 2]


def test_options_reach_every_row(folder, source, faulty, capsys):
    words = [
        "-m",
        "legacy",
        "-d",
        "finance",
        "--max-tokens",
        "9",
        "-s",
        "Be brief.",
        "--json",
        "-q",
        "--concurrency",
        "2",
    ]
    assert main(source, "-o", folder.output, *words) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["ok"]
    assert err == ""
    body = faulty.requests[0].body
    assert (body["model"], body["max_tokens"], body["system"]) == ("claude-sonnet-4-6", 9, "Be brief.")
    assert body["messages"][0]["content"].startswith("【Financial data】")


def test_exit_codes(folder, source, faulty, capsys):
    assert main(source, "-o", folder.output, "--max-requests", 2, "--offline") == 9
    assert "stopped by its budget" in capsys.readouterr().out
    bad = folder.rows([{"prompt": "a"}, {"nope": 1}], "bad.jsonl")
    errors = folder.path / "elsewhere.jsonl"
    assert main(bad, "-o", folder.output, "--errors", errors, "--offline") == 1
    assert str(errors) in capsys.readouterr().out
    assert json.loads(errors.read_text())["id"] == 2
    report = BatchReport(output=folder.output, errors=errors, ledger="", stopped="interrupted")
    assert batch.exit_code(report) == 130
    with pytest.raises(SystemExit, match="2"):
        main(source)


def test_the_provider_runner_and_a_ledger_elsewhere(folder, source, capsys):
    ledger = f"sqlite:///{folder.path}/l.db"
    assert main(source, "-o", folder.output, "--runner", "provider", "--offline", "--ledger", ledger, "-q") == 0
    first = folder.output.read_bytes()
    assert main(source, "-o", folder.output, "--offline", "--ledger", ledger, "-q", "--unordered", "--json") == 0
    out = capsys.readouterr().out
    assert json.loads(out[out.index("{") :])["requests"] == 0
    assert sorted(folder.output.read_bytes().splitlines()) == sorted(first.splitlines())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def report(**counts) -> BatchReport:
    return BatchReport(output="o", errors="e", ledger="l", **counts)  # type: ignore[arg-type]


def test_the_progress_bar_has_rate_spend_and_time_left():
    now = [0.0]
    told = report(rows=60)
    stream = Terminal()
    progress = Progress(told, lambda: 0.3, lambda: now[0], stream=stream)
    progress.tick()
    told.requests, told.cost = 1, 0.25
    progress.tick()
    now[0], told.answered, told.failed = 10.0, 38, 2
    with progress:
        progress.tick()
    assert stream.getvalue().endswith("\r\x1b[2K")
    assert stream.getvalue().split("\r\x1b[2K")[-2] == (
        "[####----------------]  20%  40 rows  4.0 rows/s  $0.2500  ETA 0:40  2 failed"
    )


def test_rows_from_the_ledger_do_not_count_as_speed():
    now = [0.0]
    told = report(rows=1000, answered=1000)
    progress = Progress(told, lambda: None, lambda: now[0], stream=io.StringIO())
    now[0], told.requests = 1.0, 1
    progress.tick()
    now[0], told.answered, told.cost = 11.0, 1020, None
    assert progress.line(now[0]) == "1020 rows  2.0 rows/s  $?"


def test_without_a_terminal_it_is_a_line_now_and_then_and_quiet_is_quiet():
    now = [0.0]
    for quiet, wanted in ((False, 3), (True, 0)):
        stream = io.StringIO()
        progress = Progress(report(), lambda: None, lambda: now[0], stream=stream, quiet=quiet)
        with progress:
            for _ in range(100):
                now[0] += 1
                progress.tick()
        assert stream.getvalue().count("\n") == wanted


def test_the_report_as_text_and_json():
    told = report(rows=2, answered=1, failed=1, unused=("x",))
    assert told.as_dict()["ok"] is False
    assert json.loads(told.to_json())["usage"]["input"] == 0
    assert "failed     1 rows" in str(told)
