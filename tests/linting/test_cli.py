"""The command: exit codes, options, and what goes to which stream."""

import argparse
import json
import sys

import pytest

from zlclient.cli.lint import add_parser
from zlclient.linting.running import watch


def run(*arguments):
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["lint", *map(str, arguments)])
    return args.run(args)


@pytest.fixture
def prompt(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "a.md"
    file.write_text("请尽量回答。\n请忽\u200b略错别字。\n", "utf-8")
    return file


def test_exit_codes(prompt, tmp_path, capsys):
    assert run("a.md") == 1
    assert "2 findings in 1 files, 1 fixable with --fix" in capsys.readouterr().err
    (tmp_path / "clean.md").write_text("用一句话回答。\n", "utf-8")
    assert run("clean.md") == 0
    (tmp_path / "gbk.md").write_bytes("请回答。".encode("gbk"))
    assert run("gbk.md", "clean.md") == 2
    assert "ZL001" in capsys.readouterr().out
    assert run("nope.md") == 2
    assert run("a.md", "--select", "ZL999") == 2
    assert run("a.md", "--target-model", "nope:x") == 2
    assert run("--update-baseline") == 2
    assert run("--watch", "--fix") == run("--watch", "--add-noqa") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("error: ") == 6
    assert "Traceback" not in err


def test_json_on_stdout_is_all_there_is(prompt, capsys):
    assert run("a.md", "--output-format", "json") == 1
    out, err = capsys.readouterr()
    assert [item["code"] for item in json.loads(out)] == ["ZL302", "ZL010"]
    assert err == ""


def test_select_ignore_and_statistics(prompt, capsys):
    assert run("a.md", "--select", "ZL3,ZL01", "--ignore", "ZL302", "--output-format", "concise") == 1
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["ZL010"]
    assert run("a.md", "--statistics", "--output-format", "concise") == 1
    assert "     1  ZL302  hedged-instruction\n" in capsys.readouterr().out
    assert run("a.md", "--statistics", "--output-format", "json") == 1
    assert {item["count"] for item in json.loads(capsys.readouterr().out)} == {1}


def test_fix(prompt, capsys):
    assert run("a.md", "--fix") == 1
    assert prompt.read_text("utf-8") == "请尽量回答。\n请忽略错别字。\n"
    assert "1 fixed" in capsys.readouterr().err
    prompt.write_text("确保绝对准确。\n一句话。\n", "utf-8")
    assert run("a.md", "--extend-select", "house", "--fix") == 1
    assert run("a.md", "--extend-select", "house", "--unsafe-fixes") == 0
    assert prompt.read_text("utf-8") == "一句话。\n"


def test_add_noqa_and_baseline(prompt, capsys):
    assert run("a.md", "--baseline", "b.json", "--update-baseline") == 0
    assert run("a.md", "--baseline", "b.json") == 0
    prompt.write_text("请尽量回答。\n最好能短。\n", "utf-8")
    assert run("a.md", "--baseline", "b.json") == 1
    assert run("a.md", "--add-noqa") == 0
    assert prompt.read_text("utf-8").count("<!-- zl: noqa ZL302 -->") == 2
    assert run("a.md") == 0


def test_explain_and_list(capsys):
    assert run("--explain", "ZL012") == 0
    assert "# tag-characters (ZL012)" in capsys.readouterr().out
    assert run("--explain", "tag-characters") == 0
    assert run("--explain", "ZL998") == 2
    capsys.readouterr()
    assert run("--list-rules", "--output-format", "json") == 0
    assert len(json.loads(capsys.readouterr().out)) >= 60
    assert run("--list-rules") == 0
    assert "ZL904  empty-guarantee" in capsys.readouterr().out


def test_server_without_its_extra_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "zlclient.linting.lsp", None)
    assert run("--server") == 2
    assert "zlclient[lsp]" in capsys.readouterr().err


def test_watch_reports_new_changed_and_gone_files(tmp_path):
    file = tmp_path / "a.md"
    file.write_text("a")
    steps = iter(["change", "nothing", "add", "remove", "stop"])

    def sleep(_):
        step = next(steps)
        if step == "change":
            file.write_text("longer")
        elif step == "add":
            (tmp_path / "b.md").write_text("b")
        elif step == "remove":
            (tmp_path / "b.md").unlink()
        elif step == "stop":
            raise KeyboardInterrupt

    seen = []

    def follow():
        for changed in watch(lambda: sorted(tmp_path.iterdir()), sleep):
            seen.append([item.name for item in changed])

    with pytest.raises(KeyboardInterrupt):
        follow()
    assert seen == [["a.md"], ["a.md"], ["b.md"], []]
