"""`chat(experiment=…)` end to end: sticky arms on the wire, fallback to control, outcomes, shadow copies."""

import sqlite3
import threading
import time

import pytest

import zlclient
from zlclient import Client

ROLLOUT = {
    "control": "legacy",
    "treatment": "auto",
    "unit": "user_id",
    "stages": [50, 100],
    "outcomes": ["resolved"],
    "gates": {"error_rate": "< 1%", "resolved": ">= control"},
}


@pytest.fixture
def client(faulty, clock, tmp_path):
    with Client(rollouts={"bot": ROLLOUT}, store=f"sqlite:///{tmp_path}/zl.db", clock=clock) as made:
        yield made


def model_of(request):
    return request.body["model"]


def test_arms_are_sticky_and_really_sent(client, faulty):
    arms = {}
    for unit in range(40):
        for _ in range(2):
            reply = client.chat("hi", experiment="bot", unit=unit)
            assert arms.setdefault(unit, reply.arm) == reply.arm
            model = {"legacy": "claude-sonnet-4-6", "auto": "claude-sonnet-5-5"}[reply.arm]
            assert model_of(faulty.requests[-1]) == model
    assert set(arms.values()) == {"legacy", "auto"}
    assert reply.experiment == "bot"


def test_an_arm_can_be_forced_for_testing(client, faulty):
    for arm in ("legacy", "auto"):
        assert client.chat("hi", experiment="bot", unit="u", arm=arm).arm == arm


def test_without_a_unit_or_with_a_model_it_is_an_error(client, faulty):
    with pytest.raises(zlclient.InputError, match="request"):
        client.chat("hi", experiment="bot")
    with pytest.raises(zlclient.InputError, match="model"):
        client.chat("hi", experiment="bot", unit="u", model="auto")
    with pytest.raises(zlclient.InputError, match="bot"):
        client.chat("hi", experiment="bott", unit="u")
    assert faulty.requests == []
    assert client.chat("hi", experiment="bot", unit="request").arm


def test_a_failing_treatment_is_answered_by_the_control_and_counted(client, faulty):
    faulty.script({"status": 500}, {"status": 500})
    reply = client.chat("hi", experiment="bot", unit="u", arm="auto")
    assert reply.text == "Hello from loopback."
    assert reply.arm == "legacy"
    assert [a.status for a in reply.attempts] == [500, 500, 200]
    assert any(note.rule == "control" for note in reply.adjustments)


def test_where_both_arms_fail_the_error_lists_both_and_the_arm_is_counted(client, faulty):
    faulty.script(default={"status": 500})
    for verb in (client.chat, client.stream):
        with pytest.raises(zlclient.ServerError) as caught:
            verb("hi", experiment="bot", unit="u", arm="auto")
        models = [attempt.model for attempt in caught.value.attempts]
        assert models == ["claude-sonnet-5-5"] * 2 + ["claude-sonnet-4-6"] * 2
    router = client._traffic.router
    assert router.flush()
    assert router.counts.dropped == 0


def test_a_failing_control_is_an_error(client, faulty):
    faulty.script(default={"status": 500})
    with pytest.raises(zlclient.ServerError):
        client.chat("hi", experiment="bot", unit="u", arm="legacy")
    assert len(faulty.requests) == 2


def test_a_failed_check_is_written_down_and_raised(client, faulty):
    with pytest.raises(zlclient.CheckError):
        client.chat("hi", experiment="bot", unit="u", arm="auto", format={"sentences": 9}, format_policy="raise")
    answer = client.stream("hi", experiment="bot", unit="u", format={"sentences": 9}, format_policy="raise")
    with pytest.raises(zlclient.CheckError):
        assert answer.reply
    assert len(faulty.requests) == 2


def test_exposures_and_outcomes_reach_the_store(client, faulty, tmp_path):
    replies = [client.chat("hi", experiment="bot", unit=str(unit)) for unit in range(20)]
    for reply in replies:
        client.outcome(reply, "resolved", True)
        client.outcome(reply.id, "resolved", True)
    client.close()
    with sqlite3.connect(tmp_path / "zl.db") as store:
        tables = [name for (name,) in store.execute("select name from sqlite_master where type = 'table'")]
        dump = "\n".join(str(row) for table in tables for row in store.execute(f"select * from {table}"))
    assert dump.count("resolved") >= 20
    assert all(reply.id in dump for reply in replies)


async def test_async_and_streams(client, faulty):
    reply = await client.achat("hi", experiment="bot", unit="u", arm="auto")
    assert reply.arm == "auto"
    with client.stream("hi", experiment="bot", unit="u", arm="auto") as answer:
        assert "".join(answer) == "Hello from loopback."
        assert answer.reply.arm == "auto"
    assert [model_of(request) for request in faulty.requests] == ["claude-sonnet-5-5"] * 2
    async with await client.astream("hi", experiment="bot", unit="u", arm="auto") as answer:
        assert (await answer.reply()).arm == "auto"
    assert model_of(faulty.requests[-1]) == "claude-sonnet-5-5"
    faulty.script({"status": 401})
    async with await client.astream("hi", experiment="bot", unit="u", arm="auto") as answer:
        assert (await answer.reply()).arm == "legacy"
    assert model_of(faulty.requests[-1]) == "claude-sonnet-4-6"


@pytest.mark.parametrize("verb", ["chat", "stream"])
def test_shadow_copies_go_to_the_treatment_while_the_control_answers(faulty, clock, verb):
    rollout = ROLLOUT | {"shadow": {"share": 1.0, "budget": "5 USD"}}
    with Client(rollouts={"bot": rollout}, store="memory", clock=clock) as client:
        unit = next(u for u in map(str, range(99)) if client.chat("hi", experiment="bot", unit=u).arm == "legacy")
        faulty.script()
        before = threading.active_count()
        reply = getattr(client, verb)("hi", experiment="bot", unit=unit)
        reply = reply if verb == "chat" else reply.reply
        deadline = time.monotonic() + 5
        while len(faulty.requests) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert reply.arm == "legacy"
        assert {model_of(request) for request in faulty.requests} == {"claude-sonnet-4-6", "claude-sonnet-5-5"}
        assert threading.active_count() <= before + 2
