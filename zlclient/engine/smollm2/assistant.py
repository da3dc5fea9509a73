"""A conversation in, an answer out as it is written.

    assistant = Assistant.fetched()
    for text in assistant.answer([("user", "What is the capital of France?")]):
        print(text, end="")

Answers of several conversations are computed in turns, so each is what it would be alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path

from ...errors import ConfigError, InputError
from ..metrics import Metrics
from ..sampler import Sampling
from . import store
from .chat import END, START, Role, prompt_tokens
from .gguf import Gguf
from .llama import Llama
from .llama_cpp import LlamaCpp
from .outcome import Outcome
from .scheduler import Decoder, Scheduler
from .text import TokenText
from .tokenizer import Tokenizer


class Assistant:
    """A decoder with its tokenizer; safe to use from several threads. `load` makes the decoder for the first answer."""

    def __init__(self, tokenizer: Tokenizer, context: int, load: Callable[[], Decoder]) -> None:
        self.tokenizer, self.context = tokenizer, context
        self.metrics = Metrics()
        self.scheduler = Scheduler(load, context, frozenset(tokenizer.controls.values()), self.metrics)

    @property
    def cache(self) -> Scheduler:
        """Who counts what was taken over from the prompt before: its `stats`."""
        return self.scheduler

    @classmethod
    def load(cls, path: Path) -> Assistant:
        """The model in a GGUF file; raises ConfigError where it is none of this kind."""
        file = Gguf(path)
        tokenizer = Tokenizer.of(file)
        if file.number("llama.vocab_size") != tokenizer.size:
            raise ConfigError(f"must be {tokenizer.size}, as many as tokens", key="llama.vocab_size", file=str(path))
        if missing := {START, END} - tokenizer.controls.keys():
            raise ConfigError(f"lacks the mark {min(missing)}", key="tokenizer.ggml.tokens", file=str(path))
        return cls(tokenizer, file.number("llama.context_length"), lambda: load_decoder(file))

    @classmethod
    def fetched(cls) -> Assistant:
        """SmolLM2 from the user's cache, loaded once a process; raises NotFetched or ConfigError."""
        with _LOADING:
            return _loaded(store.verified_path())

    def prompt(self, turns: Sequence[tuple[Role, str]], system: str = "") -> list[int]:
        """A conversation's tokens; raises InputError where they leave no room for an answer."""
        tokens = prompt_tokens(self.tokenizer, turns, system)
        self._room(tokens)
        return tokens

    def _room(self, prompt: Sequence[int]) -> int:
        """How many tokens may follow."""
        if not 0 < len(prompt) < self.context:
            raise InputError(f"{len(prompt)} tokens do not fit in the model's {self.context}")
        return self.context - len(prompt)

    def answer(
        self, turns: Sequence[tuple[Role, str]], system: str = "", *, sampling: Sampling | None = None,
        max_tokens: int = 1024, stop: Sequence[str] = (), outcome: Outcome | None = None,
    ) -> Iterator[str]:  # fmt: skip
        """The answer, piece by piece; closing the iterator ends the work.

        A piece may be empty: the first is, and one comes after each second in which there was no other.

        Args:
            turns: who said what, in order.
            system: what the model is told first; its own default where empty.
            sampling: greedy when None.
            max_tokens: at most this many tokens, at least 1, and at most what is left of the context.
            stop: texts that end the answer, themselves left out.
            outcome: filled in while the answer is read.

        Raises:
            InputError: the conversation is too long, or max_tokens below 1.
            QueueFull: when first read, where too many requests wait already.
        """
        return self.go_on(
            self.prompt(turns, system), sampling=sampling, max_tokens=max_tokens, stop=stop, outcome=outcome
        )

    def go_on(
        self, prompt: Sequence[int], *, sampling: Sampling | None = None, max_tokens: int = 1024,
        stop: Sequence[str] = (), outcome: Outcome | None = None,
    ) -> Iterator[str]:  # fmt: skip
        """What follows the tokens of `prompt`; see `answer`."""
        if max_tokens < 1:
            raise InputError("must be at least 1", where="max_tokens")
        outcome = outcome or Outcome()
        outcome.prompt_tokens = len(prompt)
        room = min(max_tokens, self._room(prompt))
        tokens = self.scheduler.tokens(prompt, sampling or Sampling(), room, outcome)
        return self._written(tokens, TokenText(self.tokenizer, stop), outcome)

    def _written(self, tokens: Generator[int | None], text: TokenText, outcome: Outcome) -> Iterator[str]:
        with closing(tokens):
            for token in tokens:
                if token is None:
                    yield ""
                    continue
                if piece := text.push(token):
                    yield piece
                if text.stopped is not None:
                    outcome.finish, outcome.stop = "stop", text.stopped
                    return
        if rest := text.flush():
            yield rest
        if text.stopped is not None:
            outcome.finish, outcome.stop = "stop", text.stopped


def load_decoder(file: Gguf) -> Decoder:
    """llama-cpp-python's where that is installed, else numpy's; raises ConfigError."""
    try:
        return LlamaCpp(file.path, file.number("llama.context_length"))
    except ImportError:
        return Llama.of(file)


@cache
def _loaded(path: Path) -> Assistant:
    return Assistant.load(path)


_LOADING = threading.Lock()  # `cache` alone would let two threads load two of them
