"""Which sentence of a passage answers a question, or that none does: the decision at the start of an answer.

It takes two readings. The first is of the passage, in windows of WINDOW sentences, and finds the LOOKS sentences that
answer best; the second is of each of those alone. A question that joins one thing with another's property finds both
halves of what it asks somewhere in a passage, but only one of them in a sentence. Each reading gives the log-odds that
a sentence answers, against that nothing does; the probability of their sum is held against the domain's threshold.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass

import numpy as np

from .prompt import Prompt, marked
from .request import Plan
from .runner import Engine
from .safetensors import Array
from .sampler import Sampler, Sampling
from .snapshots import Snapshot
from .tokenizer import Tokenizer

WINDOW = 24  # sentences; the checkpoints were trained on passages of up to 24
LONGEST_SENTENCE = 400  # tokens; what is longer is read cut off
LONGEST_ANSWER = len(marked(0, [0] * LONGEST_SENTENCE)) + 1  # with its markers and its end
LOOKS = 3  # sentences read alone
FIRST_READING = 0.5  # what the first reading's log-odds count; the second's, where nothing distracts, count 1


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided.

    index     the sentence that answers best or, at a temperature, was drawn among the best
    snapshot  the probability that it answers, and the threshold
    prompt    the sentence alone and the question, as tokens, up to the marker that opens the answer
    told      the sentence's tokens after its marker
    """

    index: int
    snapshot: Snapshot
    prompt: list[int]
    told: list[int]

    @property
    def stated(self) -> bool:
        """Whether the sentence answers firmly enough to be quoted."""
        return self.snapshot.firm


class Question:
    """A question about a passage, and what is read to answer it."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        sentences: Sequence[str],
        text: str,
        *,
        tag: str = "",
        value: bool = False,
        among: Collection[int] | None = None,
    ) -> None:
        """`among` are the sentences that may be chosen (None: all), `value` asks for a part of one, and `tag` is the
        domain's tag in the passage, if there was one."""
        self._prompt, self._none = Prompt(tokenizer), tokenizer.none
        self._sentences, self._tag = sentences, tag
        self._asked = self._prompt.question(text, value=value)
        self.candidates = range(len(sentences)) if among is None else among
        self._windows = [sentences[at : at + WINDOW] for at in range(0, len(sentences), WINDOW)]
        self._prompts = list(map(self._written, self._windows))

    @property
    def room(self) -> int:
        """Positions that the longest prompt and an answer take."""
        return max(map(len, self._prompts)) + LONGEST_ANSWER

    def decide(
        self, threshold: float, *, looks: int = LOOKS, sampling: Sampling | None = None
    ) -> Generator[list[int], Array, Decision]:
        """Yields prompts and is sent the log probabilities (V,) of what follows each; there are candidates.

        Args:
            threshold: the least probability of an answer.
            looks: sentences read alone; 0 leaves it at the first reading.
            sampling: greedy when None.
        """
        first: list[Array] = []
        for window, prompt in zip(self._windows, self._prompts, strict=True):
            first.append(self._log_odds((yield prompt), len(window)))
        odds = np.concatenate(first)
        best = sorted(self.candidates, key=lambda at: -odds[at])[: max(1, looks)]
        alone = [self._written([self._sentences[at]]) for at in best]
        scores = odds[best]
        if looks:
            second: list[Array] = []
            for prompt in alone:
                second.append(self._log_odds((yield prompt), 1))
            scores = FIRST_READING * scores + np.concatenate(second)
        chosen = Sampler(sampling or Sampling()).choose(scores)
        at, probability = best[chosen], float(np.exp(-np.logaddexp(0, -scores[chosen])))
        marker, *told = self._prompt.sentence(0, self._sentences[at], LONGEST_SENTENCE)
        return Decision(at, Snapshot("answer", 0, probability, threshold), [*alone[chosen], marker], told)

    def _written(self, told: Sequence[str]) -> list[int]:
        return [*self._prompt.passage(told, tag=self._tag, longest=LONGEST_SENTENCE), *self._asked]

    def _log_odds(self, opened: Array, count: int) -> Array:
        """That each of `count` sentences answers, against that nothing does."""
        first = self._prompt.marker(0)
        return opened[first : first + count] - opened[self._none]


def decide(engine: Engine, question: Question, *, domain: str = "general", looks: int = LOOKS) -> Decision | None:
    """What `engine` decides, of itself; None where there are no candidates, or nobody waits for it any more.

    `domain` is whose anchors and threshold apply.
    """
    found: list[Decision] = []

    def plan() -> Plan:
        found.append((yield from question.decide(engine.threshold(domain), looks=looks)))
        return None

    if question.candidates:
        for _ in engine.run(plan(), question.room, domain=domain):
            pass
    return found[0] if found else None
