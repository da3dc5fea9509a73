"""The Ray runner on a real local Ray: the same ledger and the same results as the local runner."""

import sqlite3

import pytest

pytest.importorskip("ray.data", reason="Ray is an optional extra")

from zlclient.batch.ray import PART
from zlclient.errors import InputError, Unauthorized

ROWS = [{"id": i, "prompt": f"Paris has {i % 700} gates. How many gates has Paris?"} for i in range(900)]


@pytest.fixture(scope="module")
def ray():
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=40)
    yield ray
    ray.shutdown()


def kept(folder):
    with sqlite3.connect(folder.path / "replies.ledger.db") as connection:
        return dict(connection.execute("SELECT key, body FROM zlclient_answers"))


@pytest.mark.slow
def test_the_same_results_and_ledger_as_the_local_runner(ray, folder):
    rows = [*ROWS, {"nope": 1}]
    half = folder.run(rows[:300], concurrency=8)
    assert half.answered == 300
    report = folder.run(rows, runner="ray", concurrency=128)
    assert (report.rows, report.answered, report.failed, report.reused) == (901, 900, 1, 500)
    assert report.requests == 400 > PART
    by_ray, ledger = folder.output.read_bytes(), kept(folder)
    (folder.path / "replies.ledger.db").unlink()
    local = folder.run(rows, concurrency=8)
    assert folder.output.read_bytes() == by_ray
    assert kept(folder) == ledger
    assert local.usage.output > report.usage.output > 0
    again = folder.run(rows, runner="ray")
    assert (again.requests, again.reused, folder.output.read_bytes()) == (0, 900, by_ray)


@pytest.mark.slow
def test_templates_folders_and_budgets(ray, folder):
    texts = folder.path / "texts"
    texts.mkdir()
    for i in range(5):
        (texts / f"{i}.txt").write_text(f"Revenue was {i}00 million.")
    report = folder.run(str(texts), template="summary", runner="ray", max_requests=3)
    assert (report.stopped, report.requests, report.answered) == ("budget", 3, 3)
    report = folder.run(str(texts), template="summary", runner="ray")
    assert (report.stopped, report.requests, report.answered) == (None, 2, 5)


@pytest.mark.slow
def test_an_error_of_every_request_stops_the_run(ray, folder):
    with pytest.raises(InputError, match="workers"):
        folder.run(["a"], runner="ray", clients={"local": object()})
    with pytest.raises(InputError, match="read twice"):
        folder.run(iter(["a"]), runner="ray")
    providers = {"refusing": {"kind": "openai", "base_url": "http://127.0.0.1:1/v1", "key_env": "NOBODY_SETS_THIS"}}
    from zlclient.errors import CredentialsError
    from zlclient.settings import Settings

    settings = Settings.load({"providers": providers})
    with pytest.raises((CredentialsError, Unauthorized)):
        folder.run(["a"], runner="ray", provider=None, model="refusing:m", settings=settings)
