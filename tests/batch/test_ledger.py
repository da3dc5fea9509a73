"""The ledger: what is in it stays, on SQLite and PostgreSQL alike."""

import subprocess
import sys
import threading

import pytest

from zlclient.batch.ledger import LedgerUnavailable, open_ledger
from zlclient.batch.outcomes import Outcome, failed
from zlclient.errors import ConfigError


@pytest.fixture(scope="module")
def postgres(tmp_path_factory, routing_servers):
    """An address of a real PostgreSQL."""
    import os
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory(prefix="zlclient-batch-") as name:
        os.chmod(name, 0o755)
        (Path(name) / "pg").mkdir()
        server = routing_servers.PostgresServer(Path(name) / "pg")
        yield server.url
        server.kill()


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/inner/ledger.db"
    pytest.importorskip("sqlalchemy", reason="the postgresql extra is not installed")
    url = request.getfixturevalue("postgres")
    import sqlalchemy

    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        for table in ("answers", "failures", "batches", "submitted"):
            connection.execute(sqlalchemy.text(f"DROP TABLE IF EXISTS zlclient_{table}"))
    engine.dispose()
    return url


def good(text):
    return Outcome(True, {"text": text})


def test_answers_stay_and_failures_last_as_long_as_their_run(address):
    ledger = open_ledger(address, "one")
    ledger.keep([("a", good("你好\x00\ud800")), ("b", failed("Timeout", "late"))])
    ledger.keep([("a", good("another"))])
    ledger.close()

    ledger = open_ledger(address, "one")
    assert ledger.find(["a", "b", "c"]) == {"a": good("你好\x00\ud800"), "b": failed("Timeout", "late")}
    other = open_ledger(address, "two")
    assert [*other.find(["a", "b"])] == ["a"]
    other.end()
    assert [*ledger.find(["a", "b"])] == ["b", "a"]
    ledger.end()
    assert [*ledger.find(["a", "b"])] == ["a"]
    ledger.keep([("c", failed("Timeout", "late"))])
    ledger.keep([("c", good("at last"))])
    assert ledger.find(["c"]) == {"c": good("at last")}
    ledger.close()
    other.close()


def test_any_number_of_keys(address):
    ledger = open_ledger(address, "run")
    ledger.keep((str(i), good(str(i))) for i in range(5000))
    assert len(ledger.find([str(i) for i in range(-10, 6000)])) == 5000
    assert ledger.find([]) == {}
    ledger.keep([])
    ledger.close()


def test_batches(address):
    ledger = open_ledger(address, "run")
    batch = ledger.intend("anthropic", ["a", "b", "c"], 1000.5)
    assert ledger.open_batches() == [batch]
    assert (batch.remote, batch.created, batch.size) == (None, 1000.5, 3)
    ledger.created(batch, "msgbatch_1")
    ledger.keep([("a", good("x"))])
    again = open_ledger(address, "another run")
    assert again.open_batches()[0].remote == "msgbatch_1"
    assert again.submitted(["a", "b", "c", "d"]) == {"b", "c"}
    assert sorted(again.close_batch(batch)) == ["b", "c"]
    assert ledger.open_batches() == []
    assert ledger.submitted(["a", "b", "c"]) == set()
    ledger.close()
    again.close()


def test_many_threads_and_two_openings_at_once(address):
    ledgers = [open_ledger(address, str(i)) for i in range(2)]

    def write(number):
        ledgers[number % 2].keep([(f"{number}-{i}", good(str(i))) for i in range(50)])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    keys = [f"{number}-{i}" for number in range(8) for i in range(50)]
    assert len(ledgers[0].find(keys)) == 400
    for ledger in ledgers:
        ledger.close()


def test_a_kill_in_a_transaction_leaves_none_of_it(tmp_path):
    url = f"sqlite:///{tmp_path}/ledger.db"
    program = f"""
import os
from zlclient.batch.ledger import open_ledger
from zlclient.batch.outcomes import Outcome
ledger = open_ledger({url!r}, "run")
ledger.keep([("a", Outcome(True, {{"text": "kept"}}))])
def broken():
    yield "b", Outcome(True, {{"text": "lost"}})
with ledger._database.transaction() as rows:
    rows("INSERT INTO zlclient_answers VALUES (:key, :body)", {{"key": "b", "body": "{{}}"}})
    os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    ledger = open_ledger(url, "run")
    assert ledger.find(["a", "b"]) == {"a": good("kept")}
    ledger.close()


@pytest.mark.parametrize("url", ["redis://x", "sqlite", "sqlite:///", "ledger.db"])
def test_unknown_addresses(url):
    with pytest.raises(ConfigError, match="sqlite:///PATH or postgresql"):
        open_ledger(url, "run")


def test_what_cannot_be_opened_says_so_without_secrets(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(LedgerUnavailable):
        open_ledger(f"sqlite:///{tmp_path}/file/ledger.db", "run")
    (tmp_path / "no.db").write_bytes(b"this is no database at all, but long enough to be looked at" * 50)
    with pytest.raises(LedgerUnavailable, match=r"no\.db"):
        open_ledger(f"sqlite:///{tmp_path}/no.db", "run")
    pytest.importorskip("sqlalchemy", reason="the postgresql extra is not installed")
    with pytest.raises(LedgerUnavailable) as caught:
        open_ledger("postgresql://me:secret@127.0.0.1:1/db", "run")
    assert "secret" not in str(caught.value)
