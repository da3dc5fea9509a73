"""All measurements of one run as one object for JSON: both generations on the same prompts and documents."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..checkpoint import SHIPPED, Checkpoint, load_shipped
from ..config import GENERATIONS, Generation
from ..model import Model
from ..runner import Engine
from . import mechanisms
from .agreement import agreement
from .by_domain import by_domain
from .caching import hit_rates
from .claims import judged
from .contradictions import contradictions
from .intervals import Estimate, paired_ratio, total
from .load import call_costs, throughput
from .quality import cells, difference, exact_match, generated, held_out, passages, served_passages, values
from .repetition import repetition
from .speed import Times, make_prompts, measure, milliseconds, peak_memory, ratios, share

CLAIMED_LENGTH = 8192  # tokens at which memory is compared


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured of each kind.

    lengths         of prompts, in tokens
    prompts         of each length, each timed `repeats` times; ablations on those of up to `ablated` tokens
    memory          lengths in tokens at which peak memory is taken
    documents       generated documents of each size and language; of `free` ones without the constraint and for values
    batches         sequences decoded at once; `decoded` in all at each size, at least
    calls           calls timed
    requests        to the prefix cache
    sampled         prompts answered at each temperature
    domain          documents of each domain and language
    effects         documents of each language for the ablations
    decisions       documents of each language for the check loop's verdicts
    contradictions  documents of each language with contradictions
    """

    lengths: list[int]
    prompts: int
    repeats: int
    ablated: int
    memory: list[int]
    documents: int
    free: int
    batches: list[int]
    decoded: int
    calls: int
    requests: int
    sampled: int
    domain: int
    effects: int
    decisions: int
    contradictions: int


_LENGTHS, _BATCHES = [64, 128, 256, 512, 1024, 2048], [1, 4, 16, 64]
QUICK = Effort(
    lengths=_LENGTHS, batches=_BATCHES,
    prompts=2, repeats=2, ablated=256, memory=[512, CLAIMED_LENGTH], documents=16, free=1, decoded=16, calls=12,
    requests=60, sampled=2, domain=1, effects=3, decisions=3, contradictions=4,
)  # fmt: skip
FULL = Effort(
    lengths=_LENGTHS, batches=_BATCHES,
    prompts=8, repeats=3, ablated=2048, memory=[128, 512, 2048, CLAIMED_LENGTH, 32_768], documents=40, free=10,
    decoded=256, calls=60, requests=240, sampled=24, domain=6, effects=40, decisions=40, contradictions=40,
)  # fmt: skip


def collect(effort: Effort, cases: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Everything. `cases` are written passages, possibly none."""
    begun, spent = time.perf_counter(), time.process_time()
    engines: dict[Generation, Engine] = {}
    loading: dict[str, float] = {}
    for name in GENERATIONS:
        at = time.perf_counter()
        engines[name] = Engine.shipped(name)
        loading[name] = round(time.perf_counter() - at, 4)
    checkpoints: dict[Generation, Checkpoint] = {name: load_shipped(name) for name in GENERATIONS}
    both = [*held_out(8, "zh", effort.effects), *held_out(8, "en", effort.effects)]
    decided = [*held_out(8, "zh", effort.decisions), *held_out(8, "en", effort.decisions)]
    found = {
        **_speed(checkpoints, effort),
        **_quality(engines, effort, cases),
        "throughput": throughput(
            {name: engine.model for name, engine in engines.items()}, effort.batches, effort.decoded
        ),
        "calls": call_costs(engines, effort.calls),
        "prefix_cache": hit_rates(checkpoints, effort.requests),
        "repetition": repetition(engines, effort.sampled),
        "domains": by_domain(engines, effort.domain),
        "mechanisms": mechanisms.effects(checkpoints, both),
        "position_layer": mechanisms.position_layer(SHIPPED / "auto" / "training.jsonl"),
        "agreement": agreement(checkpoints["legacy"], decided),
        "contradictions": contradictions(engines, effort.contradictions),
        "loading_s": loading,
    }
    return {
        **found,
        "claims": judged(found),
        "checkpoints": {name: checkpoint.sha256 for name, checkpoint in checkpoints.items()},
        "effort": asdict(effort),
        "quick": effort == QUICK,
        "took_s": round(time.perf_counter() - begun, 1),
        "cpu_s": round(time.process_time() - spent, 1),
    }


def _speed(checkpoints: dict[Generation, Checkpoint], effort: Effort) -> dict[str, Any]:
    models = mechanisms.models(checkpoints)
    prompts = make_prompts(checkpoints["auto"].tokenizer, effort.prompts, lengths=effort.lengths)
    times = measure({name: parts["whole"] for name, parts in models.items()}, prompts, repeats=effort.repeats)
    auto, legacy = times["auto"], times["legacy"]
    memory = _memory(checkpoints, effort.memory)
    at_8k = memory[str(CLAIMED_LENGTH)]["auto_over_legacy"]
    over = {name: estimate.plain("ratio") for name, estimate in ratios(auto, legacy).items()}
    return {
        "auto_over_legacy": {**over, "memory_8k": Estimate(at_8k, at_8k, at_8k).plain("ratio")},
        "lengths": {str(length): _at_length(auto.of(length), legacy.of(length)) for length in effort.lengths},
        **_ablation(models, [tokens for tokens in prompts if len(tokens) <= effort.ablated], effort.repeats),
        "memory": memory,
    }


def _ablation(models: dict[Generation, dict[str, Model]], prompts: list[list[int]], repeats: int) -> dict[str, Any]:
    """Each generation's time without a part over its time with all of them, and the check loop's share of legacy's."""
    flat = {f"{side} {part}": model for side, parts in models.items() for part, model in parts.items()}
    times = measure(flat, prompts, repeats=repeats)
    shares = share(times["legacy whole"], times["legacy check loop"])
    return {
        "check_loop_share": {name: estimate.plain() for name, estimate in shares.items()},
        "ablation": {
            side: {part: _without(times[f"{side} {part}"], times[f"{side} whole"]) for part in parts if part != "whole"}
            for side, parts in models.items()
        },
    }


def _without(part: Times, whole: Times) -> dict[str, Any]:
    return {
        "prefill": paired_ratio(part.prefill, whole.prefill, total).plain("ratio"),
        "time_per_output_token": paired_ratio(part.per_token, whole.per_token, total).plain("ratio"),
    }


def _at_length(auto: Times, legacy: Times) -> dict[str, Any]:
    over = {name: estimate.plain("ratio") for name, estimate in ratios(auto, legacy).items()}
    return {"legacy": milliseconds(legacy), "auto": milliseconds(auto), "auto_over_legacy": over}


def _memory(checkpoints: dict[Generation, Checkpoint], lengths: Sequence[int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for length in lengths:
        peaks = {name: peak_memory(Model(checkpoint), length) for name, checkpoint in checkpoints.items()}
        found[str(length)] = {**peaks, "auto_over_legacy": round(peaks["auto"] / peaks["legacy"], 4)}
    return found


def _quality(engines: dict[Generation, Engine], effort: Effort, cases: Sequence[dict[str, Any]]) -> dict[str, Any]:
    documents = [*held_out(8, "zh", effort.free), *held_out(8, "en", effort.free)]
    found = {name: cells(engine, effort.documents) for name, engine in engines.items()}
    quality: dict[str, Any] = {}
    for name, engine in engines.items():
        quality[name] = generated(found[name], exact_match(engine, documents, free=True))
        quality[name]["values_8"] = values(engine, documents)
        quality[name]["passages"] = passages(engine, cases) if cases else None
        quality[name]["passages_served"] = served_passages(engine, cases) if cases else None
    if cases:
        quality["offline"] = {"passages": served_passages(None, cases)}
    gained = difference(found["auto"], found["legacy"])
    return {"quality": quality, "quality_difference": {name: estimate.plain() for name, estimate in gained.items()}}
