"""How often an engine answers right: on generated documents that training never sees, and on written passages."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..answering import excerpt
from ..deciding import Question, decide
from ..runner import Engine
from ..safetensors import Array
from ..training.data import FACTS_ONLY, Document, Language, make_document
from .asking import Asked, ask
from .intervals import Estimate, Statistic, bootstrap

SIZES = (4, 8, 24)
LANGUAGES: tuple[Language, ...] = ("zh", "en")
QUESTIONS = 6  # a document


class Tally:
    """Counts, a row a document: answerable questions asked, answered right, their overlap; unanswerable ones, refused
    ones, and those refused rightly."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, ...]] = []

    def add(self, document: Document, asked: Iterable[Asked]) -> None:
        """Count one document's answers. A question without an answer counts for the F1 of refusing, not for exact
        match."""
        answerable = right = overlap = meant = said = both = 0.0
        for item in asked:
            refused = item.quoted is None
            said += refused
            if item.question.answers:
                answerable += 1
                right += item.right
                overlap += 1.0 if item.right else _overlap(document, item)
            else:
                meant += 1
                both += refused
        self.rows.append((answerable, right, overlap, meant, said, both))

    @property
    def asked(self) -> int:
        """Answerable questions asked."""
        return int(sum(row[0] for row in self.rows))

    @property
    def exact(self) -> float:
        """Share of answers equal to the sentence meant."""
        return float(exact(np.asarray(self.rows, float)))

    @property
    def f1(self) -> float:
        """F1 of refusing the questions that the document does not answer."""
        return float(refusing(np.asarray(self.rows, float)))

    def estimate(self, statistic: Statistic) -> Estimate:
        """`statistic` with its interval over documents."""
        return bootstrap(self.rows, statistic)

    def minus(self, other: Tally, statistic: Statistic) -> Estimate:
        """The difference to `other`, which was asked about the same documents in the same order."""
        width = len(self.rows[0])
        joined = np.hstack([np.asarray(self.rows, float), np.asarray(other.rows, float)])
        return bootstrap(joined, lambda rows: statistic(rows[..., :width]) - statistic(rows[..., width:]))

    @classmethod
    def joined(cls, tallies: Iterable[Tally]) -> Tally:
        """One tally of all documents."""
        found = cls()
        for tally in tallies:
            found.rows += tally.rows
        return found


def exact(rows: Array) -> Array:
    """Share of exact matches in a tally's rows."""
    sums = rows.sum(-2)
    return sums[..., 1] / np.maximum(1, sums[..., 0])


def overlap(rows: Array) -> Array:
    """Mean F1 of the words that an answer shares with the sentence meant."""
    sums = rows.sum(-2)
    return sums[..., 2] / np.maximum(1, sums[..., 0])


def refusing(rows: Array) -> Array:
    """F1 of refusing what the document does not answer."""
    sums = rows.sum(-2)
    return 2 * sums[..., 5] / np.maximum(1, sums[..., 3] + sums[..., 4])


def outcome(rows: Array) -> Array:
    """Share of right outcomes: right answers, and refusals where the document does not say."""
    sums = rows.sum(-2)
    return (sums[..., 1] + sums[..., 5]) / np.maximum(1, sums[..., 0] + sums[..., 3])


def held_out(size: int, language: Language, documents: int) -> list[Document]:
    """Documents of `size` facts in one language, from seeds that training does not use."""
    rng = random.Random(f"evaluation:{size}:{language}")
    return [make_document(rng, size, QUESTIONS, language=language, mix=FACTS_ONLY) for _ in range(documents)]


def exact_match(engine: Engine, documents: Sequence[Document], **options: Any) -> Tally:
    """The tally of `documents`; the options are those of `ask`."""
    tally = Tally()
    for document in documents:
        tally.add(document, ask(engine, document, **options))
    return tally


Cells = dict[tuple[int, Language], Tally]


def cells(engine: Engine, documents: int) -> Cells:
    """A tally for each size and language, as served."""
    return {
        (size, language): exact_match(engine, held_out(size, language, documents))
        for size in SIZES
        for language in LANGUAGES
    }


def generated(found: Cells, free: Tally) -> dict[str, Any]:
    """em_4, em_8 and em_24 for zh and en with intervals, the F1 of refusing over all, and em_8 decoded freely."""
    plain: dict[str, Any] = {}
    for (size, language), tally in found.items():
        estimate = tally.estimate(exact).plain(language)
        cell = plain.setdefault(f"em_{size}", {})
        cell[language] = estimate[language]
        cell |= {f"{language}_low": estimate["low"], f"{language}_high": estimate["high"]}
        cell[f"{language}_asked"] = tally.asked
    everything = Tally.joined(found.values())
    plain["em_8_free"] = round(free.exact, 4)
    plain |= _named("overlap_f1", everything.estimate(overlap))
    plain |= _named("unanswerable_f1", everything.estimate(refusing))
    return plain


def difference(auto: Cells, legacy: Cells) -> dict[str, Estimate]:
    """auto - legacy: exact match of each size and of all, and the F1 of refusing."""
    found: dict[str, Estimate] = {}
    for size in SIZES:
        one, other = (Tally.joined(tally for key, tally in side.items() if key[0] == size) for side in (auto, legacy))
        found[f"em_{size}"] = one.minus(other, exact)
    one, other = Tally.joined(auto.values()), Tally.joined(legacy.values())
    return {**found, "em": one.minus(other, exact), "unanswerable_f1": one.minus(other, refusing)}


def values(engine: Engine, documents: Sequence[Document]) -> dict[str, Any]:
    """How often the value that a fact states, and nothing more, is what is quoted: `41 million euros`."""
    rows: list[tuple[float, float]] = []
    for document in documents:
        asked = [question for question in document.questions if question.value]
        domain = document.domain if document.tag else "general"
        right = sum(
            excerpt(engine, document.sentences, question.text, domain=domain, tag=document.tag) == question.value
            for question in asked
        )
        rows.append((len(asked), right))
    return _shares(rows)


def passages(engine: Engine, cases: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Answers about written passages. A case has `text` and `asks`: a question, and what only the right sentence holds
    (None: the passage does not say)."""
    from ...serving.responders.reading import sentences
    from ..domains import domain_of

    rows: list[tuple[float, float]] = []
    refused_right = refusals_meant = 0
    for case in cases:
        told = sentences(case["text"])
        domain, tag = domain_of(case["text"])
        right = 0
        for question in case["asks"]:
            posed = Question(engine.tokenizer, told, question["question"], tag=tag)
            decision = decide(engine, posed, domain=domain)
            quoted = told[decision.index] if decision and decision.stated else None
            if question["holds"] is None:
                refusals_meant += 1
                refused_right += quoted is None
                right += quoted is None
            else:
                right += quoted is not None and question["holds"] in quoted
        rows.append((len(case["asks"]), right))
    return {**_shares(rows), "refused": f"{refused_right} of {refusals_meant}"}


def served_passages(engine: Engine | None, cases: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The same as served: by the offline responder, which compares words, where `engine` is None or not sure."""
    from ...serving.responders.base import Ask, Text, Turn
    from ...serving.responders.engine import EngineResponder
    from ...serving.responders.offline import NOT_STATED
    from ...serving.responders.offline import answer as offline_answer

    responder = EngineResponder(engine.model.config.generation, engine, yields=True) if engine else None
    rows: list[tuple[float, float]] = []
    own = 0
    for case in cases:
        right = 0
        for question in case["asks"]:
            block = {"type": "text", "text": f"{case['text']}\n\n{question['question']}"}
            ask = Ask("anthropic", responder.models[0] if responder else "offline", (Turn("user", (block,)),))
            events = responder.respond(ask) if responder else None
            own += events is not None
            told = (event.text for event in events or () if isinstance(event, Text))
            text = offline_answer(ask) if events is None else "".join(told)
            right += text in NOT_STATED.values() if question["holds"] is None else question["holds"] in text
        rows.append((len(case["asks"]), right))
    return {**_shares(rows), "by_the_engine": own}


def _shares(rows: Sequence[tuple[float, float]]) -> dict[str, Any]:
    asked, right = (int(sum(column)) for column in zip(*rows, strict=True))
    share = bootstrap(rows, lambda picked: picked[..., 1].sum(-1) / np.maximum(1, picked[..., 0].sum(-1)))
    return {"asked": asked, "right": right, **share.plain("share")}


def _overlap(document: Document, item: Asked) -> float:
    """F1 of the words (Chinese: characters) of the sentence quoted and the one meant."""
    if item.quoted is None or item.quoted >= len(document.sentences):
        return 0.0
    said, meant = (_words(document.sentences[at]) for at in (item.quoted, item.question.answers[0]))
    return 2 * (said & meant).total() / max(1, said.total() + meant.total())


def _words(text: str) -> Counter[str]:
    return Counter(text.split() if text.isascii() else text)


def _named(name: str, estimate: Estimate) -> dict[str, float]:
    plain = estimate.plain(name)
    return {name: plain[name], f"{name}_low": plain["low"], f"{name}_high": plain["high"]}
