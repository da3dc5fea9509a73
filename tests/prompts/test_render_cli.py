"""`zlclient render`."""

import argparse
import io
import json

import pytest

from zlclient.cli import render
from zlclient.errors import ConfigError, InputError

TEMPLATE = """---
name: t
inputs:
  doc: {kind: string, required: true, description: A document}
  n: {kind: integer, default: 2}
  tags: {kind: array, default: []}
outputs: {a: {kind: string}}
---
system:
n={{ n }} {{ tags | length }}

user:
<doc>{{ doc }}</doc>
"""


@pytest.fixture
def template(tmp_path):
    path = tmp_path / "t.prompty"
    path.write_text(TEMPLATE, encoding="utf-8")
    return str(path)


def run(*arguments):
    parser = argparse.ArgumentParser()
    render.add_parser(parser.add_subparsers())
    args = parser.parse_args(["render", *arguments])
    return args.run(args)


def test_text(template, capsys):
    assert run(template, "doc=a\u200bb", "n=3") == 0
    assert capsys.readouterr().out.startswith("system:\nn=3 0\n\nuser:\n<doc>ab</doc>\n\noptions: {")
    run(template, "doc=x")
    assert "untrusted: doc in message 1 (user), fenced by doc\n" in capsys.readouterr().out


def test_json_and_files(template, tmp_path, capsys, monkeypatch):
    (tmp_path / "doc.txt").write_text("from a file = 1", encoding="utf-8")
    assert run(template, f"doc=@{tmp_path / 'doc.txt'}", 'tags=["x"]', "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["system"] == "n=2 1"
    assert shown["messages"] == [{"role": "user", "content": "<doc>from a file = 1</doc>"}]
    assert shown["options"]["output"]["properties"]["a"]["type"] == "string"
    assert shown["untrusted"][0]["input"] == "doc"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("管道".encode())))
    run(template, "doc=@-", "--json")
    assert "管道" in json.loads(capsys.readouterr().out)["messages"][0]["content"]


def test_bundled_and_inputs(capsys):
    assert run("summary", "document=正文", "--language", "zh") == 0
    assert "<document>\n正文\n</document>" in capsys.readouterr().out
    run("judge", "--inputs")
    assert "question (string, required, untrusted): The question or task that was set" in capsys.readouterr().out
    run("judge", "--inputs", "--json")
    assert {item["name"] for item in json.loads(capsys.readouterr().out)} == {
        "question",
        "answer",
        "reference",
        "criteria",
    }


def test_upgrade(tmp_path, capsys):
    old = tmp_path / "old.prompty"
    old.write_text("---\nname: o\nmodel:\n  api: chat\n---\nuser:\nhi")
    run(str(old), "--upgrade")
    assert capsys.readouterr().out == "---\nname: o\nmodel:\n  apiType: chat\n---\nuser:\nhi"


@pytest.mark.parametrize(
    ("arguments", "error", "problem"),
    [
        (["doc"], InputError, "name=value"),
        (["doc=x", "n=many"], InputError, "not JSON"),
        (["doc=@/absent/file"], InputError, "cannot be read"),
        ([], InputError, "Missing required input"),
        (["doc=x", "--language", "zh"], InputError, "bundled"),
    ],
)
def test_wrong_arguments(template, arguments, error, problem):
    with pytest.raises(error, match=problem):
        run(template, *arguments)


def test_a_missing_template():
    with pytest.raises(ConfigError, match="no such file"):
        run("absent.prompty")
