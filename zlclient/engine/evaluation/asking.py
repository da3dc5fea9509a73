"""Asking an engine the questions of a generated document, and what it did with each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..prompt import Prompt
from ..quoting import Quotation
from ..runner import Engine, Outcome
from ..training.data import Document, Question

SINGLE = ("fact", "loose", "unstated")  # kinds of questions that one sentence answers, or none


@dataclass(frozen=True, slots=True)
class Asked:
    """One question and its answer. `quoted` is the sentence answered with, None: the document does not state it.

    `probability` is that of the decision, which sentence or none, also where it was under its threshold.
    """

    question: Question
    outcome: Outcome
    quoted: int | None
    probability: float
    right: bool


def ask(
    engine: Engine,
    document: Document,
    *,
    domain: str | None = None,
    thresholds: bool = True,
    free: bool = False,
    whole: bool = False,
    before: str = "",
) -> Iterator[Asked]:
    """Greedy answers to every question of `document` that one sentence answers, or none.

    Args:
        engine: the generation.
        document: what is asked about.
        domain: whose anchors and thresholds apply; None: the document's own where it is tagged, else `general`.
        thresholds: whether the calibrated thresholds may refuse.
        free: without the constraint that only whole sentences are quoted, which the responder always sets; what is
            left to the model then is not only which sentence, but every token of it.
        whole: read an answer to its end. A quotation is settled by its first token, so its end is only of interest
            for the snapshots on the way; free answers are always read whole.
        before: text put before each question.
    """
    prompt, tokenizer = Prompt(engine.tokenizer), engine.tokenizer
    passage = prompt.passage(document.sentences, tag=document.tag)
    quoted = {prompt.marker(at): prompt.sentence(at, text)[1:] for at, text in enumerate(document.sentences)}
    for question in document.questions:
        if question.kind not in SINGLE:
            continue
        outcome, probability = Outcome(), 0.0
        for piece in engine.stream(
            [*passage, *prompt.question(before + question.text)],
            domain=(document.domain if document.tag else "general") if domain is None else domain,
            thresholds=thresholds, outcome=outcome, constraint=None if free else Quotation(tokenizer, quoted),
            max_tokens=max(map(len, quoted.values())) + 8 if whole or free else 1,
        ):  # fmt: skip
            probability = probability or piece.probability
        if not probability and outcome.snapshots:  # the decision itself was doubted
            probability = outcome.snapshots[0].probability
        refused = outcome.finish == "doubt" or outcome.tokens[:1] in ([], [tokenizer.none])
        at = None if refused else prompt.marked(outcome.tokens[0])
        if free:
            gold = prompt.answer([(at, document.sentences[at]) for at in question.answers])
            right = bool(question.answers) and outcome.finish == "end" and outcome.tokens == gold[:-1]
        else:
            right = bool(question.answers) and at == question.answers[0]
        yield Asked(question, outcome, at, probability, right)
