"""`zlclient ask`: the answer on stdout, its sources after it, the bar on a terminal only."""

import argparse
import io
import json

import pytest

import zlclient
from zlclient.answering.jobs import Progress
from zlclient.cli import ask

LAW = "第一章 总则\n第一条 诉讼时效期间为三年。\n第二条 违约金不得超过合同金额的百分之三十。\n第二章 期限\n第三条 租赁期限为五年。\n"


@pytest.fixture
def law(tmp_path):
    path = tmp_path / "law.txt"
    path.write_text(LAW * 40, "utf-8")
    return path


def run(*arguments):
    parser = argparse.ArgumentParser()
    ask.add_parser(parser.add_subparsers())
    args = parser.parse_args(["ask", *map(str, arguments)])
    return args.run(args)


def test_the_answer_and_its_sources(law, capsys):
    assert run(law, "诉讼时效期间为几年？") == 0
    out, err = capsys.readouterr()
    answer, _, source = out.strip().splitlines()
    assert answer == "第一条 诉讼时效期间为三年。"
    assert source.startswith("[1] 第一章 总则 › 第一条, characters ")
    first, _, last = source.rpartition(" ")[2].partition("–")
    assert (LAW * 40)[int(first) : int(last)] == answer
    assert "offline engine (no key is set)" in err


def test_in_parts_with_coverage(law, capsys):
    assert run(law, "诉讼时效期间为几年？", "--segment-tokens", 400, "--offline", "--no-sources", "-v") == 0
    out, err = capsys.readouterr()
    assert out == "第一条 诉讼时效期间为三年。\n"
    assert "segments read, 100.0% of the characters" in err
    assert "note: segment/parts" in err


def test_json(law, capsys):
    assert run(law, "租赁期限为几年？", "--json") == 0
    reply = json.loads(capsys.readouterr().out)
    assert reply["citations"][0]["supported"] is True
    assert reply["coverage"]["share"] == 1.0


def test_what_is_not_supported_is_said(law, faulty, capsys):
    assert run(law, "什么？") == 0
    assert "[1] not supported by the document: Hello from loopback." in capsys.readouterr().out


def test_what_was_not_read_is_said(law, faulty, capsys):
    faulty.script({"status": 400})
    options = ("--segment-tokens", 400, "--on-segment-error", "skip", "--concurrency", 1)
    assert run(law, "什么？", *options) == 0
    err = capsys.readouterr().err
    assert "coverage: " in err
    assert "(BadRequest)" in err


def test_a_missing_file_is_bad_input(tmp_path):
    with pytest.raises(zlclient.InputError, match="cannot be read"):
        run(tmp_path / "none.txt", "Why?")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_bar_is_drawn_on_a_terminal_and_taken_away():
    screen = Terminal()
    bar = ask.Bar(screen)
    bar(Progress("read", 3, 12, 1))
    assert screen.getvalue() == "\rreading [████████░░░░░░░░░░░░░░░░] 3/12 segments, 1 failed"
    drawn = len(screen.getvalue()) - 1
    bar.clear()
    assert screen.getvalue().endswith(f"failed\r{' ' * drawn}\r")
    silent = io.StringIO()
    ask.Bar(silent)(Progress("read", 3, 12, 0))
    assert silent.getvalue() == ""
