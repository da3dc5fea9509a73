"""Asking an engine the questions of a generated document, and what it did with each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..deciding import LOOKS, Decision, decide
from ..deciding import Question as Posed
from ..runner import EVEN, Engine, Outcome
from ..training.data import Document, Question

SINGLE = ("fact", "loose", "unstated")  # kinds of questions that one sentence answers, or none


@dataclass(frozen=True, slots=True)
class Asked:
    """One question and what was decided. `quoted` is the sentence answered with, None: the document does not state it.

    `outcome` is that of the answer's own tokens where it was read on, else None; `right` says that the sentence, and
    what was read of it, is the one meant.
    """

    question: Question
    decision: Decision
    quoted: int | None
    outcome: Outcome | None
    right: bool


def ask(
    engine: Engine,
    document: Document,
    *,
    domain: str | None = None,
    thresholds: bool = True,
    looks: int = LOOKS,
    free: bool = False,
    before: str = "",
) -> Iterator[Asked]:
    """Greedy answers to every question of `document` that one sentence answers, or none.

    Args:
        engine: the generation.
        document: what is asked about.
        domain: whose anchors and thresholds apply; None: the document's own where it is tagged, else `general`.
        thresholds: whether the calibrated thresholds may refuse.
        looks: as in `decide`.
        free: read on, without the constraint that quotes the sentence decided on, which is always set in serving: the
            model is left with every token of it.
        before: text put before each question.
    """
    if domain is None:
        domain = document.domain if document.tag else "general"
    for question in document.questions:
        if question.kind not in SINGLE:
            continue
        asked = Posed(engine.tokenizer, document.sentences, before + question.text, tag=document.tag)
        decision = decide(engine, asked, domain=domain, looks=looks)
        if decision is None:
            continue
        stated = decision.stated if thresholds else decision.snapshot.probability >= EVEN
        right = stated and decision.index in question.answers
        outcome = Outcome() if free and stated else None
        if outcome is not None:
            for _ in engine.stream(
                decision.prompt,
                domain=domain,
                thresholds=thresholds,
                outcome=outcome,
                max_tokens=len(decision.told) + 8,
            ):
                pass
            right = right and outcome.finish == "end" and outcome.tokens == decision.told
        yield Asked(question, decision, decision.index if stated else None, outcome, right)
