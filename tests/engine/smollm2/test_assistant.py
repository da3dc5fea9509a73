"""From a conversation to a streamed answer: limits, stop sequences, cancelling, and which decoder runs."""

import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from types import ModuleType
from typing import Any, ClassVar

import pytest
from waiting import until

from zlclient.engine.departure import CURRENT, Departure
from zlclient.engine.sampler import Sampling
from zlclient.engine.scheduler import Limits, Load, QueueFull
from zlclient.engine.smollm2 import scheduler, store
from zlclient.engine.smollm2.assistant import Assistant, Outcome, load_decoder
from zlclient.engine.smollm2.gguf import Gguf
from zlclient.engine.smollm2.llama import Llama
from zlclient.engine.smollm2.llama_cpp import LlamaCpp
from zlclient.engine.smollm2.tokenizer import Tokenizer
from zlclient.errors import ConfigError, InputError

TURNS: list[tuple[Any, str]] = [("user", "hello")]


class Scripted:
    """A decoder that says what it is told to, and notes what it was asked and when it was given up.

    With a `gate`, a token is computed only when the gate gives one out.
    """

    def __init__(
        self, tokens: Sequence[int], context: int = 1000, at_once: int = 4, gate: threading.Semaphore | None = None
    ) -> None:
        self.context, self.at_once, self._tokens, self._gate = context, at_once, tokens, gate
        self.rooms: list[int] = []
        self.given = 0
        self.closed = threading.Event()

    def tokens(self, prompt: Sequence[int], sampling: Sampling, room: int, outcome: Outcome) -> Generator[int | None]:
        self.rooms.append(room)
        try:
            yield None
            for token in self._tokens[:room]:
                if self._gate is not None:
                    assert self._gate.acquire(timeout=5)
                self.given += 1
                yield token
        finally:
            self.closed.set()


def assistant_of(tokenizer: Tokenizer, decoder: Scripted) -> Assistant:
    return Assistant(tokenizer, decoder.context, lambda: decoder)


@pytest.fixture
def said(tokenizer):
    """An assistant that says a text and ends it, and its decoder."""

    def make(text: str, **options) -> tuple[Assistant, Scripted]:
        tokens = [*tokenizer.encode(text), tokenizer.controls["<|im_end|>"], *tokenizer.encode(" never said")]
        decoder = Scripted(tokens, **options)
        return assistant_of(tokenizer, decoder), decoder

    return make


def test_the_answer_ends_with_the_turn(said, tokenizer):
    assistant, _ = said("hello 世界, 🙂!")
    outcome = Outcome()
    assert "".join(assistant.answer(TURNS, outcome=outcome)) == "hello 世界, 🙂!"
    assert outcome.finish == "end"
    assert outcome.stop is None
    assert outcome.tokens == [*tokenizer.encode("hello 世界, 🙂!"), tokenizer.controls["<|im_end|>"]]
    assert outcome.prompt_tokens == len(assistant.prompt(TURNS))


def test_max_tokens(said):
    assistant, decoder = said("hello there")
    outcome = Outcome()
    assert "".join(assistant.answer(TURNS, max_tokens=2, outcome=outcome)) == "hello "
    assert (outcome.finish, len(outcome.tokens), decoder.rooms) == ("length", 2, [2])
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


def test_a_prompt_of_no_tokens_or_too_many_is_refused(said):
    assistant, decoder = said("hello", context=20)
    for prompt in ([], [50] * 20):
        with pytest.raises(InputError, match="do not fit"):
            assistant.go_on(prompt)
    assert decoder.rooms == []


def test_a_file_whose_parts_do_not_fit_together_is_refused(make_gguf, metadata):
    with pytest.raises(ConfigError, match=r"llama\.vocab_size"):
        Assistant.load(make_gguf(metadata | {"llama.vocab_size": 5}))
    unmarked = ["<|other|>" if token == "<|im_end|>" else token for token in metadata["tokenizer.ggml.tokens"]]
    with pytest.raises(ConfigError, match=r"lacks the mark <\|im_end\|>"):
        Assistant.load(make_gguf(metadata | {"tokenizer.ggml.tokens": unmarked}))


def test_a_stop_sequence_over_several_tokens(said):
    assistant, _ = said("hello there, friend")
    outcome = Outcome()
    assert "".join(assistant.answer(TURNS, stop=("re, f", "zzz"), outcome=outcome)) == "hello the"
    assert (outcome.finish, outcome.stop) == ("stop", "re, f")


def test_nothing_is_computed_before_it_is_asked_for_nor_after_closing(said):
    gate = threading.Semaphore(0)
    assistant, decoder = said("hello there", gate=gate)
    outcome = Outcome()
    answer = assistant.answer(TURNS, outcome=outcome)
    assert decoder.rooms == []
    gate.release()
    assert [text for _, text in zip(range(2), answer, strict=False)] == ["", "hello"]
    answer.close()  # the next token may be under way
    gate.release()
    assert decoder.closed.wait(5)
    assert decoder.given <= 2
    assert outcome.finish == "cancelled"


def test_a_reader_that_waits_is_let_go_when_the_client_goes(said):
    gate = threading.Semaphore(0)
    assistant, decoder = said("hello there", gate=gate)
    departure, outcome, heard = Departure(), Outcome(), list[str]()

    def listen() -> None:
        CURRENT.set(departure)
        heard.extend(assistant.answer(TURNS, outcome=outcome))

    thread = threading.Thread(target=listen)
    thread.start()
    until(lambda: decoder.rooms != [])
    departure.happen()
    thread.join(5)
    assert not thread.is_alive()
    assert ("".join(heard), outcome.finish) == ("", "cancelled")
    gate.release()
    assert decoder.closed.wait(5)


def test_answers_are_computed_in_turns_and_are_what_each_is_alone(tiny_path):
    assistant = Assistant.load(tiny_path)
    prompts = [
        assistant.tokenizer.encode(text) for text in ("hello", "in the world", "1 2 3 4 5 6", "ing", "aaaa", "x")
    ]
    alone = ["".join(assistant.go_on(prompt, sampling=Sampling(1.0, seed=3), max_tokens=12)) for prompt in prompts]
    together = [assistant.go_on(prompt, sampling=Sampling(1.0, seed=3), max_tokens=12) for prompt in prompts]
    texts = [""] * len(prompts)

    def listen(at: int) -> None:
        texts[at] = "".join(together[at])

    threads = [threading.Thread(target=listen, args=(at,)) for at in range(len(prompts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert texts == alone
    assert assistant.scheduler.load == Load(0, 0, 0)


def test_more_requests_than_may_wait_are_refused(said):
    gate = threading.Semaphore(0)
    assistant, _ = said("hello", at_once=1, gate=gate)
    assistant.scheduler.limits = Limits(running=1, waiting=1, positions=10_000)
    answers = [assistant.answer(TURNS) for _ in range(3)]
    heard = [threading.Thread(target=list, args=(answer,)) for answer in answers[:2]]
    for number, thread in enumerate(heard):
        thread.start()
        until(lambda number=number: (assistant.scheduler.load.running, assistant.scheduler.load.waiting) == (1, number))
    with pytest.raises(QueueFull):
        next(answers[2])
    gate.release(100)
    for thread in heard:
        thread.join(5)
        assert not thread.is_alive()
    assert "zlclient:requests_refused_total{} 1" in str(assistant.metrics.lines(assistant, ""))


def test_what_goes_wrong_in_the_decoder_reaches_the_reader_and_ends_only_that_answer(tokenizer):
    class Broken(Scripted):
        def tokens(self, prompt, sampling, room, outcome):
            if room == 13:
                raise MemoryError("no room")
            yield from super().tokens(prompt, sampling, room, outcome)

    assistant = assistant_of(tokenizer, Broken(tokenizer.encode("hello")))
    with pytest.raises(MemoryError, match="no room"):
        list(assistant.answer(TURNS, max_tokens=13))
    assert "".join(assistant.answer(TURNS, max_tokens=5)) == "hello"


def test_control_tokens_have_no_text(tokenizer):
    assistant = assistant_of(tokenizer, Scripted([*tokenizer.encode("hello"), tokenizer.controls["<|im_start|>"], 50]))
    assert "".join(assistant.answer(TURNS)) == "hello"


def test_numpy_runs_where_llama_cpp_is_not_installed(tiny_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    assert isinstance(load_decoder(Gguf(tiny_path)), Llama)
    assistant = Assistant.load(tiny_path)
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
        self.alone, self._sequence = True, 0
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
        self._sequence += 1
        mine = self._sequence
        while True:
            self.alone = self.alone and self._sequence == mine
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
    assert fake_llama.made == []  # nothing is loaded before the first answer
    prompt = assistant.tokenizer.encode("hello")
    text = "".join(assistant.go_on(prompt, sampling=Sampling(0.5, 0.8, 11), max_tokens=3))
    assert len(text) == 3
    (made,) = fake_llama.made
    assert (made.path, made.n_ctx, made.verbose) == (str(tiny_path), 96, False)
    assert made.calls == [("reset", None), ("seed", 11), ("generate", (prompt, 0, 0.8, 0.0, 0.5, 1.0))]


def test_llama_cpp_computes_one_answer_at_a_time(tiny_path, fake_llama):
    assistant = Assistant.load(tiny_path)
    prompts = [[50 + at] for at in range(5)]
    threads = [threading.Thread(target=lambda p=p: list(assistant.go_on(p, max_tokens=9))) for p in prompts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    (made,) = fake_llama.made
    assert made.alone
    assert sorted(call[1][0] for call in made.calls if call[0] == "generate") == prompts


def test_llama_cpp_that_cannot_load_is_an_error(tmp_path, fake_llama):
    with pytest.raises(ConfigError, match="llama-cpp-python cannot load it"):
        LlamaCpp(tmp_path / "broken.gguf", 96)


def test_a_decoder_that_cannot_be_loaded_fails_the_answer_and_is_tried_again(tokenizer):
    decoders = iter([ConfigError("tensor missing"), Scripted(tokenizer.encode("hello"))])

    def load() -> Scripted:
        if isinstance(found := next(decoders), Exception):
            raise found
        return found

    assistant = Assistant(tokenizer, 1000, load)
    with pytest.raises(ConfigError, match="tensor missing"):
        list(assistant.answer(TURNS))
    assert "".join(assistant.answer(TURNS, max_tokens=5)) == "hello"


def test_a_reader_hears_that_there_is_nothing_yet(said, monkeypatch):
    monkeypatch.setattr(scheduler, "SILENCE", 0.01)
    gate = threading.Semaphore(0)
    assistant, _ = said("hello", gate=gate)
    answer = assistant.answer(TURNS)
    assert [next(answer) for _ in range(3)] == ["", "", ""]
    gate.release(9)
    assert "".join(answer) == "hello"


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
