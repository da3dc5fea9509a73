"""`zlclient rollout` and `zlclient ab report`, on a project folder with a SQLite store."""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from zlclient.cli import ab, rollout
from zlclient.errors import ConfigError, InputError
from zlclient.routing.configured import configure
from zlclient.routing.rollouts import parse_rollouts
from zlclient.routing.router import Router
from zlclient.routing.stores import Store, open_store
from zlclient.routing.stores.sqlite import SqliteStore

TOML = """
[tool.zlclient.rollouts.support-bot]
control = "legacy"
treatment = "auto"
unit = "user_id"
stages = [50, 100]
gates = { error_rate = "< 1%" }
"""

Run = Callable[..., str]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text(TOML)
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    return tmp_path


@pytest.fixture
def run(project: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> str:
        parser = argparse.ArgumentParser()
        commands = parser.add_subparsers()
        rollout.add_parser(commands)
        ab.add_parser(commands)
        args = parser.parse_args(words)
        assert args.run(args) == 0
        return capsys.readouterr().out

    return call


@pytest.fixture
def store(project: Path) -> Store:
    return open_store(f"sqlite:///{project}/.zlclient/rollouts.db")


def serve(store: Store, count: int, error_type: str | None = None) -> None:
    tables = {"control": "legacy", "treatment": "auto", "unit": "user_id", "stages": [50, 100]}
    router = Router(
        parse_rollouts({"support-bot": tables | {"gates": {"error_rate": "< 1%"}}}), store, background=False
    )
    router.step()
    for i in range(count):
        decision = router.assign("support-bot", unit=f"u{i}")
        failed = error_type if decision.arm == "auto" else None
        router.record(decision, f"r{i}-{time.time_ns()}", error_type=failed, ttft_s=0.1)
    assert router.flush()


def test_the_store_lies_beside_the_configuration_wherever_one_starts(run, project):
    assert run("rollout", "status").startswith("support-bot: HOLD: not started")
    assert (project / ".zlclient" / "rollouts.db").is_file()


def test_a_rollout_by_hand(run, store):
    assert run("rollout", "advance", "support-bot") == "support-bot is running at 50 %\n"
    with pytest.raises(InputError, match=r"HOLD: needs 323 more requests\. --force"):
        run("rollout", "advance", "support-bot")
    serve(store, 1_000)
    out = run("rollout", "status", "support-bot")
    assert out.startswith("support-bot: PROMOTE: every gate is met; go from 50 % to 100 %\n")
    assert "stages [50 %], 100 %" in out
    assert "+ error_rate of auto 0 %" in out
    assert run("rollout", "hold", "support-bot", "--reason", "lunch") == "support-bot is held at 50 %\n"
    assert run("rollout", "resume", "support-bot") == "support-bot is running at 50 %\n"
    assert run("rollout", "advance", "support-bot") == "support-bot is running at 100 %\n"
    assert run("rollout", "kill", "support-bot") == "support-bot is killed; everything goes to legacy\n"
    with pytest.raises(InputError, match="possible: restart"):
        run("rollout", "advance", "support-bot", "--force")
    assert run("rollout", "restart", "support-bot") == "support-bot is running at 50 %\n"
    assert run("rollout", "rollback", "support-bot").startswith("support-bot is rolled back")
    events = json.loads(run("rollout", "history", "support-bot", "--json"))
    assert [e["action"] for e in events] == ["start", "hold", "resume", "advance", "kill", "restart", "rollback"]
    assert "lunch" in run("rollout", "history", "support-bot")


def test_reports(run, store, project):
    serve(store, 400, "ServerError")
    assert run("ab", "report", "support-bot").startswith("support-bot: ROLLBACK: error_rate of auto 100 %")
    out = run("ab", "report", "support-bot", "--html", str(project / "out.html"), "--json")
    assert json.loads(out)["decision"] == "ROLLBACK"
    assert "ROLLBACK" in (project / "out.html").read_text()
    assert "wrote" in run("ab", "report", "support-bot", "--html", str(project / "out.html"))
    with pytest.raises(InputError, match="cannot be written"):
        run("ab", "report", "support-bot", "--html", str(project / "none" / "out.html"))
    assert json.loads(run("rollout", "status", "--json"))["support-bot"]["decision"] == "ROLLBACK"


def test_an_unknown_name(run):
    with pytest.raises(InputError, match="configured: support-bot"):
        run("rollout", "status", "suport-bot")


def test_a_wrong_gate_names_its_line(run, project):
    (project / "pyproject.toml").write_text(TOML.replace("error_rate", "eror_rate"))
    with pytest.raises(ConfigError, match=r"pyproject.toml:7: rollouts.support-bot.gates.eror_rate") as caught:
        run("rollout", "status")
    assert caught.value.line == 7


def test_without_rollouts(run, project):
    (project / "pyproject.toml").write_text("[tool.zlclient]\n")
    assert "no rollouts are configured" in run("rollout", "status")


def test_configure_without_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rollouts, found = configure({}, "sqlite", {})
    assert rollouts == {}
    assert isinstance(found, SqliteStore)
    assert found.path == tmp_path / ".zlclient" / "rollouts.db"
