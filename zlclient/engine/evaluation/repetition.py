"""How much free answers repeat themselves as the temperature rises: the share of an answer's n-grams that came before.

Nothing constrains the answer to quotations here; markers, which come again after every few tokens by design, are left
out. A summary is asked for, as it gives the longest answers.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..config import Generation
from ..prompt import Prompt
from ..runner import Engine, Outcome
from ..sampler import Sampling
from ..training.data import FACTS_ONLY, Language, lexicon, make_document
from .intervals import bootstrap, slope

TEMPERATURES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
GRAM, MOST = 2, 64


def repeated(tokens: Sequence[int], n: int = GRAM) -> float:
    """Share of the n-grams of `tokens` that are a repetition of an earlier one; 0 where there is none."""
    grams = [tuple(tokens[at : at + n]) for at in range(len(tokens) - n + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0


def repetition(engines: Mapping[Generation, Engine], prompts: int) -> dict[str, Any]:
    """For each generation the mean share at each temperature, and its slope per unit of temperature."""
    rng = random.Random("evaluation:repetition")
    languages: Sequence[Language] = ("zh", "en")
    asked = [_prompt(rng, next(iter(engines.values())), languages[at % 2]) for at in range(prompts)]
    found: dict[str, Any] = {}
    for name, engine in engines.items():
        table = np.array(
            [[_sampled(engine, tokens, at, seed) for at in TEMPERATURES] for seed, tokens in enumerate(asked)]
        )
        x = np.asarray(TEMPERATURES)
        found[name] = {
            "share": {str(at): round(float(value), 4) for at, value in zip(TEMPERATURES, table.mean(0), strict=True)},
            "slope": bootstrap(table, lambda rows, x=x: slope(x, rows.mean(-2))).plain(),
        }
    return found


def _prompt(rng: random.Random, engine: Engine, language: Language) -> list[int]:
    prompt, document = Prompt(engine.tokenizer), make_document(rng, 8, 0, language=language, mix=FACTS_ONLY)
    question = lexicon()["wording"][language]["summary"][0].format(k="四" if language == "zh" else "four")
    return [*prompt.passage(document.sentences, tag=document.tag), *prompt.question(question)]


def _sampled(engine: Engine, tokens: Sequence[int], temperature: float, seed: int) -> float:
    outcome = Outcome()
    for _ in engine.stream(
        tokens, sampling=Sampling(temperature, seed=seed), max_tokens=MOST, thresholds=False, outcome=outcome
    ):
        pass
    return repeated([token for token in outcome.tokens if engine.tokenizer.marked(token) is None])
