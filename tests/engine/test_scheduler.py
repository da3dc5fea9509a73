"""Requests run together, each as if alone; bounds hold, nobody waits for a long prompt, and everything is given back."""

import contextvars
import gc
import itertools
import math
import os
import random
import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import until

from zlclient.engine.departure import CURRENT, Departure
from zlclient.engine.model import CHUNK
from zlclient.engine.quoting import Quotation
from zlclient.engine.runner import Engine, Outcome
from zlclient.engine.sampler import Sampling, log_softmax
from zlclient.engine.scheduler import Limits, Load, PromptTooLong, QueueFull
from zlclient.errors import InputError, ZlclientError

NOTHING = Load(0, 0, 0)


def prompt(seed: int, least: int = 1, most: int = 300) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(70, 110) for _ in range(rng.randint(least, most))]


def run(engine: Engine, tokens: list[int], **options) -> Outcome:
    outcome = Outcome()
    for _ in engine.stream(tokens, outcome=outcome, **{"max_tokens": 12, **options}):
        pass
    return outcome


def in_threads(work: Callable[[int], object], count: int) -> None:
    threads = [threading.Thread(target=work, args=(at,)) for at in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


class Held:
    """A constraint that lets one token through, and then holds the whole engine up until it is let go."""

    def __init__(self) -> None:
        self.go, self.reached = threading.Event(), threading.Event()
        self._count = 0

    def allowed(self) -> tuple[int, ...]:
        return (70,)

    def follow(self, token: int) -> None:
        self._count += 1
        if self._count == 2:
            self.reached.set()
            assert self.go.wait(60)


@pytest.fixture
def engine(checkpoint) -> Engine:
    return Engine(checkpoint)


def requests(engine: Engine) -> list[dict]:
    made = []
    for at in range(64):
        options: dict = {"tokens": prompt(at % 40), "domain": ("", "law")[at % 2], "max_tokens": 1 + at % 15}
        if at % 3 == 0:
            options["sampling"] = Sampling(1.2, 0.9, at)
        if at % 5 == 0:
            options["stop"] = ["a", "the"]
        made.append(options)
    return made


def constraint_for(engine: Engine, at: int) -> Quotation | None:
    sentences = {engine.tokenizer.marker(index): prompt(at + index, 1, 6) for index in range(3)}
    return Quotation(engine.tokenizer, sentences, count=1 + at % 2) if at % 7 == 0 else None


def test_64_streams_at_once_give_exactly_what_they_give_alone(checkpoint):
    alone, together = Engine(checkpoint, cache_blocks=0), Engine(checkpoint)
    asked = requests(alone)
    expected = []
    for at, options in enumerate(asked):
        expected.append(list(alone.stream(**options, constraint=constraint_for(alone, at))))
    found: list[list] = [[] for _ in asked]
    barrier = threading.Barrier(len(asked))

    def work(at: int) -> None:
        barrier.wait(60)
        found[at] = list(together.stream(**asked[at], constraint=constraint_for(together, at)))

    in_threads(work, len(asked))
    assert found == expected
    assert together.scheduler.load == NOTHING
    assert together.cache.stats.in_use == 0
    assert together.cache.stats.hits > 0


@pytest.mark.parametrize("generation", ["legacy", "auto"])
@settings(deadline=None, max_examples=6)
@given(seeds=st.lists(st.integers(0, 30), min_size=1, max_size=6))
def test_batched_chunked_and_cached_streams_follow_the_plain_forward_pass(make_checkpoint, generation, seeds):
    engine = Engine(make_checkpoint(generation), cache_blocks=4)
    found: list[list] = [[] for _ in seeds]

    def work(at: int) -> None:
        asked = Sampling(1.0, seed=seeds[at], logprobs=3)
        found[at] = list(engine.stream(prompt(seeds[at] // 2, 1, 250), domain="law", sampling=asked, max_tokens=6))

    in_threads(work, len(seeds))
    for seed, pieces in zip(seeds, found, strict=True):
        state = engine.model.start("law")
        step = engine.model.forward(prompt(seed // 2, 1, 250), state)
        for piece in pieces:
            if piece.logprob is None:
                continue  # text that was held back, at the end
            expected = log_softmax(step.logits)
            assert piece.logprob == pytest.approx(expected[piece.token], abs=1e-4)
            assert piece.verdict == pytest.approx(step.verdict, abs=1e-4)
            for token, logprob in piece.top:
                assert logprob == pytest.approx(expected[token], abs=1e-4)
            step = engine.model.forward([piece.token], state)


def test_a_long_prompt_holds_nobody_up_for_more_than_a_chunk(engine: Engine, monkeypatch):
    seen: list[tuple[str, int]] = []
    forward, decode = engine.model.forward, engine.model.decode
    both = threading.Event()

    def forward_seen(tokens, state, trace=None):
        seen.append(("read", len(tokens)))
        return forward(tokens, state, trace)

    def decode_seen(tokens, states):
        both.wait(60)  # the first token of the short one is out: now the long one is there, too
        seen.append(("decode", len(tokens)))
        return decode(tokens, states)

    monkeypatch.setattr(engine.model, "forward", forward_seen)
    monkeypatch.setattr(engine.model, "decode", decode_seen)
    short = engine.stream(prompt(1, 5, 5), max_tokens=30)
    next(short)
    long = threading.Thread(target=run, args=(engine, prompt(2, 20 * CHUNK, 20 * CHUNK)))
    long.start()
    until(lambda: engine.scheduler.load.waiting == 1)
    both.set()
    list(short)
    long.join(60)
    assert max(size for _, size in seen) <= CHUNK
    reads = [at for at, (what, _) in enumerate(seen) if what == "read"]
    assert len(reads) >= 20
    assert all(later - earlier == 2 for earlier, later in itertools.pairwise(reads[1:20]))  # one decoding between


def test_a_short_prompt_overtakes_a_long_one(engine: Engine, monkeypatch):
    order: list[int] = []
    held = Held()
    first = engine.stream(prompt(1), max_tokens=5, constraint=held)
    next(first)

    def work(at: int) -> None:
        next(engine.stream(prompt(at, *((12 * CHUNK, 12 * CHUNK) if at == 0 else (5, 5))), max_tokens=2))
        order.append(at)

    threads = []
    for at in range(3):
        threads.append(threading.Thread(target=work, args=(at,)))
        threads[-1].start()
        until(lambda at=at: engine.scheduler.load.waiting == at + 1)
    held.go.set()
    for thread in threads:
        thread.join(60)
    assert order[-1] == 0


def test_closing_a_stream_frees_it(engine: Engine):
    for at in range(10):
        stream = engine.stream(prompt(at, 100, 200), max_tokens=10_000)
        next(stream)
        stream.close()
    run(engine, prompt(99))
    assert engine.scheduler.load == NOTHING
    assert engine.cache.stats.in_use == 0
    assert engine.metrics.lines(engine, "")["vllm:request_success_total"][2].endswith('reason="abort"} 10')


def test_forgetting_a_stream_frees_it(engine: Engine):
    stream = engine.stream(prompt(1), max_tokens=100_000)
    next(stream)
    del stream
    gc.collect()
    run(engine, prompt(2))
    assert engine.scheduler.load == NOTHING


def test_a_stream_that_is_never_read_takes_nothing(engine: Engine):
    engine.stream(prompt(1))
    assert engine.scheduler.load == NOTHING


def test_a_stream_of_somebody_who_is_gone_ends_at_once(engine: Engine):
    departure = Departure()
    context = contextvars.copy_context()
    context.run(CURRENT.set, departure)
    stream = context.run(engine.stream, prompt(1), max_tokens=100_000)
    next(stream)
    departure.happen()
    assert len(list(stream)) < 1000
    assert list(context.run(engine.stream, prompt(2))) == []
    run(engine, prompt(3))
    assert engine.scheduler.load == NOTHING


def test_a_full_queue_refuses(checkpoint):
    engine, held = Engine(checkpoint, limits=Limits(running=1, waiting=2)), Held()
    first = engine.stream(prompt(1), max_tokens=5, constraint=held)
    next(first)
    held.reached.wait(60)
    threads = [threading.Thread(target=run, args=(engine, prompt(at))) for at in (2, 3)]
    for thread in threads:
        thread.start()
    until(lambda: engine.scheduler.load.waiting == 2)
    with pytest.raises(QueueFull, match="2 requests wait"):
        next(engine.stream(prompt(4)))
    held.go.set()
    assert len(list(first)) == 4
    for thread in threads:
        thread.join(60)
    assert engine.scheduler.load == NOTHING
    assert engine.metrics.lines(engine, "")["zlclient:requests_refused_total"] == [
        "zlclient:requests_refused_total{} 1"
    ]


def test_positions_are_bounded(checkpoint, monkeypatch):
    engine, most = Engine(checkpoint, limits=Limits(positions=1000)), 0
    decode = engine.model.decode

    def watched(tokens, states):
        nonlocal most
        most = max(most, sum(state.limit for state in states))
        for state in states:  # the bound is of memory: no buffer has room for more than its request's limit
            rows = [buffer.shape[1] - lead for buffer, lead in zip(state.stored, state.leads, strict=True)]
            assert max(rows) <= state.limit
        return decode(tokens, states)

    monkeypatch.setattr(engine.model, "decode", watched)
    in_threads(lambda at: run(engine, prompt(at, 1, 400), max_tokens=100), 12)
    assert 300 < most <= 1000
    assert engine.scheduler.load == NOTHING


@pytest.mark.parametrize(("count", "max_tokens"), [(101, 1), (100, 2), (1, 200_000)])
def test_what_never_fits_is_refused(checkpoint, count, max_tokens):
    engine = Engine(checkpoint, limits=Limits(positions=101))
    assert issubclass(PromptTooLong, InputError)
    with pytest.raises(PromptTooLong, match="not within 101"):
        engine.stream([80] * count, max_tokens=max_tokens)


class Broken:
    def allowed(self) -> tuple[int, ...]:
        raise LookupError("no idea")

    def follow(self, token: int) -> None:
        raise NotImplementedError


def test_a_broken_constraint_ends_its_own_stream_only(engine: Engine):
    good = engine.stream(prompt(1), max_tokens=6)
    next(good)
    with pytest.raises(LookupError, match="no idea"):
        next(engine.stream(prompt(2), constraint=Broken()))
    assert len(list(good)) <= 6
    assert engine.scheduler.load == NOTHING


@pytest.mark.parametrize("broken", ["forward", "decode"])
def test_an_error_of_the_model_reaches_the_consumer(engine: Engine, monkeypatch, broken):
    def fail(*_):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(engine.model, broken, fail)
        with pytest.raises(MemoryError):
            run(engine, prompt(1))
    assert run(engine, prompt(1)).tokens
    assert engine.scheduler.load == NOTHING


def test_the_thread_ends_when_there_is_nothing_to_do_and_comes_again(engine: Engine, monkeypatch):
    monkeypatch.setattr("zlclient.engine.scheduler.IDLE_SECONDS", 0.001)
    first = run(engine, prompt(1))
    until(lambda: engine.scheduler._thread is None)
    assert run(engine, prompt(1)).tokens == first.tokens


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_starts_its_own_thread(engine: Engine):
    expected, held = run(engine, prompt(1)).tokens, Held()
    going = engine.stream(prompt(2), max_tokens=5, constraint=held)
    next(going)
    held.reached.wait(60)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with pytest.raises(ZlclientError, match="fork of it"):
                list(going)
            code = 0 if run(engine, prompt(1)).tokens == expected else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    held.go.set()
    assert len(list(going)) == 4


def logprobs_of(stream: Iterator) -> list:
    return [(piece.token, piece.logprob, piece.top, piece.probability) for piece in stream]


def test_log_probabilities_come_when_asked(engine: Engine):
    found = logprobs_of(engine.stream(prompt(1), max_tokens=8, sampling=Sampling(logprobs=4)))
    assert found
    for token, logprob, top, probability in found:
        assert logprob == pytest.approx(math.log(probability), abs=1e-5)
        assert len(top) == 4
        assert top[0] == (token, logprob)  # greedy takes the likeliest
        values = [value for _, value in top]
        assert values == sorted(values, reverse=True)
        assert sum(map(math.exp, values)) <= 1 + 1e-5
    plain = logprobs_of(engine.stream(prompt(1), max_tokens=8))
    assert [(token, None, ()) for token, *_ in found] == [tuple(item[:3]) for item in plain]


@pytest.mark.parametrize("logprobs", [-1, 21])
def test_too_many_log_probabilities_are_refused(logprobs):
    with pytest.raises(InputError, match="logprobs"):
        Sampling(logprobs=logprobs)
