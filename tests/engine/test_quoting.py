"""What constrained decoding lets through: whole sentences, or a part of one that begins and ends where a word does."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlclient.engine.prompt import Prompt
from zlclient.engine.quoting import Excerpt, has_number
from zlclient.engine.tokenizer import Tokenizer
from zlclient.engine.training.vocabulary import build_tokenizer


@pytest.fixture(scope="module")
def full() -> Tokenizer:
    return build_tokenizer()


def excerpts(tokenizer: Tokenizer, text: str, *, number: bool = False) -> set[str]:
    """Every part that can be decoded from a sentence."""
    prompt = Prompt(tokenizer)
    marker, *told = prompt.sentence(2, text)
    found: set[str] = set()

    def walk(path: list[int]) -> None:
        constraint = Excerpt(tokenizer, marker, told, number=number)
        for token in path:
            constraint.follow(token)
        for token in constraint.allowed():
            if token == tokenizer.end:
                found.add(tokenizer.decode(path))
            else:
                walk([*path, token])

    walk([])
    return found


def test_parts_are_whole_words_and_numbers(full: Tokenizer):
    assert excerpts(full, "Q1 rent: 1,250.5 EUR.", number=True) == {"1,250.5", "1,250.5 EUR"}
    found = excerpts(full, "Rents in Q1.")
    assert found == {"Rents", "Rents in", "Rents in Q1", "in", "in Q1", "Q1"}


def test_a_chinese_part_may_begin_anywhere_but_inside_a_number(full: Tokenizer):
    found = excerpts(full, "租金为3.25亿元")
    assert {"3.25亿元", "租金", "3.25亿", "亿元"} <= found
    assert not found & {"25亿元", "3.2", "3", "5亿元"}
    assert all(part[0] in "3亿" for part in excerpts(full, "租金为3.25亿元", number=True))


@pytest.mark.parametrize(
    ("text", "possible"), [("The rent rose.", False), ("It is 40.", True), ("租金为三亿元", True), ("Room A1.", False)]
)
def test_only_a_sentence_with_a_number_can_give_one(full: Tokenizer, text: str, possible: bool):
    marker, *told = Prompt(full).sentence(0, text)
    constraint = Excerpt(full, marker, told, number=True)
    assert constraint.possible == possible
    assert (constraint.allowed() == (full.end,)) == (not possible)
    assert has_number(text) or not possible


@given(st.text("aB1.,% 猫年Q元\n", max_size=12), st.integers(0, 2**32))
def test_any_walk_ends_and_quotes(full: Tokenizer, text: str, seed: int):
    rng = random.Random(seed)
    marker, *told = Prompt(full).sentence(2, text)
    constraint = Excerpt(full, marker, told)
    path: list[int] = []
    while True:
        allowed = constraint.allowed()
        assert allowed
        token = rng.choice(allowed)
        if token == full.end:
            break
        constraint.follow(token)
        path.append(token)
        assert len(path) <= len(told) + 1
    assert full.decode(path) in text
