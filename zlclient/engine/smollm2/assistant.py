"""A conversation in, an answer out as it is written.

assistant = Assistant.fetched()
for text in assistant.answer([("user", "What is the capital of France?")]):
    print(text, end="")
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, Protocol

from ...errors import InputError
from ..sampler import Sampling
from . import store
from .chat import Role, prompt_tokens
from .gguf import Gguf
from .llama import Llama
from .llama_cpp import LlamaCpp
from .text import TokenText
from .tokenizer import Tokenizer

Finish = Literal["end", "stop", "length"]


class Decoder(Protocol):
    """What computes tokens: `Llama` or `LlamaCpp`. `context` is how many a sequence may have."""

    context: int

    def tokens(self, prompt: Sequence[int], sampling: Sampling, room: int) -> Iterator[int]:
        """Up to `room` tokens that follow `prompt`."""
        ...


@dataclass(slots=True)
class Outcome:
    """How an answer went; complete once its text has ended. `tokens` counts the one that ended it too.

    `finish`: end (the model ended it), stop (a stop sequence, which is `stop`), length (no more tokens were allowed).
    """

    prompt_tokens: int = 0
    tokens: int = 0
    finish: Finish = "length"
    stop: str | None = None


class Assistant:
    """A decoder with its tokenizer; safe to use from several threads."""

    def __init__(self, tokenizer: Tokenizer, decoder: Decoder) -> None:
        self.tokenizer, self.decoder = tokenizer, decoder

    @classmethod
    def load(cls, path: Path) -> Assistant:
        """The model in a GGUF file, by llama-cpp-python where that is installed; raises ConfigError."""
        file = Gguf(path)
        tokenizer = Tokenizer.of(file)
        decoder: Decoder
        try:
            decoder = LlamaCpp(path, file.number("llama.context_length"))
        except ImportError:
            decoder = Llama.of(file)
        return cls(tokenizer, decoder)

    @classmethod
    def fetched(cls) -> Assistant:
        """SmolLM2 from the user's cache, loaded once a process; raises NotFetched or ConfigError."""
        return _loaded(store.verified_path())

    def prompt(self, turns: Sequence[tuple[Role, str]], system: str = "") -> list[int]:
        """A conversation's tokens; raises InputError where they leave no room for an answer."""
        tokens = prompt_tokens(self.tokenizer, turns, system)
        if len(tokens) >= self.decoder.context:
            raise InputError(f"{len(tokens)} tokens do not fit in the model's {self.decoder.context}")
        return tokens

    def answer(
        self, turns: Sequence[tuple[Role, str]], system: str = "", *, sampling: Sampling | None = None,
        max_tokens: int = 1024, stop: Sequence[str] = (), outcome: Outcome | None = None,
    ) -> Iterator[str]:  # fmt: skip
        """The answer, piece by piece; closing the iterator ends the work.

        Args:
            turns: who said what, in order.
            system: what the model is told first; its own default where empty.
            sampling: greedy when None.
            max_tokens: at most this many tokens, at least 1, and at most what is left of the context.
            stop: texts that end the answer, themselves left out.
            outcome: filled in while the answer is read.

        Raises:
            InputError: the conversation is too long, or max_tokens below 1.
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
        room = min(max_tokens, self.decoder.context - len(prompt))
        tokens = self.decoder.tokens(prompt, sampling or Sampling(), room)
        return self._written(tokens, TokenText(self.tokenizer, stop), outcome or Outcome(), len(prompt))

    def _written(self, tokens: Iterator[int], text: TokenText, outcome: Outcome, read: int) -> Iterator[str]:
        outcome.prompt_tokens = read
        ends = frozenset(self.tokenizer.controls.values())
        for token in tokens:
            outcome.tokens += 1
            if token in ends:
                outcome.finish = "end"
                break
            if piece := text.push(token):
                yield piece
            if text.stopped is not None:
                outcome.finish, outcome.stop = "stop", text.stopped
                return
        if rest := text.flush():
            yield rest
        if text.stopped is not None:
            outcome.finish, outcome.stop = "stop", text.stopped


@cache
def _loaded(path: Path) -> Assistant:
    return Assistant.load(path)
