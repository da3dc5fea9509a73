"""How often an engine answers right: on generated documents that training never sees, and on written passages."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..answering import Answer, answer
from ..prompt import Prompt
from ..quoting import Quotation
from ..runner import Engine, Outcome
from ..training.data import Document, Language, Question, make_document

SIZES = (4, 8, 24)
QUESTIONS = 6  # a document


@dataclass(slots=True)
class Tally:
    """Counts of one generation. A question without an answer counts for the F1 of refusing, not for exact match."""

    asked: int = 0
    right: int = 0
    meant: int = 0
    said: int = 0
    both: int = 0

    @property
    def exact(self) -> float:
        """Share of answers equal to the sentence meant, token by token."""
        return self.right / max(1, self.asked)

    @property
    def f1(self) -> float:
        """F1 of refusing the questions that the document does not answer."""
        return 2 * self.both / max(1, self.said + self.meant)

    def add(self, question: Question, matches: bool, refused: bool) -> None:
        """Count one answer."""
        self.said += refused
        if question.answers:
            self.asked += 1
            self.right += matches
        else:
            self.meant += 1
            self.both += refused


def held_out(size: int, language: Language, documents: int) -> list[Document]:
    """Documents of `size` facts in one language, from seeds that training does not use."""
    rng = random.Random(f"evaluation:{size}:{language}")
    return [make_document(rng, size, QUESTIONS, language=language, loose=0.0) for _ in range(documents)]


def exact_match(
    engine: Engine,
    documents: Sequence[Document],
    *,
    domains: bool = True,
    thresholds: bool = True,
    free: bool = False,
) -> Tally:
    """Greedy answers to every question but summaries, token by token equal to the sentence meant or not.

    Args:
        engine: the generation.
        documents: what is asked about.
        domains: whether a tagged document's domain switches its anchors on.
        thresholds: whether the calibrated thresholds may refuse.
        free: without the constraint that only whole sentences are quoted, which the responder always sets; what is
            left to the model then is not only which sentence, but every token of it.
    """
    tally, prompt, tokenizer = Tally(), Prompt(engine.tokenizer), engine.tokenizer
    for document in documents:
        passage = prompt.passage(document.sentences, tag=document.tag)
        domain = document.domain if domains and document.tag else ""
        quoted = {tokenizer.marker(at): prompt.sentence(at, text)[1:] for at, text in enumerate(document.sentences)}
        for question in document.questions:
            if question.kind == "summary":
                continue
            gold = prompt.answer([(at, document.sentences[at]) for at in question.answers])
            outcome = Outcome()
            tokens = [*passage, *prompt.question(question.text)]
            for _ in engine.stream(
                tokens, domain=domain, thresholds=thresholds, max_tokens=max(map(len, quoted.values())) + 8,
                constraint=None if free else Quotation(tokenizer, quoted), outcome=outcome,
            ):  # fmt: skip
                pass
            refused = not outcome.tokens or outcome.tokens[0] == tokenizer.none
            tally.add(question, outcome.finish == "end" and outcome.tokens == gold[:-1], refused)
    return tally


def generated(engine: Engine, documents: int) -> dict[str, Any]:
    """em_4, em_8 and em_24 for zh and en as served, the F1 of refusing over all of them, and em_8 decoded freely."""
    found: dict[str, Any] = {}
    said = meant = both = 0
    for size in SIZES:
        found[f"em_{size}"] = {}
        for language in ("zh", "en"):
            tally = exact_match(engine, held_out(size, language, documents))
            found[f"em_{size}"][language] = round(tally.exact, 4)
            found[f"em_{size}"][f"{language}_asked"] = tally.asked
            said, meant, both = said + tally.said, meant + tally.meant, both + tally.both
    free = exact_match(engine, [*held_out(8, "zh", documents), *held_out(8, "en", documents)], free=True)
    found["em_8_free"] = round(free.exact, 4)
    found["unanswerable_f1"] = round(2 * both / max(1, said + meant), 4)
    return found


def passages(engine: Engine, cases: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Answers about written passages. A case has `text` and `asks`: a question, and what only the right sentence holds
    (None: the passage does not say)."""
    from ...serving.responders.reading import sentences
    from ..domains import domain_of

    asked = right = refused_right = refusals_meant = 0
    for case in cases:
        told = sentences(case["text"])
        domain, tag = domain_of(case["text"])
        for ask in case["asks"]:
            result = Answer()
            text = "".join(answer(engine, told, ask["question"], domain=domain, tag=tag, result=result))
            asked += 1
            if ask["holds"] is None:
                refusals_meant += 1
                refused_right += not result.stated
                right += not result.stated
            else:
                right += ask["holds"] in text
    return {
        "asked": asked,
        "right": right,
        "share": round(right / max(1, asked), 4),
        "refused": f"{refused_right} of {refusals_meant}",
    }


def offline_passages(cases: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The same of the offline responder, which compares words."""
    from ...serving.responders.base import Ask, Turn
    from ...serving.responders.offline import NOT_STATED
    from ...serving.responders.offline import answer as offline_answer

    asked = right = 0
    for case in cases:
        for ask in case["asks"]:
            block = {"type": "text", "text": f"{case['text']}\n\n{ask['question']}"}
            text = offline_answer(Ask("anthropic", "auto", (Turn("user", (block,)),)))
            asked += 1
            right += text in NOT_STATED.values() if ask["holds"] is None else ask["holds"] in text
    return {"asked": asked, "right": right, "share": round(right / max(1, asked), 4)}
