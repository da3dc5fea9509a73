"""The decision which sentence answers, or none: from a reading of the passage and one of its best sentences, each alone."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from zlclient.engine.answering import Answer, answer
from zlclient.engine.checkpoint import Checkpoint, load_shipped
from zlclient.engine.config import GENERATIONS
from zlclient.engine.deciding import WINDOW, Question
from zlclient.engine.deciding import decide as decided_by
from zlclient.engine.departure import CURRENT, Departure
from zlclient.engine.runner import EVEN, Engine
from zlclient.engine.sampler import Sampling
from zlclient.engine.training.data import Mix, make_document

PASSAGE = ["The red boat left Oslo in 1998.", "It rained in Bergen.", "The captain was Nils Dahl."]
CAPTAIN = "Who was the captain?"


def decide(engine: Engine, sentences: Sequence[str], text: str, *, domain: str = "general", among=None, **options):
    question = Question(engine.tokenizer, sentences, text, among=among)
    return decided_by(engine, question, domain=domain, **options)


@pytest.fixture
def untrained(make_checkpoint: Callable[..., Checkpoint]) -> Engine:
    return Engine(make_checkpoint("auto"))


@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_sentence_that_answers_is_found_and_its_text_follows_its_marker(generation):
    engine = Engine.shipped(generation)
    decision = decide(engine, PASSAGE, CAPTAIN)
    assert decision is not None
    assert (decision.index, decision.stated) == (2, True)
    assert engine.tokenizer.decode(decision.told).strip() == PASSAGE[2]
    assert engine.tokenizer.marked(decision.prompt[-1]) is not None


@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_second_reading_refuses_what_joins_one_thing_with_anothers_property(generation):
    """Each word of such a question stands in the passage, only never in one sentence."""
    engine, rng = Engine.shipped(generation), random.Random("crossed")
    refused = {0: 0, 3: 0}
    for _ in range(10):
        document = make_document(rng, 8, 6, mix=Mix(loose=0.0, unstated=1.0, crossed=1.0))
        for question in document.questions:
            for looks in refused:
                decision = decide(engine, document.sentences, question.text, looks=looks)
                assert decision is not None
                refused[looks] += decision.snapshot.probability < EVEN
    assert refused[3] > 1.3 * refused[0]


def test_a_decision_is_held_against_the_threshold_of_its_domain():
    shipped = load_shipped("auto")
    table = {"general": {"answer": 0.0}, "law": {"answer": 1.1}}
    engine = Engine(replace(shipped, config=replace(shipped.config, thresholds=table)))
    plain, law, unknown = (decide(engine, PASSAGE, CAPTAIN, domain=domain) for domain in ("general", "law", "cooking"))
    assert plain is not None
    assert law is not None
    assert unknown is not None
    assert (plain.stated, law.stated, unknown.stated) == (True, False, True)
    assert law.snapshot.threshold == 1.1
    assert law.index == plain.index == 2


def test_without_a_table_an_answer_has_to_be_likelier_than_none(untrained: Engine):
    decision = decide(untrained, PASSAGE, CAPTAIN)
    assert decision is not None
    assert decision.snapshot.threshold == EVEN
    assert decision.stated == (decision.snapshot.probability >= EVEN)


def test_only_candidates_are_chosen(untrained: Engine):
    for at in range(len(PASSAGE)):
        decision = decide(untrained, PASSAGE, CAPTAIN, among=[at])
        assert decision is not None
        assert decision.index == at
    assert decide(untrained, PASSAGE, CAPTAIN, among=[]) is None
    assert decide(untrained, [], CAPTAIN) is None


@pytest.mark.parametrize("at", [0, WINDOW - 1, WINDOW, 3 * WINDOW])
def test_an_answer_is_found_in_whichever_window_it_is(at):
    told = [f"Room {number} is painted." for number in range(3 * WINDOW)]
    told.insert(at, PASSAGE[2])
    decision = decide(Engine.shipped("auto"), told, CAPTAIN)
    assert decision is not None
    assert (decision.index, decision.stated) == (at, True)


def test_at_a_temperature_another_sentence_may_be_drawn_and_a_seed_draws_the_same(untrained: Engine):
    def drawn(seed: int) -> int:
        result = Answer()
        list(answer(untrained, PASSAGE, "?", sampling=Sampling(2.0, seed=seed), result=result))
        assert result.decision is not None
        return result.decision.index

    first, second = ([drawn(seed) for seed in range(20)] for _ in range(2))
    assert first == second
    assert len(set(first)) > 1


def test_nothing_is_decided_for_one_who_left(untrained: Engine):
    departure = Departure()
    departure.happen()
    token = CURRENT.set(departure)
    try:
        assert decide(untrained, PASSAGE, CAPTAIN) is None
    finally:
        CURRENT.reset(token)
