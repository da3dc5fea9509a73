"""The example runs, tells the story it promises, and writes its report."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "canary.py"


def test_canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.html"
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), str(report)])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    actions = [line.split()[2] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert actions == ["rollback", "advance", "advance", "advance", "advance"]
    assert "the rollout is complete" in report.read_text()
