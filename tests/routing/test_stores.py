"""What every store promises, each against a real server; then processes that race for it."""

import multiprocessing
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from zlclient.errors import ConfigError
from zlclient.routing.records import Outcome, Record, Shadow
from zlclient.routing.state import Event, State, first_state
from zlclient.routing.stores import PAGE, Snapshot, Store, StoreUnavailable, open_store

FORK = multiprocessing.get_context("fork")


def event(epoch: int = 1, action: str = "start") -> Event:
    return Event("bot", epoch, action, 0, 100.0, "tests", "why")  # type: ignore[arg-type]


def exposures(count: int, name: str = "bot") -> list[Record]:
    return [Record("exposure", name, f"r{i}", f'{{"at":{i}}}') for i in range(count)]


def everything(store: Store, name: str = "bot") -> list[Record]:
    found: list[Record] = []
    after = ""
    while True:
        page, after = store.read(name, after)
        if not page:
            return found
        found += page


def test_begins_empty(store):
    assert store.load(["bot", "other"]) == {"bot": Snapshot(None, {}), "other": Snapshot(None, {})}
    assert store.history("bot") == []
    assert store.read("bot")[0] == []


def test_a_state_goes_to_whoever_saw_the_last_one(store):
    first = first_state(100.0)
    assert store.swap("bot", 0, first, event())
    assert not store.swap("bot", 0, first, event())
    second = State("running", 1, 2, 2, 200.0)
    assert not store.swap("bot", 7, second, event(2, "advance"))
    assert store.swap("bot", 1, second, event(2, "advance"))
    assert store.load(["bot"])["bot"].state == second
    store.note(event(2, "note"))
    assert [e.action for e in store.history("bot")] == ["start", "advance", "note"]
    assert store.history("other") == []


def test_records_are_kept_once_and_in_order(store):
    store.write(exposures(3))
    store.write([*exposures(5), Record("outcome", "", "r1 resolved", "{}"), *exposures(1, "other")])
    assert [r.key for r in everything(store) if r.kind == "exposure"] == ["r0", "r1", "r2", "r3", "r4"]
    assert [r.key for r in everything(store) if r.kind == "outcome"] == ["r1 resolved"]
    page, cursor = store.read("bot")
    store.write(exposures(7))
    assert [r.key for r in store.read("bot", cursor)[0]] == ["r5", "r6"]
    assert page[0] == Record("exposure", "bot", "r0", '{"at":0}')


def test_reads_in_pages(store):
    store.write(exposures(PAGE + 10))
    assert len(store.read("bot")[0]) == PAGE
    assert len(everything(store)) == PAGE + 10


def test_a_text_of_any_language_is_kept(store):
    record = Record("shadow", "客服-机器人", "回复 1", '{"text":"答案：３％ 😀 \'\\u0000\'"}')
    store.write([record])
    assert everything(store, "客服-机器人") == [record]


def test_no_id_is_refused(store):
    """One record that a store refuses would hold up all that wait behind it."""
    odd = ["a\0b", "\ud800", "字" * 1_000, "", "' OR 1=1 --"]
    for reply_id in odd:
        outcome = Outcome(reply_id, "re\0solved", 1.0, 0.0).record()
        shadow = Shadow(reply_id=reply_id, experiment="bot", arm="a", epoch=1, at=0.0, control_text="\0\udfff")
        store.write([outcome, shadow.record()])
        # An outcome finds its request under the same key.
        assert outcome.fields()["reply_id"] == shadow.record().key
    assert len(everything(store)) == 2 * len(odd)


def test_marks(store):
    store.raise_mark("bot", "breaker:auto", 50.0)
    store.raise_mark("bot", "breaker:auto", 40.0)
    store.add_mark("bot", "spent", 0.25)
    store.add_mark("bot", "spent", 0.5)
    assert store.load(["bot"])["bot"].marks == {"breaker:auto": 50.0, "spent": 0.75}
    assert store.claim("bot", "judge", 100.0, 130.0)
    assert not store.claim("bot", "judge", 129.0, 160.0)
    assert store.claim("bot", "judge", 130.0, 160.0)


def race(url: str, barrier, results) -> None:
    mine = open_store(url)
    state = mine.load(["bot"])["bot"].state
    assert state
    barrier.wait()
    won = mine.swap("bot", state.epoch, State("running", 1, 2, 2, 9.0), event(2, "advance"))
    mine.write(exposures(200))
    mine.write([Record("exposure", "bot", f"p{multiprocessing.current_process().name}-{i}", "{}") for i in range(50)])
    mine.add_mark("bot", "spent", 1.0)
    results.put(won)


def run_processes(count: int, target: Any, arguments: Sequence[object]) -> list[Any]:
    results = FORK.Queue()
    barrier = FORK.Barrier(count)
    processes = [FORK.Process(target=target, args=(*arguments, barrier, results)) for _ in range(count)]
    for process in processes:
        process.start()
    found = [results.get(timeout=20) for _ in processes]
    for process in processes:
        process.join(10)
        assert process.exitcode == 0
    return found


def test_eight_processes_race_and_one_wins(shared_url):
    store = open_store(shared_url)
    assert store.swap("bot", 0, first_state(1.0), event())
    # The parent's connection is open while it forks: the children must not use it.
    assert sorted(run_processes(8, race, [shared_url])) == [False] * 7 + [True]
    assert store.load(["bot"])["bot"].state == State("running", 1, 2, 2, 9.0)
    assert len(store.history("bot")) == 2
    keys = [record.key for record in everything(store)]
    assert len(keys) == len(set(keys)) == 200 + 8 * 50
    assert store.load(["bot"])["bot"].marks["spent"] == 8.0


def create(url: str, barrier, results) -> None:
    mine = open_store(url)
    barrier.wait()
    results.put(mine.swap("bot", 0, first_state(1.0), event()))


def test_eight_processes_create_the_tables_at_once(shared_url):
    assert sum(run_processes(8, create, [shared_url])) == 1


def inherit(mine: Store, barrier, results) -> None:
    barrier.wait()
    mine.write(exposures(3))
    results.put(mine.load(["bot"])["bot"].state)


def test_a_store_may_be_inherited_by_a_fork(shared_url):
    store = open_store(shared_url)
    state = first_state(1.0)
    store.swap("bot", 0, state, event())
    assert run_processes(4, inherit, [store]) == [state] * 4
    store.write(exposures(5))
    assert len(everything(store)) == 5


def test_a_dead_server_is_an_error_without_the_address(redis_server, tmp_path):
    pytest.importorskip("psycopg")
    for url in ("redis://:s3cret@127.0.0.1:1/0", "postgresql://u:s3cret@127.0.0.1:1/x"):
        with pytest.raises(StoreUnavailable) as caught:
            open_store(url).load(["bot"])
        assert "s3cret" not in str(caught.value)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable):
        open_store(f"sqlite:///{tmp_path}/file/rollouts.db").load(["bot"])


def test_a_corrupt_file_is_an_error(tmp_path):
    (tmp_path / "rollouts.db").write_bytes(b"not a database, certainly not" * 100)
    with pytest.raises(StoreUnavailable, match="not a database"):
        open_store(f"sqlite:///{tmp_path}/rollouts.db").load(["bot"])


@pytest.mark.parametrize("url", ["mysql://user:s3cret@host/db", "sqlite://rollouts.db", "file.db", ""])
def test_an_unknown_address_is_refused_without_its_password(url):
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert "s3cret" not in str(caught.value)


def test_drivers_are_imported_when_used():
    code = (
        "import sys, zlclient.routing, zlclient.routing.router, zlclient.routing.stores\n"
        "assert not {'sqlite3', 'sqlalchemy', 'redis', 'numpy', 'scipy'} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
