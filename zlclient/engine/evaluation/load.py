"""Many requests: tokens a second of concurrent sequences, and what a thousand typical calls cost."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..answering import answer
from ..config import Generation
from ..model import Model
from ..runner import Engine
from ..training.data import make_document
from .intervals import Estimate, bootstrap, mean, paired_ratio, total
from .speed import make_prompts

STEPS, PROMPT = 8, 64


def throughput(models: Mapping[Generation, Model], batches: Sequence[int], decoded: int) -> dict[str, Any]:
    """Tokens a CPU second of decoding at each batch size, both generations by turns, and auto over legacy.

    Each size has two turns or more, so many that at least `decoded` sequences are decoded.
    """
    found: dict[str, Any] = {}
    for size in batches:
        rates: dict[str, list[float]] = {name: [] for name in models}
        for turn in range(max(2, decoded // size)):
            prompts = make_prompts(models["auto"].tokenizer, size, lengths=(PROMPT,), seed=turn)
            for name in sorted(models, reverse=bool(turn % 2)):
                rates[name].append(_decoded(models[name], prompts))
        ratio = paired_ratio(rates["auto"], rates["legacy"], total)
        found[str(size)] = {name: round(float(np.mean(row)), 1) for name, row in rates.items()} | {
            "auto_over_legacy": ratio.plain("ratio")
        }
    return found


def _decoded(model: Model, prompts: Sequence[Sequence[int]]) -> float:
    states = [model.start() for _ in prompts]
    steps = [model.forward(tokens, state) for tokens, state in zip(prompts, states, strict=True)]
    begun = time.thread_time()
    for _ in range(STEPS):
        tokens = [int(step.logits.argmax()) for step in steps]
        steps = model.decode(tokens, states)
    return STEPS * len(prompts) / (time.thread_time() - begun)


def call_costs(engines: Mapping[Generation, Engine], calls: int) -> dict[str, Any]:
    """CPU seconds of 1,000 calls: a question about a passage of 8 facts that was not seen before, answered whole."""
    rng = random.Random("evaluation:calls")
    spent: dict[str, list[float]] = {name: [] for name in engines}
    for turn in range(calls):
        document = make_document(rng, 8, 4)
        question = next((item for item in document.questions if item.kind != "summary"), None)
        for name in sorted(engines, reverse=bool(turn % 2)):
            begun = time.process_time()  # the engine computes in a thread of its own
            for _ in answer(
                engines[name], document.sentences, question.text if question else "?",
                domain=document.domain, tag=document.tag,
            ):  # fmt: skip
                pass
            spent[name].append(1000 * (time.process_time() - begun))
    costs: dict[str, Estimate] = {name: bootstrap([[value] for value in row], mean) for name, row in spent.items()}
    ratio = paired_ratio(spent["auto"], spent["legacy"], total)
    return {name: cost.plain("cpu_s") for name, cost in costs.items()} | {"auto_over_legacy": ratio.plain("ratio")}
