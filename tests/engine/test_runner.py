"""Generation: ends where it should, streams what it counts, is the same every time, and quotes to the letter."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlclient.engine.checkpoint import Checkpoint
from zlclient.engine.quoting import Quotation
from zlclient.engine.request import Plan, Start
from zlclient.engine.runner import Engine, Outcome
from zlclient.engine.sampler import Sampler, Sampling
from zlclient.engine.snapshots import Snapshots
from zlclient.engine.tokenizer import Tokenizer
from zlclient.errors import InputError

PROMPT = [1, 80, 90, 100, 110] * 30


@pytest.fixture
def engine(checkpoint: Checkpoint) -> Engine:
    return Engine(checkpoint)


def run(engine: Engine, prompt=PROMPT, **options) -> Outcome:
    outcome = Outcome()
    for _ in engine.stream(prompt, outcome=outcome, **{"max_tokens": 20, **options}):
        pass
    return outcome


def test_greedy_is_the_same_every_time_and_cached(engine: Engine):
    first, second = run(engine), run(engine)
    assert first.tokens == second.tokens
    assert (first.cached_tokens, second.cached_tokens) == (0, 128)
    assert first.prompt_tokens == len(PROMPT)


def test_a_stream_is_what_the_outcome_says(engine: Engine):
    outcome = Outcome()
    pieces = list(engine.stream(PROMPT, max_tokens=20, outcome=outcome))
    assert "".join(piece.text for piece in pieces) == outcome.text == engine.tokenizer.decode(outcome.tokens)
    assert all(0 <= piece.probability <= 1 for piece in pieces)


def test_max_tokens_bounds_it(engine: Engine):
    outcome = run(engine, max_tokens=3)
    assert len(outcome.tokens) <= 3
    assert outcome.finish == ("length" if len(outcome.tokens) == 3 else "end")


def test_a_stop_sequence_ends_it(engine: Engine):
    whole = run(engine, sampling=Sampling(1.0, seed=3)).text
    stop = next(char for char in whole if char != "\ufffd")
    outcome = run(engine, sampling=Sampling(1.0, seed=3), stop=[stop])
    assert outcome.finish == "stop"
    assert outcome.text == whole[: whole.index(stop)]


def test_a_seed_gives_the_same_and_another_does_not(engine: Engine):
    made = [run(engine, sampling=Sampling(1.5, 0.95, seed)).tokens for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]


def test_threads_get_what_they_get_alone(engine: Engine):
    prompts = [[*PROMPT[:100], 70 + seed, *PROMPT[: 40 + seed]] for seed in range(8)]
    alone = [run(engine, prompt).tokens for prompt in prompts]
    together: list[list[int]] = [[] for _ in prompts]

    def work(at: int) -> None:
        together[at] = run(engine, prompts[at]).tokens

    threads = [threading.Thread(target=work, args=(at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


@pytest.mark.parametrize(
    ("prompt", "options"), [([], {}), (PROMPT, {"max_tokens": 0}), (PROMPT, {"max_tokens": 196_608})]
)
def test_what_cannot_be_run_is_refused(engine: Engine, prompt, options):
    with pytest.raises(InputError):
        engine.stream(prompt, **options)


@pytest.mark.parametrize("options", [{"temperature": -1}, {"temperature": 3}, {"top_p": 0}, {"top_p": 1.1}])
def test_sampling_outside_its_bounds_is_refused(options):
    with pytest.raises(InputError):
        Sampling(**options)


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=9), st.floats(0.05, 1), st.integers(0, 99))
def test_a_nucleus_holds_no_more_than_it_needs(values, top_p, seed):
    logits = np.array(values, np.float32)
    token = Sampler(Sampling(1.0, top_p, seed)).choose(logits)
    shares = np.exp(logits.astype(float) - logits.max())
    shares /= shares.sum()
    likelier = shares[shares > shares[token] * (1 + 1e-5)].sum()
    assert likelier <= top_p + 1e-5


@pytest.mark.parametrize("top_p", [0.3, 0.9, 0.999])
def test_a_nucleus_of_many_tokens_is_the_one_that_sorting_all_of_them_gives(top_p):
    logits = np.random.default_rng(2).standard_normal(500).astype(np.float32) * 2
    shares = np.exp(logits.astype(float)) / np.exp(logits.astype(float)).sum()
    order = np.argsort(-shares)
    nucleus = order[: np.searchsorted(shares[order].cumsum(), top_p) + 1]
    sampler = Sampler(Sampling(1.0, top_p, 7))
    counts = np.bincount([sampler.choose(logits) for _ in range(6000)], minlength=500) / 6000
    assert set(np.flatnonzero(counts)) <= set(nucleus.tolist())
    assert counts[nucleus] == pytest.approx(shares[nucleus] / shares[nucleus].sum(), abs=0.025)


def test_temperature_zero_takes_the_best():
    assert Sampler(Sampling()).choose(np.array([0.0, 3.0, 2.0])) == 1


def test_frequencies_follow_the_probabilities():
    sampler = Sampler(Sampling(1.0))
    counts = np.bincount([sampler.choose(np.log(np.array([0.5, 0.3, 0.2]))) for _ in range(4000)], minlength=3) / 4000
    assert counts == pytest.approx([0.5, 0.3, 0.2], abs=0.04)


def test_snapshots_are_taken_where_something_begins(tokenizer: Tokenizer):
    snapshots = Snapshots(tokenizer, {"number": 0.9})
    tokens = [
        tokenizer.marker(3),
        *tokenizer.encode("cat 1"),
        tokenizer.marker(3),
        *tokenizer.encode("2 Cat 3"),
        tokenizer.marker(4),
    ]
    firm = [snapshots.follow(token, 0.8) for token in tokens]
    assert [snapshot.point for snapshot in snapshots.taken] == ["number", "name", "number"]
    assert [snapshot.firm for snapshot in snapshots.taken] == [False, True, False]
    assert firm.count(False) == 2


@pytest.fixture
def doubting(make_checkpoint) -> Engine:
    """Doubts every number."""
    auto = make_checkpoint("auto")
    return Engine(replace(auto, config=replace(auto.config, thresholds={"general": {"number": 1.1}})))


def test_doubt_ends_an_answer_before_the_doubtful_token(doubting: Engine):
    for seed in range(50):
        options = {"sampling": Sampling(1.5, seed=seed)}
        sure, outcome = run(doubting, thresholds=False, **options), run(doubting, **options)
        numbers = [at for at, token in enumerate(sure.tokens) if doubting.tokenizer.is_digit(token)]
        if numbers:
            assert (outcome.finish, outcome.tokens) == ("doubt", sure.tokens[: numbers[0]])
            return
        assert (outcome.finish, outcome.tokens) == (sure.finish, sure.tokens)
    pytest.fail("no seed gave a number")


def test_a_quotations_numbers_are_noted_but_not_doubted(doubting: Engine):
    told = doubting.tokenizer.encode("a1a")
    outcome = run(doubting, constraint=Quotation(doubting.tokenizer, {doubting.tokenizer.marker(0): told}))
    assert outcome.finish == "end"
    assert [(snapshot.point, snapshot.firm) for snapshot in outcome.snapshots] == [("number", False)]


def test_a_plan_reads_what_it_wants_and_answers_from_what_it_came_to(engine: Engine, checkpoint: Checkpoint):
    prompts, opened = [PROMPT, PROMPT[:50]], []

    def plan() -> Plan:
        for tokens in prompts:
            opened.append((yield tokens))
        return Start(PROMPT[:70], 5)

    outcome = Outcome()
    found = list(engine.run(plan(), 300, domain="law", outcome=outcome))
    assert found == list(Engine(checkpoint).stream(PROMPT[:70], domain="law", max_tokens=5))
    assert outcome.prompt_tokens == len(PROMPT) + 50 + 70
    for tokens, logprobs in zip(prompts, opened, strict=True):
        logits = engine.model.forward(tokens, engine.model.start("law")).logits
        assert np.allclose(logprobs, logits - np.log(np.exp(logits).sum()), atol=1e-4)


def test_a_plan_may_come_to_nothing_or_fail(engine: Engine):
    def nothing(reads: int) -> Plan:
        for _ in range(reads):
            yield PROMPT
        return None

    def failing() -> Plan:
        yield PROMPT
        raise KeyError("lost")

    for reads in (0, 2):
        outcome = Outcome()
        assert list(engine.run(nothing(reads), 300, outcome=outcome)) == []
        assert (outcome.finish, outcome.prompt_tokens) == ("doubt", reads * len(PROMPT))
    with pytest.raises(KeyError, match="lost"):
        list(engine.run(failing(), 300))
    assert engine.scheduler.load.running == engine.scheduler.load.positions == 0


@given(
    st.lists(st.lists(st.integers(70, 90), max_size=5), min_size=1, max_size=6), st.integers(1, 7), st.integers(0, 999)
)
def test_a_quotation_is_whole_sentences_in_order(sentences, count, seed):
    tokenizer = Tokenizer(["a"])
    known = {tokenizer.marker(at): tokens for at, tokens in enumerate(sentences)}
    quotation, rng = Quotation(tokenizer, known, count=count), np.random.default_rng(seed)
    made: list[int] = []
    while not made or made[-1] != tokenizer.end:
        token = int(rng.choice(quotation.allowed()))
        quotation.follow(token)
        made.append(token)
    markers = [token for token in made if token in known]
    assert markers == sorted(set(markers))
    quoted = [token for marker in markers for token in (marker, *known[marker])]
    assert made == [*quoted, tokenizer.end]
    assert len(markers) == min(count, len(sentences))
