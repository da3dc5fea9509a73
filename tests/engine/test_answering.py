"""From a request to an answer: what is quoted stands in the text, and what is not the engine's is left alone."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zlclient.engine.answering import WINDOW, Answer, answer, excerpt, summary
from zlclient.engine.checkpoint import Checkpoint
from zlclient.engine.domains import domain_marks, domain_of
from zlclient.engine.prompt import FIRST, STRIDE, Prompt
from zlclient.engine.runner import Engine
from zlclient.engine.tokenizer import MARKERS
from zlclient.serving.responders.base import Ask, Head, Text, Thinking, Turn
from zlclient.serving.responders.engine import EngineResponder
from zlclient.serving.responders.offline import NOT_STATED


@pytest.fixture(scope="session")
def auto(make_checkpoint: Callable[..., Checkpoint]) -> Engine:
    return Engine(make_checkpoint("auto"))


def ask(text: str, **options) -> Ask:
    return Ask(
        **{"wire": "anthropic", "model": "auto", "turns": (Turn("user", ({"type": "text", "text": text},)),), **options}
    )


SENTENCES = st.lists(
    st.text("ab猫1. ", min_size=1, max_size=30).map(lambda text: text.strip() + "."), min_size=1, max_size=60
)


@given(SENTENCES)
@settings(max_examples=25, deadline=None)
def test_what_is_answered_stands_in_the_text(auto: Engine, sentences: list[str]):
    found = Answer()
    made = "".join(answer(auto, sentences, "what?", result=found))
    assert found.decision is not None
    assert found.stated == found.decision.stated == (found.sentences == [found.decision.index])
    assert made.strip() == (sentences[found.decision.index].strip() if found.stated else "")


@given(SENTENCES, st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_a_summary_is_sentences_of_the_first_window(auto: Engine, sentences: list[str], count: int):
    found = Answer()
    made = "".join(summary(auto, sentences, "sum up", count, result=found))
    quoted = [sentences[at] for at in found.sentences]
    assert made.replace(" ", "") == "".join(quoted).replace(" ", "")
    assert len(quoted) == min(count, len(sentences[:WINDOW]))


@given(SENTENCES, st.booleans())
@settings(max_examples=25, deadline=None)
def test_an_excerpt_is_part_of_a_sentence(auto: Engine, sentences: list[str], number: bool):
    found = Answer()
    part = excerpt(auto, sentences, "what?", number=number, result=found)
    if part is not None:
        assert part in sentences[found.sentences[0]]
        assert not number or part[0].isdigit()


def test_no_sentences_no_answer(auto: Engine):
    assert list(answer(auto, [], "what?")) == list(summary(auto, [], "sum up", 2)) == []
    assert excerpt(auto, [], "what?") is None
    assert excerpt(auto, ["No numeral here."], "how many?", number=True) is None


def test_there_is_a_marker_for_every_sentence_of_a_window(auto: Engine):
    prompt = Prompt(auto.tokenizer)
    assert FIRST + WINDOW <= MARKERS
    assert [prompt.marked(prompt.marker(at)) for at in range(WINDOW)] == list(range(WINDOW))
    assert prompt.marked(auto.tokenizer.none) is None


def test_every_token_sees_its_marker_within_the_convolution(auto: Engine):
    prompt = Prompt(auto.tokenizer, 0)
    tokens = prompt.sentence(5, "the cat is on a long wall of bricks")
    marker = auto.tokenizer.marker(5)
    places = [at for at, token in enumerate(tokens) if token == marker]
    assert places == list(range(0, len(tokens), STRIDE + 1))
    assert auto.tokenizer.decode(tokens) == "the cat is on a long wall of bricks"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("【法律文书】 甲方…", ("law", "【法律文书】")),
        ("x 【Medical record】 y", ("medicine", "【Medical record】")),
        ("公司营业收入增长，净利润下降。", ("finance", "")),
        ("The net income and the share price rose.", ("finance", "")),
        ("The net income rose.", ("general", "")),
        ("", ("general", "")),
    ],
)
def test_domains_are_recognised(text: str, found: tuple[str, str]):
    assert domain_of(text) == found


def test_the_marked_domains_are_those_of_training():
    from zlclient.engine.training.data import DOMAINS, lexicon

    assert set(domain_marks()) == set(DOMAINS)
    for domain in DOMAINS:
        assert {lexicon()[domain][language]["tag"] for language in ("zh", "en")} <= set(domain_marks()[domain].tags)


def test_the_responder_answers_its_own_model_only(auto: Engine):
    responder = EngineResponder("auto", auto)
    question = "The cat sat. A dog ran.\n\nWho ran?"
    assert responder.respond(ask(question)) is not None
    assert responder.respond(ask(question, model="local:auto")) is not None
    for other in (
        ask(question, model="legacy"),
        ask(question, output_schema={}),
        ask("hello"),
        ask(question, model="gpt"),
    ):
        assert responder.respond(other) is None or other.output_schema == {}


def test_the_responder_quotes_or_says_that_it_is_not_stated(auto: Engine):
    responder = EngineResponder("auto", auto)
    events = list(responder.respond(ask("The cat sat. A dog ran.\n\nWho ran?", thinking=True)) or ())
    assert isinstance(events[0], Head)
    assert isinstance(events[1], Thinking)
    text = "".join(event.text for event in events if isinstance(event, Text))
    assert text in {"The cat sat.", "A dog ran.", *NOT_STATED.values()}


def test_several_questions_are_answered_one_after_the_other():
    responder = EngineResponder("auto", Engine.shipped("auto"))
    passage = "The red boat left Oslo in 1998. It rained in Bergen. The captain was Nils Dahl."
    events = responder.respond(ask(f"{passage}\n\nWho was the captain? Which boat left Oslo?")) or ()
    text = "".join(event.text for event in events if isinstance(event, Text))
    assert text == "The captain was Nils Dahl. The red boat left Oslo in 1998."


def test_a_summary_has_as_many_sentences_as_asked(auto: Engine):
    responder = EngineResponder("auto", auto)
    events = (
        responder.respond(ask("Summarize in two sentences.\n\nThe cat sat. A dog ran. It rained. Nobody came.")) or ()
    )
    text = "".join(event.text for event in events if isinstance(event, Text))
    assert text.count(".") == 2
