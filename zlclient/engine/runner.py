"""Generation: a prompt's tokens in, pieces of an answer out, one at a time.

    engine = Engine.shipped("auto")
    for piece in engine.stream(tokens, domain="law"):
        print(piece.text, end="")

Each sequence is computed alone, so an answer never depends on what else is running; at temperature 0 it is the same
bit for bit every time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from ..errors import InputError
from .cache import PrefixCache, read_prompt
from .checkpoint import Checkpoint, load_shipped
from .config import Generation
from .model import LONGEST, Model, Step
from .quoting import Quotation
from .sampler import Sampler, Sampling, softmax
from .snapshots import Snapshot, Snapshots
from .state import State
from .text_stream import TextStream
from .tokenizer import Tokenizer

Finish = Literal["end", "stop", "length", "doubt"]


@dataclass(frozen=True, slots=True)
class Piece:
    """One token: the text it made certain, its probability, and legacy's verdict and further check rounds."""

    token: int
    text: str
    probability: float
    verdict: float | None = None
    further: int = 0


@dataclass(slots=True)
class Outcome:
    """How a sequence went; complete once its stream has ended.

    `finish`: end (the model ended it), stop (a stop sequence), length (max_tokens), doubt (a snapshot was under its
    threshold: the text does not firmly state it; the doubtful token and what follows are not given out).
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    tokens: list[int] = field(default_factory=list[int])
    text: str = ""
    finish: Finish = "end"
    snapshots: list[Snapshot] = field(default_factory=list[Snapshot])
    further: int = 0
    gated: tuple[int, int] = (0, 0)


class Engine:
    """A model with its prefix cache; safe to use from several threads."""

    def __init__(self, checkpoint: Checkpoint, *, cache_blocks: int = 256, check_prompt: bool = True) -> None:
        self.model = Model(checkpoint, check_prompt=check_prompt)
        self.cache = PrefixCache(cache_blocks)

    @classmethod
    def shipped(cls, generation: Generation) -> Engine:
        """The engine of a checkpoint that comes with this release, loaded once a process."""
        return _shipped(cls, generation)

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's."""
        return self.model.tokenizer

    def stream(
        self,
        tokens: Sequence[int],
        *,
        domain: str = "",
        sampling: Sampling | None = None,
        max_tokens: int = 1024,
        stop: Sequence[str] = (),
        thresholds: bool = True,
        constraint: Quotation | None = None,
        outcome: Outcome | None = None,
    ) -> Iterator[Piece]:
        """Read `tokens` and yield what follows.

        Args:
            tokens: the prompt's, at least one.
            domain: whose anchors and thresholds are used.
            sampling: greedy when None.
            max_tokens: at most this many tokens, at least 1.
            stop: texts that end the answer, themselves left out.
            thresholds: whether a snapshot under its threshold ends the answer.
            constraint: lets only its tokens through; a fresh one for each stream.
            outcome: filled in while the stream is read.

        Raises:
            InputError: the prompt is empty or does not fit with `max_tokens` in the model's positions.
        """
        if not tokens or max_tokens < 1 or len(tokens) + max_tokens > LONGEST:
            raise InputError(f"{len(tokens)} prompt tokens and max_tokens = {max_tokens} are not within {LONGEST}")
        return self._stream(
            tokens, self.model.start(domain), Sampler(sampling or Sampling()), max_tokens,
            TextStream(self.tokenizer, stop), self._snapshots(domain, thresholds), constraint, outcome or Outcome(),
        )  # fmt: skip

    def _snapshots(self, domain: str, thresholds: bool) -> Snapshots:
        table = self.model.config.thresholds
        known = table.get(domain) or table.get("general")
        return Snapshots(self.tokenizer, known if known and thresholds else {})

    def _stream(
        self, tokens: Sequence[int], state: State, sampler: Sampler, max_tokens: int,
        text: TextStream, snapshots: Snapshots, constraint: Quotation | None, outcome: Outcome,
    ) -> Iterator[Piece]:  # fmt: skip
        outcome.prompt_tokens, outcome.snapshots = len(tokens), snapshots.taken
        outcome.cached_tokens, rest = read_prompt(self.model, self.cache, tokens, state)
        step = self.model.forward(rest, state)
        outcome.finish = "length"
        while len(outcome.tokens) < max_tokens:
            token = _choose(step, sampler, constraint)
            if token == self.tokenizer.end:
                outcome.finish = "end"
                break
            point = snapshots.point(token)
            probability = float(softmax(step.logits)[token])
            firm = snapshots.follow(token, point, probability)
            if not firm and (constraint is None or point == "answer"):  # a quotation's numbers cannot be wrong
                outcome.finish = "doubt"
                break
            piece = self._piece(token, probability, step, text, outcome)
            yield piece
            if text.stopped is not None:
                outcome.finish = "stop"
                break
            if len(outcome.tokens) < max_tokens:
                step = self.model.forward([token], state)
        outcome.gated = (state.gated[0], state.gated[1])
        rest_of_text = text.flush()
        if rest_of_text:
            outcome.text += rest_of_text
            yield Piece(self.tokenizer.pad, rest_of_text, 1.0)

    def _piece(self, token: int, probability: float, step: Step, text: TextStream, outcome: Outcome) -> Piece:
        piece = Piece(token, text.push(token), probability, step.verdict, step.further)
        outcome.tokens.append(token)
        outcome.text += piece.text
        outcome.further += step.further
        return piece


def _choose(step: Step, sampler: Sampler, constraint: Quotation | None) -> int:
    if constraint is None:
        return sampler.choose(step.logits)
    allowed = constraint.allowed()
    token = allowed[0] if len(allowed) == 1 else allowed[sampler.choose(step.logits[list(allowed)])]
    constraint.follow(token)
    return token


@cache
def _shipped(kind: type[Engine], generation: Generation) -> Engine:
    return kind(load_shipped(generation))
