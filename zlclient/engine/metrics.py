"""What an engine counts, under vLLM's names, as Prometheus text.

Names, labels and the edges of the time to first token are those of vLLM 0.11, so that its dashboards work here; an edge
at 0.2 s is added. All other times have the same edges: this engine's are far under those that vLLM has for them.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .request import Outcome, Times
    from .scheduler import Limits, Load

SECONDS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.2, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
)  # fmt: skip
TOKENS = tuple(float(step * 10**power) for power in range(6) for step in (1, 2, 5) if step * 10**power <= 200_000)
REASONS: Mapping[str, str] = {
    "end": "stop",
    "stop": "stop",
    "doubt": "stop",
    "length": "length",
    "cancelled": "abort",
}  # vLLM's word for each way to finish
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Histogram:
    """Counts of values up to each edge. Not locked."""

    def __init__(self, edges: tuple[float, ...]) -> None:
        self.edges = edges
        self.counts = [0] * (len(edges) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count `value`."""
        self.counts[bisect_left(self.edges, value)] += 1
        self.sum += value


@dataclass(frozen=True, slots=True)
class Family:
    """A metric: its kind and what it says."""

    name: str
    kind: str
    help: str


GAUGES = (
    Family("vllm:num_requests_running", "gauge", "Requests that are read or decoded."),
    Family("vllm:num_requests_waiting", "gauge", "Requests that wait for their turn."),
    Family("vllm:kv_cache_usage_perc", "gauge", "Share of the positions that are held, from 0 to 1."),
)
COUNTERS = (
    Family("vllm:prefix_cache_queries_total", "counter", "Prompt tokens looked up in the prefix cache."),
    Family("vllm:prefix_cache_hits_total", "counter", "Prompt tokens found in the prefix cache."),
    Family("vllm:prompt_tokens_total", "counter", "Prompt tokens read, cached ones included."),
    Family("vllm:generation_tokens_total", "counter", "Tokens generated."),
    Family("vllm:num_preemptions_total", "counter", "Requests preempted; a request keeps its room, so none is."),
    Family("zlclient:requests_refused_total", "counter", "Requests refused because too many waited."),
)
FINISHED = Family("vllm:request_success_total", "counter", "Requests that ended, by how.")
HISTOGRAMS = {
    "ttft": Family("vllm:time_to_first_token_seconds", "histogram", "From arrival to the first token."),
    "itl": Family("vllm:inter_token_latency_seconds", "histogram", "From one token to the next."),
    "e2e": Family("vllm:e2e_request_latency_seconds", "histogram", "From arrival to the end."),
    "queue": Family("vllm:request_queue_time_seconds", "histogram", "From arrival to being scheduled."),
    "prefill": Family("vllm:request_prefill_time_seconds", "histogram", "From being scheduled to the first token."),
    "decode": Family("vllm:request_decode_time_seconds", "histogram", "From the first token to the last."),
    "inference": Family("vllm:request_inference_time_seconds", "histogram", "From being scheduled to the last token."),
    "prompt": Family("vllm:request_prompt_tokens", "histogram", "Prompt tokens of a request."),
    "generation": Family("vllm:request_generation_tokens", "histogram", "Tokens generated for a request."),
}


class Ended(Protocol):
    """What is counted of a request that is over."""

    @property
    def times(self) -> Times:
        """When it came, and what became of it when."""
        ...

    @property
    def outcome(self) -> Outcome:
        """How it went."""
        ...


class Scheduled(Protocol):
    """What runs an engine's requests."""

    @property
    def load(self) -> Load:
        """At this moment."""
        ...

    @property
    def limits(self) -> Limits:
        """How much at once."""
        ...


class Found(Protocol):
    """Prompt tokens looked up among those read before, and found there."""

    @property
    def queries(self) -> int:
        """Looked up."""
        ...

    @property
    def hits(self) -> int:
        """Found."""
        ...


class Cached(Protocol):
    """Where they are looked up."""

    @property
    def stats(self) -> Found:
        """At this moment."""
        ...


class Watched(Protocol):
    """An engine, as far as its metrics go."""

    @property
    def metrics(self) -> Metrics:
        """Its counts."""
        ...

    @property
    def scheduler(self) -> Scheduled:
        """Who runs its requests."""
        ...

    @property
    def cache(self) -> Cached:
        """What was read before."""
        ...


class Metrics:
    """One engine's counts. The scheduler writes them, anyone may read them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._prompt_tokens = self._generated = self._refused = 0
        self._finished: dict[str, int] = {"stop": 0, "length": 0, "abort": 0, "error": 0}
        self._histograms = {
            name: Histogram(TOKENS if name in ("prompt", "generation") else SECONDS) for name in HISTOGRAMS
        }

    def read(self, tokens: int) -> None:
        """A prompt of `tokens` was read."""
        with self._lock:
            self._prompt_tokens += tokens

    def token(self, times: Times, now: float) -> None:
        """A request's token came at `now`."""
        with self._lock:
            self._generated += 1
            if not times.first:
                times.first = now
                self._histograms["ttft"].observe(now - times.arrived)
                self._histograms["prefill"].observe(now - times.scheduled)
            else:
                self._histograms["itl"].observe(now - times.last)
            times.last = now

    def ended(self, request: Ended, now: float, *, failed: bool) -> None:
        """`request` is over."""
        times, outcome = request.times, request.outcome
        with self._lock:
            self._finished["error" if failed else REASONS[outcome.finish]] += 1
            found = {"e2e": now - times.arrived, "prompt": outcome.prompt_tokens, "generation": len(outcome.tokens)}
            if times.scheduled:
                found["queue"] = times.scheduled - times.arrived
            if times.first:
                found |= {"decode": times.last - times.first, "inference": times.last - times.scheduled}
            for name, value in found.items():
                self._histograms[name].observe(value)

    def refused(self) -> None:
        """A request found the queue full."""
        with self._lock:
            self._refused += 1

    def renew(self) -> None:
        """Take a fresh lock: for a forked child, where another thread may have held it."""
        self._lock = threading.Lock()

    def lines(self, engine: Watched, labels: str) -> dict[str, list[str]]:
        """The samples of each metric's name. `labels` are those of the engine, written."""
        load, cached = engine.scheduler.load, engine.cache.stats
        gauges = (load.running, load.waiting, load.positions / engine.scheduler.limits.positions)
        with self._lock:
            counters = (cached.queries, cached.hits, self._prompt_tokens, self._generated, 0, self._refused)
            found = {
                family.name: [f"{family.name}{{{labels}}} {_number(value)}"]
                for family, value in zip((*GAUGES, *COUNTERS), (*gauges, *counters), strict=True)
            }
            found[FINISHED.name] = [
                f'{FINISHED.name}{{{labels},finished_reason="{reason}"}} {count}'
                for reason, count in self._finished.items()
            ]
            for name, histogram in self._histograms.items():
                found[HISTOGRAMS[name].name] = list(_histogram_lines(HISTOGRAMS[name].name, labels, histogram))
        return found


def exposition(engines: Mapping[str, Watched]) -> str:
    """The metrics of `engines`, by model name, in Prometheus' text format."""
    samples = [
        engine.metrics.lines(engine, f'model_name="{_escaped(name)}",engine="0"')  # each model has one engine
        for name, engine in engines.items()
    ]
    out: list[str] = []
    for family in (*GAUGES, *COUNTERS, FINISHED, *HISTOGRAMS.values()):
        out += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]
        out += [line for found in samples for line in found[family.name]]
    return "\n".join(out) + "\n"


def _histogram_lines(name: str, labels: str, histogram: Histogram) -> Iterable[str]:
    total = 0
    for edge, count in zip((*histogram.edges, float("inf")), histogram.counts, strict=True):
        total += count
        yield f'{name}_bucket{{{labels},le="{_number(edge)}"}} {total}'
    yield f"{name}_sum{{{labels}}} {_number(histogram.sum)}"
    yield f"{name}_count{{{labels}}} {total}"


def _number(value: float) -> str:
    return "+Inf" if value == float("inf") else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
