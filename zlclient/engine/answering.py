"""Answering a question from a passage: the decision which sentence answers it, and its quotation.

An answer is a sentence or, for a value, a part of one, letter for letter as it stands in the passage; it is read off
that sentence alone. A summary is several sentences of the passage's beginning, chosen one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from .deciding import LONGEST_ANSWER, LONGEST_SENTENCE, WINDOW, Decision, Question
from .prompt import Prompt
from .quoting import Excerpt, Quotation, has_number
from .request import Constraint, Plan, Start
from .runner import Engine, Outcome, Piece
from .sampler import Sampling

SURE = 0.5  # the least probability of a part and where it begins


@dataclass(slots=True)
class Answer:
    """What came out. `sentences` are the indices quoted; none: the passage does not (firmly) state it.

    `decision` is how that was decided, None for a summary or where there was nothing to decide; `outcome` and `pieces`
    are those of the stream. All are filled in while the text is read.
    """

    sentences: list[int] = field(default_factory=list[int])
    decision: Decision | None = None
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
    sampling: Sampling | None = None,
    result: Answer | None = None,
) -> Iterator[str]:
    """Yield the sentence that answers `question`, as it is generated; nothing where `sentences` do not state it.

    Args:
        engine: the generation that answers.
        sentences: the passage.
        question: as it was asked.
        domain: whose anchors and thresholds apply; tag: its tag in the text, if there was one.
        sampling: as in Engine.stream.
        result: filled in while the text is read.
    """
    result = result or Answer()
    asked = Question(engine.tokenizer, sentences, question, tag=tag)

    def whole(decision: Decision) -> Quotation:
        quotation = Quotation(engine.tokenizer, {decision.prompt[-1]: decision.told})
        quotation.follow(decision.prompt[-1])
        return quotation

    yield from _quoted(engine, asked, whole, domain, sampling, result)


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
    result = result or Answer()
    among = [at for at, text in enumerate(sentences) if has_number(text)] if number else None
    asked = Question(engine.tokenizer, sentences, question, tag=tag, value=True, among=among)

    def part(decision: Decision) -> Excerpt | None:
        found = Excerpt(engine.tokenizer, decision.prompt[-1], decision.told, number=number)
        return found if found.possible else None

    text = "".join(_quoted(engine, asked, part, domain, None, result)).strip()
    sure = [result.decision.snapshot.probability] if result.decision else []
    sure += [piece.probability for piece in result.pieces[:1] if not number]
    return text if text and math.prod(sure) >= SURE else None


def summary(
    engine: Engine,
    sentences: Sequence[str],
    request: str,
    count: int,
    *,
    domain: str = "general",
    tag: str = "",
    sampling: Sampling | None = None,
    result: Answer | None = None,
) -> Iterator[str]:
    """Yield `count` of the first WINDOW `sentences` (all of them, where they are fewer) that `request` asks for.

    The other arguments are those of `answer`.
    """
    result = result or Answer()
    prompt, told = Prompt(engine.tokenizer), sentences[:WINDOW]
    if not told:
        return
    quoted = {prompt.marker(at): prompt.sentence(at, text, LONGEST_SENTENCE)[1:] for at, text in enumerate(told)}
    tokens = [*prompt.passage(told, tag=tag, longest=LONGEST_SENTENCE), *prompt.question(request)]
    quotation = Quotation(engine.tokenizer, quoted, count=count)
    most = count * LONGEST_ANSWER
    stream = engine.stream(
        tokens, domain=domain, sampling=sampling, max_tokens=most, constraint=quotation, outcome=result.outcome
    )
    yield from _texts(stream, result)
    found = map(prompt.marked, result.outcome.tokens)
    result.sentences += dict.fromkeys(at for at in found if at is not None)


def _quoted(
    engine: Engine, asked: Question, quoting: Callable[[Decision], Constraint | None], domain: str,
    sampling: Sampling | None, result: Answer,
) -> Iterator[str]:  # fmt: skip
    """What `quoting` lets through of the sentence decided on; nothing where none answers, or it finds nothing there."""

    def plan() -> Plan:
        decision = result.decision = yield from asked.decide(engine.threshold(domain), sampling=sampling)
        constraint = quoting(decision) if decision.stated else None
        if constraint is None:
            return None
        result.sentences.append(decision.index)
        return Start(decision.prompt, LONGEST_ANSWER, constraint)

    if asked.candidates:
        stream = engine.run(plan(), asked.room, domain=domain, sampling=sampling, outcome=result.outcome)
        yield from _texts(stream, result)


def _texts(stream: Iterator[Piece], result: Answer) -> Iterator[str]:
    """The texts of a stream, whose pieces are noted in `result`."""
    for piece in stream:
        result.pieces.append(piece)
        if piece.text:
            yield piece.text
