"""Answer quality in each domain, with and without the domain's tag and with and without a call-up sentence.

A call-up sentence stands before the question and names two of the domain's anchor phrases (`domains.toml`). The domain
is recognised as it is in serving: from the tag, or from anchor phrases in what is asked.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..config import Generation
from ..domains import domain_marks, domain_of
from ..runner import Engine
from ..training.data import DOMAINS, FACTS_ONLY, Document, Language, lexicon, make_document
from .asking import ask
from .intervals import Estimate
from .quality import QUESTIONS, Tally, exact, outcome, overlap, refusing

FACTS = 8
CALL_UP: Mapping[Language, str] = {"zh": "以下问题涉及{anchors}。", "en": "This is about {anchors}. "}
GENERAL: Mapping[Language, str] = {"zh": "以下是一个一般问题。", "en": "This is a general question. "}
CONDITIONS = {"plain": (False, False), "tag": (True, False), "call-up": (False, True), "tag and call-up": (True, True)}


def call_up(domain: str, language: Language) -> str:
    """The call-up sentence of a domain."""
    anchors = [text for text in domain_marks()[domain].anchors if text.isascii() == (language == "en")][:2]
    if not anchors:
        return GENERAL[language]
    return CALL_UP[language].format(anchors=("和" if language == "zh" else " and ").join(anchors))


def documents_of(domain: str, language: Language, count: int) -> list[Document]:
    """Untagged documents of one domain in one language."""
    rng = random.Random(f"evaluation:{domain}:{language}")
    found: list[Document] = []
    while len(found) < count:
        document = make_document(rng, FACTS, QUESTIONS, language=language, mix=FACTS_ONLY)
        if document.domain == domain:
            found.append(replace(document, tag=""))
    return found


def by_domain(engines: Mapping[Generation, Engine], documents: int) -> dict[str, Any]:
    """For each generation, condition and domain exact match, overlap F1, F1 of refusing and share of right outcomes;
    and what the tag and the call-up sentence change over the plain prompt, over all domains."""
    found: dict[str, Any] = {}
    for name, engine in engines.items():
        tallies = {
            condition: {domain: _tally(engine, domain, documents, *switches) for domain in DOMAINS}
            for condition, switches in CONDITIONS.items()
        }
        found[name] = {
            condition: {domain: _scores(tally) for domain, tally in cells.items()}
            for condition, cells in tallies.items()
        }
        plain = Tally.joined(tallies["plain"].values())
        found[name]["over_plain"] = {
            condition: {
                key: estimate.plain() for key, estimate in _changes(Tally.joined(cells.values()), plain).items()
            }
            for condition, cells in tallies.items()
            if condition != "plain"
        }
    return found


def _tally(engine: Engine, domain: str, count: int, tagged: bool, called: bool) -> Tally:
    tally = Tally()
    languages: Sequence[Language] = ("zh", "en")
    for language in languages:
        before = call_up(domain, language) if called else ""
        for document in documents_of(domain, language, count):
            tag = lexicon()[domain][language]["tag"] if tagged else ""
            shown = replace(document, tag=tag)
            recognised, _ = domain_of("\n".join([tag, *document.sentences, before]))
            tally.add(shown, ask(engine, shown, domain=recognised, before=before))
    return tally


def _changes(tally: Tally, plain: Tally) -> dict[str, Estimate]:
    return {"em": tally.minus(plain, exact), "outcome": tally.minus(plain, outcome)}


def _scores(tally: Tally) -> dict[str, Any]:
    return {
        "em": tally.estimate(exact).plain(),
        "overlap_f1": tally.estimate(overlap).plain(),
        "unanswerable_f1": tally.estimate(refusing).plain(),
        "outcome": tally.estimate(outcome).plain(),
    }
