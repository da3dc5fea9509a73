"""Generation: a prompt's tokens in, pieces of an answer out, one at a time.

    engine = Engine.shipped("auto")
    for piece in engine.stream(tokens, domain="law"):
        print(piece.text, end="")

All streams of an engine are computed together (see `scheduler`), and each is bit for bit what it would be alone; at
temperature 0 it is the same every time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from ..errors import InputError
from .cache import PrefixCache
from .checkpoint import Checkpoint, load_shipped
from .config import Generation
from .departure import CURRENT
from .metrics import Metrics
from .model import Model
from .request import Constraint, Finish, Outcome, Piece, Plan, Request, Start
from .sampler import Sampling
from .scheduler import Limits, Scheduler
from .snapshots import Snapshots
from .tokenizer import Tokenizer

__all__ = ["Engine", "Finish", "Outcome", "Piece"]

EVEN = 0.5  # the probability from which on an answer is likelier than none


class Engine:
    """A model with its prefix cache and its scheduler; safe to use from several threads, and in a forked child."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        cache_blocks: int = 256,
        check_prompt: bool = True,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model = Model(checkpoint, check_prompt=check_prompt)
        self.cache = PrefixCache(cache_blocks)
        self.metrics = Metrics()
        self.scheduler = Scheduler(self.model, self.cache, limits or Limits(), self.metrics, clock)

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
        constraint: Constraint | None = None,
        outcome: Outcome | None = None,
    ) -> Iterator[Piece]:
        """Read `tokens` and yield what follows. Work begins with the first piece asked for, and ends when the iterator
        is closed.

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
            InputError: the prompt is empty, or max_tokens is.
            PromptTooLong: they do not fit together in the model's positions, or in what the engine has room for.
            QueueFull: from the iterator, when too many requests wait.
        """
        if not tokens or max_tokens < 1:
            raise InputError(f"{len(tokens)} prompt tokens and max_tokens = {max_tokens}: both must be at least 1")
        return self.run(
            _at_once(Start(tokens, max_tokens, constraint)), len(tokens) + max_tokens,
            domain=domain, sampling=sampling, stop=stop, thresholds=thresholds, outcome=outcome,
        )  # fmt: skip

    def run(
        self,
        plan: Plan,
        room: int,
        *,
        domain: str = "",
        sampling: Sampling | None = None,
        stop: Sequence[str] = (),
        thresholds: bool = True,
        outcome: Outcome | None = None,
    ) -> Iterator[Piece]:
        """As `stream`, from a plan that may read several prompts first, none of which with what is generated from it
        may take more than `room` positions. But for its beginning it goes on in the engine's thread."""
        request = Request(
            plan, room, domain, sampling or Sampling(), self.tokenizer, stop,
            Snapshots(self.tokenizer, self._thresholds(domain) if thresholds else {}), outcome or Outcome(),
        )  # fmt: skip
        if not request.prompt:
            return iter(())
        self.scheduler.check(request)
        departure = CURRENT.get()
        if departure is not None:
            departure.then(request.give_up)
        return self._stream(request)

    def threshold(self, domain: str) -> float:
        """The least probability of an answer in `domain`: the calibrated one, or EVEN."""
        return self._thresholds(domain).get("answer", EVEN)

    def _thresholds(self, domain: str) -> Mapping[str, float]:
        table = self.model.config.thresholds
        return table.get(domain) or table.get("general") or {}

    def _stream(self, request: Request) -> Iterator[Piece]:
        self.scheduler.submit(request)
        try:
            while (piece := request.pieces.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            request.cancelled = True


def _at_once(start: Start) -> Plan:
    """A plan that reads nothing before it answers."""
    return start
    yield


@cache
def _shipped(kind: type[Engine], generation: Generation) -> Engine:
    return kind(load_shipped(generation))
