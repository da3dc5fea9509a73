"""The command line as a person meets it: streams, banner, JSON, files, exit codes."""

import io
import json
import os
import shlex
import subprocess
import sys

import pytest

from zlclient.cli import main


class Bytes(io.StringIO):
    def __init__(self, data: bytes):
        super().__init__()
        self.buffer = io.BytesIO(data)


def test_offline_without_a_key_says_so(capsys):
    assert main(["chat", "交付量是多少？\n\n2024年交付量为386810辆。营收213亿美元。"]) == 0
    out, err = capsys.readouterr()
    assert out == "2024年交付量为386810辆。\n"
    assert "offline engine (no key is set)" in err


def test_with_a_key_the_provider_answers_and_there_is_no_banner(faulty, capsys):
    assert main(["chat", "hi", "there", "-v", "-d", "finance"]) == 0
    out, err = capsys.readouterr()
    assert out == "Hello from loopback.\n"
    assert "offline" not in err
    assert "usage: 12 in" in err
    assert faulty.requests[0].body["messages"][0]["content"] == "【Financial data】hi there"


def test_offline_is_offline_even_with_a_key(faulty, capsys):
    assert main(["chat", "hi", "--offline"]) == 0
    assert faulty.requests == []
    assert "asked for" in capsys.readouterr().err


def test_smollm2_without_its_weights_says_how_to_get_them(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["chat", "--offline", "--model", "local:smollm2", "hi"]) == 5
    err = capsys.readouterr().err
    assert "SmolLM2 is a small model" in err
    assert "fetch them with: zlclient engine fetch smollm2" in err


def test_json(faulty, capsys):
    assert main(["chat", "hi", "--json"]) == 0
    reply = json.loads(capsys.readouterr().out)
    assert (reply["text"], reply["usage"]["output"]) == ("Hello from loopback.", 6)


def test_stdin_and_files(faulty, capsys, monkeypatch, tmp_path):
    note = tmp_path / "note.txt"
    note.write_bytes(b"\xef\xbb\xbffrom a file")
    monkeypatch.setattr(sys, "stdin", Bytes("from 标准输入".encode()))
    assert main(["chat", "ask", "-f", str(note), "-f", "-"]) == 0
    assert faulty.requests[0].body["messages"][0]["content"] == "ask\n\nfrom a file\n\nfrom 标准输入"
    monkeypatch.setattr(sys, "stdin", Bytes(b"only stdin"))
    assert main(["chat"]) == 0
    assert faulty.requests[1].body["messages"][0]["content"] == "only stdin"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["chat", "-f", "/nonexistent"], 3),
        (["chat", "hi", "--model", "nope"], 3),
        (["chat", "hi", "--domain", "nope"], 3),
        (["chat", "hi", "--offline", "--provider", "openai"], 3),
        (["chat", "hi", "--model", "openai:gpt-6.1-sol"], 4),
        (["chat", "hi", "--provider", "openai"], 4),
    ],
)
def test_exit_codes_of_bad_input_and_configuration(capsys, arguments, code):
    assert main(arguments) == code
    assert capsys.readouterr().err.startswith("zlclient: ")


@pytest.mark.parametrize(
    ("step", "code"), [({"status": 500}, 5), ({"status": 401}, 5), ({"delay": 9}, 6), ({"stall_after": 1}, 6)]
)
def test_exit_codes_of_providers_and_timeouts(faulty, capsys, step, code):
    faulty.script(default=step)
    assert main(["chat", "hi", "--timeout", "0.2", "--retry", "0"]) == code


def test_bad_usage_is_2(capsys):
    for arguments in ([], ["nope"], ["chat", "--sanitize", "nope"], ["chat", "--nope"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2


def test_not_utf8_is_bad_input(capsys, tmp_path):
    (tmp_path / "gbk.txt").write_bytes("中文".encode("gbk"))
    assert main(["chat", "-f", str(tmp_path / "gbk.txt")]) == 3
    assert "is not UTF-8" in capsys.readouterr().err


def test_explain(capsys, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret-key")
    assert main(["explain", "Q1\u200b", "--domain", "finance", "--temperature", "0.2"]) == 0
    out = capsys.readouterr().out
    assert "POST https://api.anthropic.com/v1/messages" in out
    assert "sanitise/standard" in out
    assert "tune/temperature" in out
    assert "secret-key" not in out
    assert main(["explain", "hi", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["wire"]["body"]["messages"] == [{"role": "user", "content": "hi"}]
    assert shown["bounds"]["first_event"] == 5.0


def test_config(capsys, monkeypatch):
    monkeypatch.setenv("ZLCLIENT_TIMEOUT", "9")
    assert main(["config"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("timeout"))
    assert line.split() == ["timeout", "9.0", "ZLCLIENT_TIMEOUT"]
    assert main(["config", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["timeout"] == {"value": 9.0, "origin": "ZLCLIENT_TIMEOUT"}
    monkeypatch.setenv("ZLCLIENT_TIMEOUT", "soon")
    assert main(["config"]) == 4


def test_a_closed_pipe_is_no_error():
    program = [sys.executable, "-m", "zlclient.cli", "config"]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.wait() == 0
    assert process.stderr.read() == b""


def shell(line, **variables):
    """The result of a command line, where `zlclient` is this checkout's."""
    line = line.replace("zlclient", f"{shlex.quote(sys.executable)} -m zlclient.cli")
    return subprocess.run(line, shell=True, capture_output=True, env={**os.environ, **variables}, check=False)


@pytest.mark.parametrize("command", ["chat --offline", "chat --offline --json", "explain --offline", "config"])
def test_an_output_that_knows_no_such_character(command):
    prompt = "" if command == "config" else "'交付量是多少？ 交付量为386810辆。'"
    result = shell(f"zlclient {command} {prompt}", PYTHONIOENCODING="ascii", ZLCLIENT_STORE="库.sqlite")
    assert (result.returncode, b"Traceback" in result.stderr) == (0, False)
    assert b"?" in result.stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("options", ["chat --offline hi", "chat --offline --json hi", "explain --offline hi", "config"])
def test_an_output_that_takes_nothing(options):
    result = shell(f"zlclient {options} >/dev/full")
    assert result.returncode == 8
    assert result.stderr.endswith(b"zlclient: No space left on device\n")


@pytest.mark.skipif(os.name == "nt", reason="the shell's words for closed streams")
def test_closed_streams():
    no_input = shell("zlclient chat --offline <&-")
    assert (no_input.returncode, b"there is no prompt" in no_input.stderr) == (3, True)
    assert shell("zlclient chat --offline hi >&-").returncode == 0
    no_errors = shell("zlclient chat --offline 'How many? There were 386810.' 2>&-")
    assert (no_errors.returncode, no_errors.stdout) == (0, b"There were 386810.\n")


def test_a_name_no_file_can_have(capsys):
    assert main(["chat", "-f", "a\0b"]) == 3
    assert "cannot be read" in capsys.readouterr().err


def test_explain_shows_no_secret(capsys, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://user:secret@127.0.0.1:9")
    monkeypatch.setenv("ZLCLIENT_PROVIDERS__ANTHROPIC__HEADERS__COOKIE", "secret")
    for arguments in (["explain", "hi"], ["explain", "hi", "--json"], ["config"], ["config", "--json"]):
        assert main(arguments) == 0
        out = capsys.readouterr().out
        assert "secret" not in out
        assert "http://***@127.0.0.1:9" in out


def test_version_and_help(capsys):
    for flag, wanted in (("--version", "zlclient 0."), ("--help", "Exit codes")):
        with pytest.raises(SystemExit):
            main([flag])
        assert wanted in capsys.readouterr().out
