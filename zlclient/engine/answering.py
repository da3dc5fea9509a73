"""Answering a question from a passage: windows, the decision where the answer is, and its quotation.

A passage is read in windows of WINDOW sentences. Each window is asked for its own best sentence; the answer is quoted
from the window that was surest: a sentence or, for a value, a part of one, letter for letter as it stands there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .prompt import Prompt
from .quoting import Choice, Excerpt, Quotation
from .runner import Engine, Outcome, Piece
from .sampler import Sampling

WINDOW = 24  # sentences; the checkpoints were trained on passages of up to 24
SURE = 0.5  # the least probability of a part and where it begins
LONGEST_SENTENCE = 400  # tokens; what is longer is read cut off


@dataclass(slots=True)
class Answer:
    """What came out. `sentences` are the indices quoted; none: the passage does not (firmly) state it.

    `outcome` and `pieces` are those of the stream that was read: the first piece is the decision which sentence, the
    second where in it a part begins. All are filled in while the text is read.
    """

    sentences: list[int] = field(default_factory=list[int])
    outcome: Outcome = field(default_factory=Outcome)
    pieces: list[Piece] = field(default_factory=list[Piece])

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
    asked = Prompt(engine.tokenizer).question(question)
    window = _window(engine, sentences, asked, domain, tag, choose=count == 1)
    if window is None:
        return
    constraint = Quotation(engine.tokenizer, window.quoted, count=count)
    yield from _read(
        engine, window, result,
        domain=domain, sampling=sampling, max_tokens=max_tokens, stop=stop, thresholds=count == 1,
        constraint=constraint,
    )  # fmt: skip


def excerpt(
    engine: Engine,
    sentences: Sequence[str],
    question: str,
    *,
    domain: str = "general",
    tag: str = "",
    number: bool = False,
    result: Answer | None = None,
) -> str | None:
    """The part of a sentence that answers `question`, as it stands there; None where `sentences` do not state it.

    It is also None where the model is not sure: of the sentence and, but for a number, of where the part begins.

    Args:
        engine: the generation that answers.
        sentences: the passage.
        question: as it was asked, or the name of what is wanted.
        domain, tag: as in `answer`.
        number: whether it is a number, so that it begins with a digit or a Chinese numeral.
        result: filled in.
    """
    asked = Prompt(engine.tokenizer).question(question, value=True)
    window = _window(engine, sentences, asked, domain, tag, choose=True)
    if window is None:
        return None
    constraint = Excerpt(engine.tokenizer, window.quoted, number=number)
    result = result or Answer()
    longest = max(map(len, window.quoted.values()))
    text = "".join(
        _read(engine, window, result, domain=domain, thresholds=True, constraint=constraint, max_tokens=longest + 2)
    )
    decisions = [piece.probability for piece in result.pieces[: 1 if number else 2]]
    return text.strip() if text.strip() and math.prod(decisions) >= SURE else None


@dataclass(frozen=True, slots=True)
class _Window:
    """Sentences `first` and on, as a prompt; `quoted` maps each one's marker to the tokens after it."""

    first: int
    tokens: list[int]
    quoted: dict[int, list[int]]


def _window(
    engine: Engine, sentences: Sequence[str], asked: list[int], domain: str, tag: str, *, choose: bool
) -> _Window | None:
    """The window that is surest of its answer, or the first one; None where there are no sentences."""
    prompt = Prompt(engine.tokenizer)
    starts = range(0, len(sentences), WINDOW) if choose else range(min(1, len(sentences)))
    prompts = [
        [*prompt.passage(sentences[at : at + WINDOW], tag=tag, longest=LONGEST_SENTENCE), *asked] for at in starts
    ]
    if not prompts:
        return None
    best = 0
    if len(prompts) > 1:
        best = int(np.argmax([_confidence(engine, tokens, domain) for tokens in prompts]))
    first = starts[best]
    quoted = {
        prompt.marker(index): prompt.sentence(index, text, LONGEST_SENTENCE)[1:]
        for index, text in enumerate(sentences[first : first + WINDOW])
    }
    return _Window(first, prompts[best], quoted)


def _read(engine: Engine, window: _Window, result: Answer, **options: Any) -> Iterator[str]:
    """The text of a stream of the engine, and what came out besides."""
    prompt = Prompt(engine.tokenizer)
    for piece in engine.stream(window.tokens, outcome=result.outcome, **options):
        result.pieces.append(piece)
        index = prompt.marked(piece.token)
        if index is not None and window.first + index not in result.sentences:
            result.sentences.append(window.first + index)
        if piece.text:
            yield piece.text


def _confidence(engine: Engine, tokens: list[int], domain: str) -> float:
    """The probability of the window's best sentence."""
    prompt = Prompt(engine.tokenizer)
    markers = Choice(range(prompt.marker(0), prompt.marker(WINDOW)))
    (piece,) = engine.stream(tokens, domain=domain, max_tokens=1, thresholds=False, constraint=markers)
    return piece.probability
