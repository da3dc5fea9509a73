"""Calls over a document: order, faults, deadlines, what the reply says of them; sync, async and streamed alike."""

import asyncio
import contextvars
import pickle
import threading

import pytest
from faulty import anthropic_events
from pydantic import BaseModel

import zlclient
from zlclient import AsyncClient, Client
from zlclient.answering.errors import SegmentsFailed, SegmentsLate
from zlclient.serving.server import LocalServer

QUESTION = "What does the supplier pay?"
PARTS = {"segment_tokens": 300}


def ask(client, how, document, **options):
    """The same call in each of the four ways."""
    options = {**PARTS, "document": document, **options}
    if how == "chat":
        return client.chat(QUESTION, **options)
    if how == "stream":
        with client.stream(QUESTION, **options) as answer:
            text = "".join(answer)
            assert answer.reply.text == text == answer.text
            return answer.reply
    if how == "achat":
        return asyncio.run(client.achat(QUESTION, **options))

    async def streamed():
        async with await client.astream(QUESTION, **options) as answer:
            text = "".join([piece async for piece in answer])
            reply = await answer.reply()
            assert reply.text == text
            return reply

    return asyncio.run(streamed())


ways = pytest.mark.parametrize("how", ["chat", "stream", "achat", "astream"])


def sections(text):
    return [int(line.split()[2]) for line in text.splitlines() if line.startswith("In section")]


class TestInParts:
    @ways
    def test_answers_come_back_in_the_documents_order(self, client, scripted, document, how):
        scripted.pauses = {n: 0.03 * (13 - n) / 12 for n in range(1, 13)}  # the last part answers first
        reply = ask(client, how, document)
        assert sections(reply.text) == list(range(1, 13))
        assert scripted.most_running > 1

    @ways
    def test_usage_attempts_and_coverage_are_of_the_whole(self, client, scripted, document, how):
        reply = ask(client, how, document)
        calls = len(scripted.asks)
        assert calls == len(reply.coverage.segments) + 1
        assert len(reply.attempts) == calls
        single = client.chat(QUESTION, document=document)
        assert reply.usage.total_input > single.usage.total_input
        assert reply.usage.output > single.usage.output
        coverage = reply.coverage
        assert coverage.complete
        assert (coverage.share, coverage.read) == (1.0, len(coverage.segments))
        assert coverage.characters == coverage.characters_read == len(document.source)
        assert [s.start for s in coverage.segments[1:]] == [s.end for s in coverage.segments[:-1]]

    def test_concurrency_is_bounded(self, client, scripted, document):
        scripted.pauses = dict.fromkeys(range(1, 13), 0.01)
        client.chat(QUESTION, document=document, concurrency=3, **PARTS)
        assert scripted.most_running == 3
        scripted.most_running = 0
        asyncio.run(client.achat(QUESTION, document=document, concurrency=2, **PARTS))
        assert scripted.most_running == 2

    def test_parts_that_say_nothing_are_left_out_of_the_merge(self, client, scripted, document):
        scripted.silent = set(range(1, 13)) - {5}
        reply = client.chat(QUESTION, document=document, **PARTS)
        assert sections(reply.text) == [5]
        merged = scripted.asks[-1].turns[0].blocks[0]["source"]["data"]
        assert merged.startswith("[")
        assert "does not state" not in merged
        assert reply.coverage.complete

    def test_where_no_part_says_anything_the_answer_says_so(self, client, scripted, document):
        scripted.silent = set(range(1, 13))
        reply = client.chat(QUESTION, document=document, **PARTS)
        assert reply.text == "The text does not state this."
        assert reply.citations == ()

    def test_a_long_document_is_merged_in_levels(self, scripted, document):
        models = {"local:auto": {"context": 800}}
        server, scripted.brief = LocalServer([scripted]), True
        with Client(provider="local", clients={"local": server}, models=models, max_tokens=128) as client:
            reply = client.chat(QUESTION, document=document)
        merges = [ask for ask in scripted.asks if "Merge them" in ask.system]
        assert len(merges) > 2
        assert len(merges[-1].turns[0].blocks[0]["source"]["data"]) < len(document.source) / 4
        assert sections(reply.text) == list(range(1, 13))

    def test_a_truncated_part_is_noted(self, client, scripted, document):
        scripted.cut = {4}
        reply = client.chat(QUESTION, document=document, **PARTS)
        note = next(note for note in reply.adjustments if note.rule == "truncated")
        assert note.stage == "segment"
        assert "segment" in note.before

    def test_the_conversation_can_go_on(self, client, scripted, document):
        reply = client.chat(QUESTION, document=document, **PARTS)
        assert [m["role"] for m in reply.messages] == ["user", "assistant"]
        assert reply.messages[0]["content"] == QUESTION
        more = client.chat([*reply.messages, {"role": "user", "content": "And?"}], document=document, **PARTS)
        assert more.coverage.complete

    def test_format_and_output_are_asked_of_the_last_answer_only(self, client, scripted, document):
        class Fees(BaseModel):
            total: int

        scripted.answer = '{"total": 9}'
        reply = client.chat(QUESTION, document=document, output=Fees, **PARTS)
        assert reply.parsed == Fees(total=9)
        assert [ask.output_schema is not None for ask in scripted.asks] == [False] * (len(scripted.asks) - 1) + [True]

    def test_fidelity_is_checked_against_the_document(self, client, scripted, document):
        scripted.answer = "The supplier pays a fee of 99,999 euros."
        options = {"document": document, **PARTS}
        assert client.chat(QUESTION, **options).checks == {}
        assert client.chat(QUESTION, fidelity="record", **options).checks["fidelity"].ok is False
        with pytest.raises(zlclient.CheckError) as caught:
            client.chat(QUESTION, fidelity="raise", **options)
        assert caught.value.reply.coverage.complete
        assert len(caught.value.reply.attempts) > 12
        scripted.answer = "The supplier pays a fee of 4,007 euros."
        assert client.chat(QUESTION, fidelity="raise", **options).checks["fidelity"].ok

    def test_progress_is_told_after_each_part(self, client, document):
        told = []
        client.chat(QUESTION, document=document, progress=told.append, concurrency=1, **PARTS)
        total = told[0].total
        assert [p.done for p in told] == list(range(total + 1))
        assert {(p.phase, p.failed) for p in told} == {("read", 0)}

    def test_context_variables_reach_every_part(self, scripted, document):
        marked = contextvars.ContextVar("marked", default=None)
        seen = []
        server = LocalServer([scripted], observe=lambda _: seen.append((marked.get(), threading.current_thread().name)))
        with Client(provider="local", clients={"local": server}) as client:
            marked.set("mine")
            client.chat(QUESTION, document=document, **PARTS)
        assert {value for value, _ in seen} == {"mine"}
        assert any(name.startswith("zlclient-read") for _, name in seen)


class TestExtracts:
    @ways
    def test_are_joined_in_order_without_another_request(self, client, scripted, document, how):
        reply = ask(client, how, document, mode="extract")
        assert sections(reply.text) == list(range(1, 13))
        assert len(scripted.asks) == len(reply.coverage.segments) == len(reply.attempts)
        assert all(citation.supported for citation in reply.citations)
        assert reply.text in [block["text"] for block in reply.content]

    def test_nothing_found_says_so(self, client, scripted, document):
        scripted.silent = set(range(1, 13))
        assert client.chat(QUESTION, document=document, mode="extract", **PARTS).text == "The text does not state this."

    def test_a_failed_check_raises_there_too(self, client, scripted, document):
        with pytest.raises(zlclient.CheckError) as caught:
            client.chat(QUESTION, document=document, mode="extract", source="Nothing.", fidelity="raise", **PARTS)
        assert caught.value.reply.coverage.complete


class TestFaults:
    @ways
    def test_a_segment_that_fails_is_raised_by_name_with_what_was_finished(
        self, client, scripted, document, fault, how
    ):
        scripted.faults = {7: fault(500)}
        with pytest.raises(SegmentsFailed) as caught:
            ask(client, how, document, concurrency=1)
        error = caught.value
        failed = error.failures[0]
        assert len(error.failures) == 1
        assert "section 7 " in document.source[failed.start : failed.end]
        assert "Section 7" in "".join(failed.path)
        assert isinstance(failed.error, zlclient.ServerError)
        assert [sections(answer.text) for answer in error.finished] == [[n] for n in range(1, 7)]
        assert f"{failed.start}–{failed.end}" in str(error)
        assert "supplier" not in str(error)
        assert error.status == 500
        assert error.usage.output > 0
        assert [a.status for a in error.attempts] == [200] * 6 + [500, 500]  # the corridor's one retry
        assert not error.coverage.complete
        unsent = [s for s in error.coverage.segments if not s.read and s.error is None]
        assert len(unsent) == len(error.coverage.segments) - 7

    @ways
    def test_skipping_goes_on_and_says_what_is_missing(self, client, scripted, document, fault, how):
        scripted.faults = {3: fault(500), 9: fault(529)}
        reply = ask(client, how, document, on_segment_error="skip", concurrency=1)  # all share one fake clock
        assert sections(reply.text) == [1, 2, 4, 5, 6, 7, 8, 10, 11, 12]
        missing = [segment for segment in reply.coverage.segments if not segment.read]
        assert [segment.error for segment in missing] == ["ServerError", "Overloaded"]
        skipped = sum(segment.end - segment.start for segment in missing)
        assert reply.coverage.share == pytest.approx(1 - skipped / len(document.source))
        notes = [note for note in reply.adjustments if note.rule == "skipped"]
        assert [note.after for note in notes] == ["ServerError", "Overloaded"]
        assert f"characters {missing[0].start} to {missing[0].end}" in notes[0].before
        assert len(reply.attempts) == len(reply.coverage.segments) + 2 + 1

    def test_what_was_not_read_supports_nothing(self, client, scripted, document, fault):
        scripted.faults = {3: fault(500)}
        scripted.answer = (
            "The supplier pays a fee of 3007 euros within 23 days.\nIt pays a fee of 4007 euros within 24 days."
        )
        reply = client.chat(QUESTION, document=document, on_segment_error="skip", **PARTS)
        assert [citation.supported for citation in reply.citations] == [False, True]

    @pytest.mark.parametrize("status", [401, 403, 404])
    def test_what_every_segment_would_meet_is_not_skipped(self, client, scripted, document, fault, status):
        scripted.faults = dict.fromkeys(range(1, 13), fault(status))
        with pytest.raises(SegmentsFailed) as caught:
            client.chat(QUESTION, document=document, on_segment_error="skip", concurrency=1, **PARTS)
        assert len(scripted.asks) == 1
        assert caught.value.status == status

    def test_all_failing_is_no_answer(self, client, scripted, document, fault):
        scripted.faults = dict.fromkeys(range(1, 13), fault(500))
        with pytest.raises(SegmentsFailed) as caught:
            client.chat(QUESTION, document=document, on_segment_error="skip", **PARTS)
        assert caught.value.finished == ()

    @ways
    def test_the_last_request_failing_keeps_every_answer(self, client, scripted, document, fault, how):
        scripted.merge_fault = fault(500)
        with pytest.raises(SegmentsFailed, match="the request over the answers") as caught:
            ask(client, how, document)
        error = caught.value
        assert error.failures == ()
        assert error.coverage.complete
        assert len(error.finished) == len(error.coverage.segments)
        assert isinstance(error.__cause__, zlclient.ServerError)
        assert len(error.attempts) == len(error.finished) + 2

    def test_a_failed_merge_loses_its_segments_by_name(self, scripted, document, fault, clock):
        models = {"local:auto": {"context": 800}}

        class Once(type(scripted)):
            def _answer(self, given, first, merging):
                if merging and "section 1 " in given:
                    yield fault(500)
                else:
                    yield from super()._answer(given, first, merging)

        server = LocalServer([Once()])
        options = {
            "provider": "local",
            "clients": {"local": server},
            "models": models,
            "max_tokens": 128,
            "clock": clock,
        }
        with Client(**options) as client:
            reply = client.chat(QUESTION, document=document, on_segment_error="skip")
            assert 1 not in sections(reply.text)
            assert 12 in sections(reply.text)
            assert 0 < reply.coverage.share < 1
            with pytest.raises(SegmentsFailed):
                client.chat(QUESTION, document=document)

    def test_the_error_pickles(self, client, scripted, document, fault):
        scripted.faults = {7: fault(500)}
        with pytest.raises(SegmentsFailed) as caught:
            client.chat(QUESTION, document=document, **PARTS)
        copy = pickle.loads(pickle.dumps(caught.value))
        assert str(copy) == str(caught.value)
        assert copy.failures[0].start == caught.value.failures[0].start


class TestDeadline:
    def test_it_bounds_the_whole_call_and_keeps_what_was_finished(self, client, scripted, document, fault, clock):
        scripted.faults = {2: fault(500)}  # costs a wait of 3 s
        scripted.before = lambda: clock.sleep(0.5)
        with pytest.raises(SegmentsLate) as caught:
            client.chat(QUESTION, document=document, concurrency=1, on_segment_error="skip", deadline=5, **PARTS)
        error = caught.value
        assert isinstance(error, zlclient.Timeout)
        assert len(error.finished) == 1
        assert [attempt.error for attempt in error.attempts] == [None, "ServerError", "ServerError", "DeadlineExceeded"]
        assert sum(clock.slept) == pytest.approx(5)  # 0.5 s each, 3 s before the retry

    def test_each_call_gets_what_is_left(self, client, scripted, document, fault, clock):
        scripted.faults = {4: fault(500)}
        reply = client.chat(QUESTION, document=document, concurrency=1, on_segment_error="skip", deadline=60, **PARTS)
        assert reply.timings.total == pytest.approx(3.0)
        started = [attempt.started for attempt in reply.attempts]
        assert started == sorted(started)
        assert started[0] == 0.0
        assert started[-1] == pytest.approx(3.0)

    @pytest.mark.parametrize("how", ["chat", "achat"])
    def test_in_real_time_a_stalled_part_ends_the_call(self, scripted, document, how):
        scripted.pauses = {6: 30.0}
        server = LocalServer([scripted])
        with Client(provider="local", clients={"local": server}) as client, pytest.raises(SegmentsLate) as caught:
            ask(client, how, document, deadline=0.3)
        assert len(caught.value.finished) >= 5
        assert max(attempt.ended for attempt in caught.value.attempts) < 2


class TestOverSockets:
    """The same against a faulty server, through the real SDK."""

    def test_one_request_streams(self, faulty, document):
        with Client() as client, client.stream(QUESTION, document=document) as answer:
            assert list(answer) == ["Hello ", "from ", "loopback."]
            assert answer.reply.coverage.complete
        assert len(faulty.requests) == 1

    def test_scripted_faults_are_retried_or_skipped(self, faulty, document, clock):
        good = {"events": list(anthropic_events(("The supplier pays a fee of 1007 euros.",)))}
        faulty.script({"status": 500}, good, {"status": 400}, {"drop": "mid"}, {"drop": "before"}, good, default=good)
        with Client(clock=clock) as client:
            reply = client.chat(QUESTION, document=document, on_segment_error="skip", concurrency=1, **PARTS)
        assert [segment.error for segment in reply.coverage.segments[:5]] == [
            None,  # 500, then its retry
            "BadRequest",
            "StreamBroken",
            None,  # no connection, then its retry
            None,
        ]
        assert reply.citations[0].supported
        assert clock.slept == [3.0, 3.0]

    @pytest.mark.parametrize("policy", ["shorten", "split"])
    def test_after_a_429_a_request_over_a_document_waits(self, faulty, document, clock, policy):
        turns = [
            {"role": "user", "content": "First?"},
            {"role": "assistant", "content": "Yes."},
            {"role": "user", "content": "Second, please. " * 60},
        ]
        faulty.script({"status": 429, "headers": {"retry-after": "1"}})
        with Client(clock=clock, on_rate_limit=policy) as client:
            reply = client.chat(turns, document=document)
        assert clock.slept == [1.0]
        assert faulty.requests[0].raw == faulty.requests[1].raw
        assert [note.before for note in reply.adjustments if note.rule == "on_rate_limit"] == [policy]

    async def test_an_async_client_on_its_own_loop(self, faulty, document):
        async with AsyncClient() as client:
            reply = await client.chat(QUESTION, document=document, **PARTS)
        assert len(faulty.requests) == len(reply.attempts) == len(reply.coverage.segments) + 1

    async def test_cancelling_leaves_no_task_behind(self, faulty, document):
        faulty.script(default={"delay": 5})
        async with AsyncClient() as client:
            task = asyncio.create_task(client.chat(QUESTION, document=document, **PARTS))
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert asyncio.all_tasks() == {asyncio.current_task()}

    def test_an_error_that_is_not_the_networks_ends_the_call(self, document, monkeypatch):
        with Client(provider="anthropic") as client, pytest.raises(zlclient.CredentialsError):
            client.chat(QUESTION, document=document, **PARTS)
