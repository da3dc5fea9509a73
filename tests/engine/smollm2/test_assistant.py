"""From a conversation to a streamed answer: limits, stop sequences, cancelling, and which decoder runs."""

import sys
import threading
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, ClassVar

import pytest

from zlclient.engine.sampler import Sampling
from zlclient.engine.smollm2 import store
from zlclient.engine.smollm2.assistant import Assistant, Outcome
from zlclient.engine.smollm2.llama import Llama
from zlclient.engine.smollm2.llama_cpp import LlamaCpp
from zlclient.errors import ConfigError, InputError

TURNS: list[tuple[Any, str]] = [("user", "hello")]


class Scripted:
    """A decoder that says what it is told to, and notes what it was asked and when it was given up."""

    def __init__(self, tokens: Sequence[int], context: int = 1000) -> None:
        self.context, self._tokens = context, tokens
        self.rooms: list[int] = []
        self.given = 0
        self.closed = False

    def tokens(self, prompt: Sequence[int], sampling: Sampling, room: int) -> Iterator[int]:
        self.rooms.append(room)
        try:
            for token in self._tokens[:room]:
                self.given += 1
                yield token
        finally:
            self.closed = True


@pytest.fixture
def said(tokenizer):
    """An assistant that says a text and ends it, and its decoder."""

    def make(text: str, **options) -> tuple[Assistant, Scripted]:
        tokens = [*tokenizer.encode(text), tokenizer.controls["<|im_end|>"], *tokenizer.encode(" never said")]
        decoder = Scripted(tokens, **options)
        return Assistant(tokenizer, decoder), decoder

    return make


def test_the_answer_ends_with_the_turn(said, tokenizer):
    assistant, _ = said("hello 世界, 🙂!")
    outcome = Outcome()
    assert "".join(assistant.answer(TURNS, outcome=outcome)) == "hello 世界, 🙂!"
    assert outcome.finish == "end"
    assert outcome.stop is None
    assert outcome.tokens == len(tokenizer.encode("hello 世界, 🙂!")) + 1
    assert outcome.prompt_tokens == len(assistant.prompt(TURNS))


def test_max_tokens(said):
    assistant, decoder = said("hello there")
    outcome = Outcome()
    assert "".join(assistant.answer(TURNS, max_tokens=2, outcome=outcome)) == "hello "
    assert (outcome.finish, outcome.tokens, decoder.rooms) == ("length", 2, [2])
    with pytest.raises(InputError, match="max_tokens"):
        assistant.answer(TURNS, max_tokens=0)


def test_an_answer_never_leaves_the_context(said, tokenizer):
    read = len(said("x")[0].prompt(TURNS))
    assistant, decoder = said("hello there", context=read + 3)
    assert "".join(assistant.answer(TURNS, max_tokens=500)) == tokenizer.decode(tokenizer.encode("hello there")[:3])
    assert decoder.rooms == [3]
    assistant, _ = said("hello", context=read)
    with pytest.raises(InputError, match=f"{read} tokens do not fit"):
        assistant.answer(TURNS)


def test_a_stop_sequence_over_several_tokens(said):
    assistant, decoder = said("hello there, friend")
    outcome = Outcome()
    assert "".join(assistant.answer(TURNS, stop=("re, f", "zzz"), outcome=outcome)) == "hello the"
    assert (outcome.finish, outcome.stop) == ("stop", "re, f")
    assert decoder.given < len("hello there, friend")


def test_nothing_is_computed_before_it_is_asked_for_nor_after_closing(said):
    assistant, decoder = said("hello there")
    answer = assistant.answer(TURNS)
    assert decoder.given == 0
    assert next(answer) == "hello"
    assert decoder.given == 1
    answer.close()
    del answer
    assert decoder.closed
    assert decoder.given == 1


def test_control_tokens_have_no_text(tokenizer):
    assistant = Assistant(tokenizer, Scripted([*tokenizer.encode("hello"), tokenizer.controls["<|im_start|>"], 50]))
    assert "".join(assistant.answer(TURNS)) == "hello"


def test_numpy_runs_where_llama_cpp_is_not_installed(tiny_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    assistant = Assistant.load(tiny_path)
    assert isinstance(assistant.decoder, Llama)
    prompt = assistant.tokenizer.encode("hello")
    assert "".join(assistant.go_on(prompt, max_tokens=8)) == "".join(assistant.go_on(prompt, max_tokens=8))


class FakeLlama:
    """The part of `llama_cpp.Llama` (0.3) that is used: same names, same arguments, tokens without an end."""

    made: ClassVar[list["FakeLlama"]] = []

    def __init__(self, model_path: str, *, n_ctx: int = 512, seed: int = 0, verbose: bool = True) -> None:
        if "broken" in model_path:
            raise ValueError("Failed to load model from file")
        self.path, self.n_ctx, self.verbose = model_path, n_ctx, verbose
        self.calls: list[tuple[str, Any]] = []
        FakeLlama.made.append(self)

    def reset(self) -> None:
        self.calls.append(("reset", None))

    def set_seed(self, seed: int) -> None:
        self.calls.append(("seed", seed))

    def generate(
        self, tokens: Sequence[int], top_k: int = 40, top_p: float = 0.95, min_p: float = 0.05, typical_p: float = 1.0,
        temp: float = 0.80, repeat_penalty: float = 1.0, reset: bool = True,
    ) -> Iterator[int]:  # fmt: skip
        self.calls.append(("generate", (list(tokens), top_k, top_p, min_p, temp, repeat_penalty)))
        while True:
            yield 3 + ord("a")


@pytest.fixture
def fake_llama(monkeypatch) -> type[FakeLlama]:
    module = ModuleType("llama_cpp")
    module.Llama = FakeLlama  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "llama_cpp", module)
    monkeypatch.setattr(FakeLlama, "made", [])
    return FakeLlama


def test_llama_cpp_runs_where_it_is_installed(tiny_path, fake_llama):
    assistant = Assistant.load(tiny_path)
    assert isinstance(assistant.decoder, LlamaCpp)
    (made,) = fake_llama.made
    assert (made.path, made.n_ctx, made.verbose) == (str(tiny_path), 96, False)
    prompt = assistant.tokenizer.encode("hello")
    text = "".join(assistant.go_on(prompt, sampling=Sampling(0.5, 0.8, 11), max_tokens=3))
    assert len(text) == 3
    assert made.calls == [("reset", None), ("seed", 11), ("generate", (prompt, 0, 0.8, 0.0, 0.5, 1.0))]


def test_llama_cpp_computes_one_answer_at_a_time(tiny_path, fake_llama):
    decoder = LlamaCpp(tiny_path, 96)
    first = decoder.tokens([1], Sampling(), 5)
    next(first)
    got: list[int] = []
    other = threading.Thread(target=lambda: got.extend(decoder.tokens([2], Sampling(), 2)))
    other.start()
    other.join(0.05)
    assert got == []
    first.close()
    other.join(5)
    assert len(got) == 2


def test_llama_cpp_that_cannot_load_is_an_error(tmp_path, fake_llama):
    with pytest.raises(ConfigError, match="llama-cpp-python cannot load it"):
        LlamaCpp(tmp_path / "broken.gguf", 96)


@pytest.mark.slow
def test_the_real_model_knows_the_capital_of_france():
    """The 98 MB file, only where `zlclient engine fetch smollm2` has been run for this user."""
    if not store.is_fetched():
        pytest.skip("SmolLM2's weights are not in the cache: zlclient engine fetch smollm2")
    assistant = Assistant.fetched()
    assert assistant.tokenizer.size == 49_152
    text = "Zwölf Boxkämpfer, 十二个拳击手: 12½ \n\n  <|im_end|>"
    assert assistant.tokenizer.decode(assistant.tokenizer.encode(text)) == text
    outcome = Outcome()
    answer = "".join(assistant.answer([("user", "What is the capital of France?")], max_tokens=24, outcome=outcome))
    assert "Paris" in answer
    assert outcome.prompt_tokens == 37
