"""Times and memory of engines on the same prompts, interleaved prompt by prompt, in CPU seconds of one thread."""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..model import CHUNK, Model
from ..prompt import Prompt
from ..state import State
from ..tokenizer import Tokenizer
from ..training.data import make_document
from .intervals import Estimate, mean, median, p95, paired_ratio, total

OUTPUT_TOKENS = 16
REPEATS = 3  # of each prompt; the quickest counts, as everything slower is the machine's doing


@dataclass(slots=True)
class Times:
    """Of one engine, a number a prompt: CPU seconds to read the prompt but for its last token (`prefill`), to the first
    token (`ttft`) and for each further one (`per_token`)."""

    lengths: list[int] = field(default_factory=list[int])
    prefill: list[float] = field(default_factory=list[float])
    ttft: list[float] = field(default_factory=list[float])
    per_token: list[float] = field(default_factory=list[float])

    def of(self, length: int) -> Times:
        """Those of the prompts of one length."""
        at = [number for number, found in enumerate(self.lengths) if found == length]
        return Times([length] * len(at), *([row[i] for i in at] for row in (self.prefill, self.ttft, self.per_token)))


def make_prompts(tokenizer: Tokenizer, each: int, *, lengths: Sequence[int], seed: int = 7) -> list[list[int]]:
    """`each` prompts of exactly every length: passages of generated documents, cut, and a question."""
    rng = random.Random(f"speed:{seed}")
    return [_prompt(tokenizer, rng, length) for _ in range(each) for length in lengths]


def _prompt(tokenizer: Tokenizer, rng: random.Random, length: int) -> list[int]:
    prompt, read = Prompt(tokenizer), list[int]()
    document = make_document(rng, 4, 1)
    question = prompt.question(document.questions[0].text if document.questions else "?")[: length // 2]
    while len(read) < length - len(question):
        read += prompt.passage(document.sentences, tag=document.tag)
        document = make_document(rng, 24, 0)
    return [*read[: length - len(question)], *question]


def measure(
    models: Mapping[str, Model], prompts: Sequence[Sequence[int]], *, repeats: int = REPEATS
) -> dict[str, Times]:
    """The times of every model on every prompt; which model goes first alternates."""
    times = {name: Times() for name in models}
    longest = max(map(len, prompts)) + OUTPUT_TOKENS
    for model in models.values():  # what a model builds once for long prompts is built before anything is timed
        model.forward([model.tokenizer.bos], _as_if_read(model, longest))
    for number, tokens in enumerate(prompts):
        best: dict[str, tuple[float, float, float]] = {}
        for turn in range(repeats):
            for name in sorted(models, reverse=bool((number + turn) % 2)):
                found = _timed(models[name], tokens)
                best[name] = min(best.get(name, found), found, key=sum)
        for name, (prefill, ttft, per_token) in best.items():
            times[name].lengths.append(len(tokens))
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
        token = int(model.decode([token], [state])[0].logits.argmax())
    return read - begun, first - begun, (time.thread_time() - first) / OUTPUT_TOKENS


def peak_memory(model: Model, length: int) -> int:
    """The most bytes that a prompt of `length` tokens takes beyond the weights, at its last and largest chunk.

    The chunks before it are stood in for by keys and values of zero, so that long prompts are quick to measure.
    `model` is a fresh one: what it builds and keeps for long prompts counts.
    """
    last = min(CHUNK, length)
    tracemalloc.start()
    try:
        model.forward([model.tokenizer.bos] * last, _as_if_read(model, length - last))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _as_if_read(model: Model, length: int) -> State:
    """A state of `length` tokens whose keys and values are zero."""
    state = model.start()
    state.reserve(length + CHUNK)
    for stored, lead in zip(state.stored, state.leads, strict=True):
        stored[:, lead : lead + length] = 0
    state.length = length
    return state


def ratios(over: Times, under: Times) -> dict[str, Estimate]:
    """`over` / `under`: TTFT at the median and the 95th percentile, prefill and time per output token in all."""
    return {
        "ttft_p50": paired_ratio(over.ttft, under.ttft, median),
        "ttft_p95": paired_ratio(over.ttft, under.ttft, p95),
        "prefill": paired_ratio(over.prefill, under.prefill, total),
        "time_per_output_token": paired_ratio(over.per_token, under.per_token, total),
    }


def share(whole: Times, without: Times) -> dict[str, Estimate]:
    """What share of `whole`'s time, on the prompt and in decoding, the part takes that `without` goes without."""
    found: dict[str, Estimate] = {}
    for name, above, below in (
        ("prompt", without.prefill, whole.prefill),
        ("decode", without.per_token, whole.per_token),
    ):
        left = paired_ratio(above, below, total)
        found[name] = Estimate(1 - left.value, 1 - left.high, 1 - left.low)
    return found


def milliseconds(times: Times) -> dict[str, float]:
    """TTFT p50 and P95, mean prefill and mean time per output token."""
    rows = {
        "ttft_p50_ms": (times.ttft, median),
        "ttft_p95_ms": (times.ttft, p95),
        "prefill_ms": (times.prefill, mean),
        "per_token_ms": (times.per_token, mean),
    }
    return {name: round(1e3 * float(statistic(np.asarray(row)[:, None])), 4) for name, (row, statistic) in rows.items()}
