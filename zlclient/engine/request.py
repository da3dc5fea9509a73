"""One request inside the engine: what it asks, how far it is, and how its next token is chosen.

The scheduler feeds it steps; it puts pieces where its consumer waits for them. A request may read several prompts
before it answers: its plan yields them one after the other, is sent what each opens, and returns what to answer from.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Literal, Protocol

import numpy as np

from .safetensors import Array
from .sampler import Sampler, Sampling, log_softmax
from .snapshots import Snapshot, Snapshots
from .state import State, Step
from .text_stream import TextStream
from .tokenizer import Tokenizer

Finish = Literal["end", "stop", "length", "doubt", "cancelled"]


class Constraint(Protocol):
    """What may come next, as `quoting.Quotation` says it; one for each request."""

    def allowed(self) -> tuple[int, ...]:
        """The tokens that may come next; at least one."""
        ...

    def follow(self, token: int) -> None:
        """`token` was chosen."""
        ...


@dataclass(frozen=True, slots=True)
class Start:
    """What an answer of at most `max_tokens` begins from; a `constraint` lets only its own tokens through."""

    prompt: Sequence[int]
    max_tokens: int
    constraint: Constraint | None = None


# Yields prompts to read, is sent the log probabilities (V,) of what follows each; None: there is nothing to answer.
Plan = Generator[Sequence[int], Array, Start | None]


@dataclass(frozen=True, slots=True)
class Piece:
    """One token: the text it made certain, its probability, and legacy's verdict and further check rounds.

    `top` holds the likeliest tokens with their log probabilities, the best first, as many as Sampling.logprobs asked.
    """

    token: int
    text: str
    probability: float
    verdict: float | None = None
    further: int = 0
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()


@dataclass(slots=True)
class Outcome:
    """How a sequence went; complete once its stream has ended.

    `finish`: end (the model ended it), stop (a stop sequence), length (max_tokens), doubt (a snapshot was under its
    threshold: the text does not firmly state it; the doubtful token and what follows are not given out), cancelled
    (nobody read on). A plan that comes to nothing ends in doubt. Tokens of prompts are those of all that were read.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    tokens: list[int] = field(default_factory=list[int])
    text: str = ""
    finish: Finish = "end"
    snapshots: list[Snapshot] = field(default_factory=list[Snapshot])
    further: int = 0
    gated: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class Times:
    """Seconds on the scheduler's clock; 0 until it happened."""

    arrived: float = 0.0
    scheduled: float = 0.0
    first: float = 0.0  # token
    last: float = 0.0  # token


class Request:
    """A plan on its way to an answer, holding room for `room` positions.

    `pieces` is where its consumer waits: pieces, then None, or an exception. `cancelled` may be set by any thread, also
    in the middle of a garbage collection, so without a lock; the rest is the scheduler's.
    """

    def __init__(
        self, plan: Plan, room: int, domain: str, sampling: Sampling, tokenizer: Tokenizer, stop: Sequence[str],
        snapshots: Snapshots, outcome: Outcome,
    ) -> None:  # fmt: skip
        self.positions, self.domain = room, domain
        self.outcome, self.times = outcome, Times()
        self.pieces: SimpleQueue[Piece | BaseException | None] = SimpleQueue()
        self.cancelled = False
        self.prompt: list[int] = []  # the one that is being read, or was last
        self.state: State | None = None
        self.token = tokenizer.pad  # the last one chosen
        self.reading = True  # not all of the prompt has been read
        self._plan = plan
        self._start: Start | None = None  # what the plan came to, once it has
        self._tokenizer, self._sampling, self._sampler = tokenizer, sampling, Sampler(sampling)
        self._text, self._snapshots = TextStream(tokenizer, stop), snapshots
        outcome.prompt_tokens, outcome.snapshots, outcome.finish = 0, snapshots.taken, "length"
        self._go_on()

    @property
    def left(self) -> int:
        """Tokens of the prompt that are still to be read."""
        return len(self.prompt) - (self.state.length if self.state else 0)

    def give_up(self) -> None:
        """From any thread: its consumer stops waiting, and the scheduler drops it before its next round."""
        self.cancelled = True
        self.pieces.put(None)

    def take(self, step: Step) -> bool:
        """Go on with the plan, or choose the next token from `step` and give its piece out; whether there is to be
        another step, which is of another prompt where `reading` is true again."""
        logprobs = log_softmax(step.logits)
        start = self._start
        if start is None:
            return self._go_on(logprobs)
        outcome, token = self.outcome, self._choose(step, start.constraint)
        if token == self._tokenizer.end:
            return self._ended("end")
        probability = float(np.exp(logprobs[token]))
        firm = self._snapshots.follow(token, probability)
        if not firm and start.constraint is None:  # a quotation's numbers and names cannot be wrong
            return self._ended("doubt")
        self.token = token
        outcome.tokens.append(token)
        outcome.further += step.further
        self._give(self._piece(token, probability, logprobs, step))
        if self._text.stopped is not None:
            return self._ended("stop")
        return len(outcome.tokens) < start.max_tokens or self._ended("length")

    def close(self, problem: BaseException | None = None) -> None:
        """Nothing more comes: give out what text was held back, or say what went wrong."""
        if self.state is not None:
            self.outcome.gated = (self.state.gated[0], self.state.gated[1])
        self.state = None
        if problem is None and not self.cancelled and (rest := self._text.flush()):
            self._give(Piece(self._tokenizer.pad, rest, 1.0))
        self.pieces.put(problem)

    def _go_on(self, opened: Array | None = None) -> bool:
        """Take the plan's next prompt, or what it comes to."""
        try:
            prompt = next(self._plan) if opened is None else self._plan.send(opened)
        except StopIteration as found:
            self._start = found.value
            if self._start is None:
                return self._ended("doubt")
            prompt = self._start.prompt
        self.prompt, self.state, self.reading = list(prompt), None, True
        self.outcome.prompt_tokens += len(self.prompt)
        return True

    def _choose(self, step: Step, constraint: Constraint | None) -> int:
        if constraint is None:
            return self._sampler.choose(step.logits)
        allowed = constraint.allowed()
        token = allowed[0] if len(allowed) == 1 else allowed[self._sampler.choose(step.logits[list(allowed)])]
        constraint.follow(token)
        return token

    def _piece(self, token: int, probability: float, logprobs: Array, step: Step) -> Piece:
        text = self._text.push(token)
        asked = self._sampling.logprobs
        if asked is None:
            return Piece(token, text, probability, step.verdict, step.further)
        best = np.argsort(-logprobs, kind="stable")[:asked].tolist()
        top = tuple((int(other), float(logprobs[other])) for other in best)
        return Piece(token, text, probability, step.verdict, step.further, float(logprobs[token]), top)

    def _give(self, piece: Piece) -> None:
        self.outcome.text += piece.text
        self.pieces.put(piece)

    def _ended(self, finish: Finish) -> bool:
        self.outcome.finish = finish
        return False
