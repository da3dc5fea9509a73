"""Answering a question from a passage: windows, the decision where the answer is, and its quotation.

A passage is read in windows of WINDOW sentences. Each window is asked for its own best sentence; the answer is quoted
from the window that was surest. What an answer quotes stands in the passage letter for letter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from .cache import read_prompt
from .prompt import Prompt
from .quoting import Quotation
from .runner import Engine, Outcome
from .sampler import Sampling, softmax
from .snapshots import Snapshot

WINDOW = 24  # sentences; the checkpoints were trained on passages of up to 24
LONGEST_SENTENCE = 400  # tokens; what is longer is read cut off


@dataclass(slots=True)
class Answer:
    """What came out. `sentences` are the indices quoted; none: the passage does not (firmly) state it."""

    sentences: list[int] = field(default_factory=list[int])
    snapshots: list[Snapshot] = field(default_factory=list[Snapshot])
    prompt_tokens: int = 0
    cached_tokens: int = 0
    further: int = 0

    @property
    def stated(self) -> bool:
        """Whether the passage states it."""
        return bool(self.sentences)


def answer(
    engine: Engine,
    sentences: Sequence[str],
    question: str,
    *,
    domain: str = "general",
    tag: str = "",
    count: int = 1,
    sampling: Sampling | None = None,
    max_tokens: int = 4096,
    stop: Sequence[str] = (),
    result: Answer | None = None,
) -> Iterator[str]:
    """Yield the text that answers `question` from `sentences`; nothing where they do not state it.

    Args:
        engine: the generation that answers.
        sentences: the passage.
        question: as it was asked.
        domain: whose anchors and thresholds apply; tag: its tag in the text, if there was one.
        count: sentences to quote: 1 for a fact, more for a summary, which is made from the first window.
        sampling, max_tokens, stop: as in Engine.stream.
        result: filled in while the text is read.
    """
    result = result or Answer()
    prompt = Prompt(engine.tokenizer)
    windows = [sentences[at : at + WINDOW] for at in range(0, len(sentences), WINDOW)]
    asked = prompt.question(question)
    prompts = [[*_passage(prompt, window, tag), *asked] for window in windows]
    at = 0
    if len(prompts) > 1 and count == 1:
        at = int(np.argmax([_confidence(engine, tokens, domain) for tokens in prompts]))
    if not prompts:
        return
    tokenizer = engine.tokenizer
    quoted = {
        tokenizer.marker(index): prompt.sentence(index, text, LONGEST_SENTENCE)[1:]
        for index, text in enumerate(windows[at])
    }
    outcome = Outcome()
    for piece in engine.stream(
        prompts[at], domain=domain, sampling=sampling, max_tokens=max_tokens, stop=stop,
        thresholds=count == 1, constraint=Quotation(tokenizer, quoted, count=count), outcome=outcome,
    ):  # fmt: skip
        index = tokenizer.marked(piece.token)
        if index is not None and at * WINDOW + index not in result.sentences:
            result.sentences.append(at * WINDOW + index)
        if piece.text:
            yield piece.text
    result.snapshots, result.further = outcome.snapshots, outcome.further
    result.prompt_tokens, result.cached_tokens = outcome.prompt_tokens, outcome.cached_tokens


def _passage(prompt: Prompt, window: Sequence[str], tag: str) -> list[int]:
    return prompt.passage(window, tag=tag, longest=LONGEST_SENTENCE)


def _confidence(engine: Engine, tokens: list[int], domain: str) -> float:
    """The probability that the window's best sentence answers."""
    state = engine.model.start(domain)
    _, rest = read_prompt(engine.model, engine.cache, tokens, state)
    chances = softmax(engine.model.forward(rest, state).logits)
    first = engine.tokenizer.marker(0)
    return float(chances[first : first + WINDOW].max())
