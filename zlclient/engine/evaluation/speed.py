"""Times and memory of engines on the same prompts, interleaved prompt by prompt, in CPU seconds of one thread."""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..model import Model
from ..prompt import Prompt
from ..tokenizer import Tokenizer
from ..training.data import Document, make_document
from .intervals import Ratio, median, p95, paired_ratio, total

OUTPUT_TOKENS = 16
REPEATS = 3  # of each prompt; the quickest counts, as everything slower is the machine's doing


@dataclass(slots=True)
class Times:
    """Of one engine, a number a prompt: CPU seconds to read the prompt but for its last token (`prefill`), to the first
    token (`ttft`) and for each further one (`per_token`)."""

    prefill: list[float] = field(default_factory=list[float])
    ttft: list[float] = field(default_factory=list[float])
    per_token: list[float] = field(default_factory=list[float])


def make_prompts(tokenizer: Tokenizer, count: int, *, seed: int = 7, longest: int = 24) -> list[list[int]]:
    """Prompts of documents with 2 to `longest` sentences (about 40 to 600 tokens), each with a question."""
    rng = random.Random(f"speed:{seed}")
    return [_prompt(tokenizer, make_document(rng, rng.randrange(2, longest + 1), 1)) for _ in range(count)]


def _prompt(tokenizer: Tokenizer, document: Document) -> list[int]:
    prompt = Prompt(tokenizer)
    text = document.questions[0].text if document.questions else "?"
    return [*prompt.passage(document.sentences, tag=document.tag), *prompt.question(text)]


def measure(models: Mapping[str, Model], prompts: Sequence[Sequence[int]]) -> dict[str, Times]:
    """The times of every model on every prompt; which model goes first alternates."""
    times = {name: Times() for name in models}
    for model in models.values():  # bias matrices and buffers are made before anything is timed
        _timed(model, max(prompts, key=len))
    for number, tokens in enumerate(prompts):
        best: dict[str, tuple[float, float, float]] = {}
        for _ in range(REPEATS):
            for name in sorted(models, reverse=bool(number % 2)):
                found = _timed(models[name], tokens)
                best[name] = min(best.get(name, found), found, key=sum)
        for name, (prefill, ttft, per_token) in best.items():
            times[name].prefill.append(prefill)
            times[name].ttft.append(ttft)
            times[name].per_token.append(per_token)
    return times


def _timed(model: Model, tokens: Sequence[int]) -> tuple[float, float, float]:
    state = model.start()
    begun = time.thread_time()
    model.forward(tokens[:-1], state)
    read = time.thread_time()
    token = int(model.forward(tokens[-1:], state).logits.argmax())
    first = time.thread_time()
    for _ in range(OUTPUT_TOKENS):
        token = int(model.forward([token], state).logits.argmax())
    return read - begun, first - begun, (time.thread_time() - first) / OUTPUT_TOKENS


def peak_memory(model: Model, length: int) -> int:
    """The most bytes that reading `length` tokens takes beyond the weights; numpy's arrays are all counted."""
    rng = random.Random(length)
    tokens = [rng.randrange(8, model.config.vocabulary) for _ in range(length)]
    tracemalloc.start()
    try:
        model.forward(tokens, model.start())
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def ratios(over: Times, under: Times) -> dict[str, Ratio]:
    """`over` / `under`: TTFT at the median and the 95th percentile, prefill and time per output token in all."""
    return {
        "ttft_p50": paired_ratio(over.ttft, under.ttft, median),
        "ttft_p95": paired_ratio(over.ttft, under.ttft, p95),
        "prefill": paired_ratio(over.prefill, under.prefill, total),
        "time_per_output_token": paired_ratio(over.per_token, under.per_token, total),
    }
