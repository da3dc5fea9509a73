"""Questions that contradict their text: a stated fact is asked about with another year or another entity.

The right answer is that the text does not state it. Each fact is asked about as it stands as well, because a model
that refuses everything would notice every contradiction.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..config import Generation
from ..runner import Engine
from ..training.data import Document, Language, Question, lexicon
from ..training.vocabulary import chinese_characters, word_lists
from .asking import ask
from .intervals import bootstrap, mean

FACTS = 6
Kind = Literal["stated", "year", "entity"]
KINDS: tuple[Kind, ...] = ("stated", "year", "entity")
STATES: Mapping[Language, str] = {
    "zh": "{year}年，{n}的{a}为{v}万元。",
    "en": "In {year}, the {a} of {n} was {v} euros.",
}
ASKS: Mapping[Language, str] = {"zh": "{year}年{n}的{a}是多少？", "en": "What was the {a} of {n} in {year}?"}


@dataclass(frozen=True, slots=True)
class Case:
    """A document with one question about each fact, and which kind each question is."""

    document: Document
    kinds: tuple[Kind, ...]


def make_case(rng: random.Random, language: Language) -> Case:
    """FACTS facts, two asked about as they stand, two with another year, two with an entity that is not in the text."""
    words = lexicon()["finance"][language]
    attributes: list[str] = [name for name, kind in words["attributes"].items() if kind == "money"]
    document, names = Document("finance", words["tag"]), _names(rng, language, 2 * FACTS)
    kinds: list[Kind] = [KINDS[at % len(KINDS)] for at in range(FACTS)]
    for at, kind in enumerate(kinds):
        year, attribute = rng.randrange(2001, 2026), rng.choice(attributes)
        stated = STATES[language].format(year=year, n=names[at], a=attribute, v=rng.randrange(10, 9999))
        document.sentences.append(stated)
        asked_year = year + rng.choice((-3, -2, -1, 1, 2, 3)) if kind == "year" else year
        name = names[FACTS + at] if kind == "entity" else names[at]
        text = ASKS[language].format(year=asked_year, n=name, a=attribute)
        if kind == "stated":
            document.questions.append(Question(text, (at,), language, "fact"))
        else:
            document.questions.append(Question(text, (), language, "unstated"))
    return Case(document, tuple(kinds))


def _names(rng: random.Random, language: Language, count: int) -> list[str]:
    """Different names of companies."""
    found: dict[str, None] = {}
    while len(found) < count:
        if language == "zh":
            found["".join(rng.sample(chinese_characters(), 2)) + "公司"] = None
        else:
            found[rng.choice(word_lists()["content"]).capitalize() + " Group"] = None
    return list(found)


def contradictions(engines: Mapping[Generation, Engine], cases: int) -> dict[str, Any]:
    """For each generation how many contradictions the answer notes, by kind, beside the stated facts it answers."""
    rng = random.Random("evaluation:contradictions")
    languages: Sequence[Language] = ("zh", "en")
    made = [make_case(rng, language) for _ in range(cases) for language in languages]
    return {name: _counts(engine, made) for name, engine in engines.items()}


def _counts(engine: Engine, cases: Sequence[Case]) -> dict[str, Any]:
    rows: list[list[int]] = []
    for case in cases:
        counts = dict.fromkeys(KINDS, 0)
        for kind, asked in zip(case.kinds, ask(engine, case.document), strict=True):
            counts[kind] += asked.right if kind == "stated" else asked.quoted is None
        rows.append([counts[kind] for kind in KINDS])
    each = FACTS // len(KINDS)
    table = np.asarray(rows, float)
    return {
        {"stated": "stated_answered", "year": "year_noted", "entity": "entity_noted"}[kind]: {
            "asked": each * len(rows),
            "right": int(table[:, at].sum()),
            **bootstrap(table[:, [at]] / each, mean).plain("share"),
        }
        for at, kind in enumerate(KINDS)
    }
