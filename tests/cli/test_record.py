"""`zlclient record`: its options reach the proxy, and its mistakes are named before anything listens."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from zlclient.cli import record
from zlclient.errors import ConfigError


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    record.add_parser(parser.add_subparsers())
    return parser.parse_args(["record", *arguments])


def test_it_serves_a_recording_proxy_and_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    served: list[Any] = []

    def serve(handler: Any, host: str, port: int, on_ready: Any) -> None:
        served.append((type(handler).__name__, host, port))
        on_ready(f"http://{host}:{port}")
        raise KeyboardInterrupt

    monkeypatch.setattr("zlclient.serving.app.serve", serve)
    out = str(tmp_path / "c.jsonl")
    args = parsed("--upstream", "https://api.anthropic.com", "--out", out, "--port", "9", "--redact", r"k-\d+")
    assert args.run(args) == 0
    assert served == [("RecordingProxy", "127.0.0.1", 9)]
    assert (
        capsys.readouterr().out
        == f"zlclient record: http://127.0.0.1:9 → https://api.anthropic.com, written to {out}\n"
    )


def test_mistakes_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    args = parsed("--upstream", "nowhere", "--out", str(tmp_path / "c.jsonl"))
    with pytest.raises(ConfigError, match="upstream = 'nowhere'"):
        args.run(args)
    with pytest.raises(SystemExit):
        parsed("--upstream", "https://h", "--out", "c", "--redact", "(")
    assert "no regular expression" in capsys.readouterr().err
