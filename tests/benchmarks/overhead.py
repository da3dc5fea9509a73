"""What a call costs beside the raw SDK's `create` and the peers, on loopback, in interleaved rounds.

    python tests/benchmarks/overhead.py [--rounds 3] [--calls 500] [--peers] [--stores memory sqlite:///… redis://…]

Each arm is a process of its own (so that memory is its own), driven call by call in turn, so that a slow moment of the
machine meets every arm. Prints the median of same-round ratios over the raw SDK's `messages.create` (async arms: over the
raw async SDK's), peak memory after 100 calls, and the CPU seconds of importing each. With --peers, those peers that
are installed (litellm, any-llm-sdk, pydantic-ai, langchain-anthropic) stand in the same table. With --stores, calls with
`experiment=` over each store stand beside the plain call; the column `× plain` is their overhead.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

MODEL = "claude-opus-5-5"
PROMPT = "Say hello. " * 20
ARMS = {
    "anthropic create": ("anthropic", False),
    "zlclient chat, all stages": ("zlclient", False),
    "zlclient chat, plain": ("zlclient_plain", False),
    "anthropic async create": ("anthropic_async", True),
    "zlclient achat, all stages": ("zlclient_async", True),
}
PEERS = {
    "any-llm": ("any_llm", "any_llm"),
    "ChatAnthropic": ("langchain", "langchain_anthropic"),
    "pydantic-ai direct": ("pydantic_ai", "pydantic_ai"),
    "litellm": ("litellm", "litellm"),
}
IMPORTS = ("pass", "import zlclient", "import zlclient; zlclient.chat", "import anthropic", "import openai")


def make(arm: str, base: str) -> Any:
    """The callable of one arm; async ones give a coroutine."""
    messages = [{"role": "user", "content": PROMPT}]
    if arm in ("anthropic", "anthropic_async"):
        import anthropic

        kind = anthropic.Anthropic if arm == "anthropic" else anthropic.AsyncAnthropic
        client = kind(base_url=base, max_retries=0, timeout=10)
        return lambda: client.messages.create(model=MODEL, max_tokens=64, messages=messages)
    if arm.startswith("experiment "):
        import zlclient

        route = {"model": f"anthropic:{MODEL}"}
        rollout = {"control": "one", "treatment": "two", "unit": "user_id", "stages": [50, 100]}
        client = zlclient.Client(
            store=arm.partition(" ")[2], rollouts={"bench": rollout}, routes={"one": route, "two": route}
        )
        units = itertools.count()
        return lambda: client.chat(PROMPT, max_tokens=64, experiment="bench", unit=next(units))
    if arm.startswith("zlclient"):
        import zlclient

        client = zlclient.Client()
        options = {"model": f"anthropic:{MODEL}", "max_tokens": 64}
        if arm != "zlclient_plain":
            options |= {"domain": "finance", "anchors": ["fidelity", "format"], "system": "Be brief."}
        verb = client.achat if arm.endswith("async") else client.chat
        return lambda: verb(PROMPT, **options)
    return _peer(arm, base, messages)


def _peer(arm: str, base: str, messages: list[dict[str, str]]) -> Any:
    if arm == "any_llm":
        from any_llm import AnyLLM

        client = AnyLLM.create("anthropic", api_key="k", api_base=base)
        return lambda: client.completion(model=MODEL, messages=messages, max_tokens=64)
    if arm == "langchain":
        from langchain_anthropic import ChatAnthropic

        chat = ChatAnthropic(model=MODEL, base_url=base, max_tokens=64, max_retries=0, timeout=10)
        return lambda: chat.invoke(PROMPT)
    if arm == "pydantic_ai":
        import anthropic
        from pydantic_ai.direct import model_request_sync
        from pydantic_ai.messages import ModelRequest
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        sdk = anthropic.AsyncAnthropic(base_url=base, max_retries=0, timeout=10)
        model = AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=sdk))
        request = [ModelRequest.user_text_prompt(PROMPT)]
        return lambda: model_request_sync(model, request)
    import litellm

    options = {"api_base": base, "api_key": "k", "max_tokens": 64, "max_retries": 0, "timeout": 10}
    return lambda: litellm.completion(model=f"anthropic/{MODEL}", messages=messages, **options)


def serve_arm(arm: str, base: str, is_async: bool) -> None:
    """The process of one arm: a line in, that many calls, a line with their median seconds and the peak memory out."""
    import asyncio
    import resource
    import time

    call = make(arm, base)
    loop = asyncio.new_event_loop() if is_async else None

    def timed() -> float:
        began = time.perf_counter()
        if loop is not None:
            loop.run_until_complete(call())
        else:
            call()
        return time.perf_counter() - began

    if loop is not None:

        async def several(count: int) -> list[float]:
            times = []
            for _ in range(count):
                began = time.perf_counter()
                await call()
                times.append(time.perf_counter() - began)
            return times

    for line in sys.stdin:
        count = int(line)
        times = loop.run_until_complete(several(count)) if loop is not None else [timed() for _ in range(count)]
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(statistics.median(times), memory, flush=True)


class Arm:
    """A running arm."""

    def __init__(self, name: str, arm: str, is_async: bool, base: str) -> None:
        self.name, self.is_async = name, is_async
        env = {k: v for k, v in os.environ.items() if not k.startswith(("ANTHROPIC", "OPENAI"))}
        env |= {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": base, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        command = [sys.executable, __file__, "--arm", arm, "--base", base, *(["--async"] if is_async else [])]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
        )
        self.medians: list[float] = []
        self.memory = self.run(100)[1]

    def run(self, calls: int) -> tuple[float, float]:
        """`calls` calls: (median seconds, peak MB)."""
        self.process.stdin.write(f"{calls}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            last = self.process.stderr.read().strip().splitlines()[-1:]
            raise SystemExit(f"{self.name} failed: {''.join(last)}; leave it out with --skip")
        seconds, memory = line.split()
        return float(seconds), float(memory)


def cpu_of_import(code: str) -> float:
    """CPU seconds of a cold process that runs `code`: the median of 5."""
    program = f"{code}\nimport resource; r = resource.getrusage(resource.RUSAGE_SELF); print(r.ru_utime + r.ru_stime)"
    times = [float(subprocess.check_output([sys.executable, "-c", program], text=True)) for _ in range(5)]
    return statistics.median(times)


def main() -> None:
    """Run the rounds and print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--skip", nargs="*", default=[], help="names of arms to leave out")
    parser.add_argument("--stores", nargs="*", default=[])
    parser.add_argument("--arm")
    parser.add_argument("--base")
    parser.add_argument("--async", dest="is_async", action="store_true")
    args = parser.parse_args()
    if args.arm:
        serve_arm(args.arm, args.base, args.is_async)
        return
    from faulty import FaultyServer

    with FaultyServer() as server:
        wanted = dict(ARMS)
        if args.peers:
            wanted |= {n: (arm, False) for n, (arm, module) in PEERS.items() if importlib.util.find_spec(module)}
        wanted |= {f"experiment= over {url.split(':')[0]}": (f"experiment {url}", False) for url in args.stores}
        wanted = {name: arm for name, arm in wanted.items() if name not in args.skip}
        arms = [Arm(name, arm, is_async, server.url) for name, (arm, is_async) in wanted.items()]
        slice_size = 20
        for _ in range(args.rounds):
            times: dict[str, list[float]] = {arm.name: [] for arm in arms}
            for _ in range(args.calls // slice_size):
                for arm in arms:
                    times[arm.name].append(arm.run(slice_size)[0])
                server.requests.clear()
            for arm in arms:
                arm.medians.append(statistics.median(times[arm.name]))
    raw = {arm.is_async: arm for arm in arms if arm.name in ("anthropic create", "anthropic async create")}
    plain = next(arm for arm in arms if arm.name == "zlclient chat, plain")
    print(f"{'':30} {'× raw':>7} {'× plain':>8} {'ms':>7} {'MB':>6}")
    for arm in arms:
        ratios = [mine / base for mine, base in zip(arm.medians, raw[arm.is_async].medians, strict=True)]
        over = [mine / base for mine, base in zip(arm.medians, plain.medians, strict=True)]
        ms = 1e3 * statistics.median(arm.medians)
        print(
            f"{arm.name:30} {statistics.median(ratios):7.2f} {statistics.median(over):8.2f} {ms:7.2f} {arm.memory:6.0f}"
        )
        arm.process.kill()
    print()
    for code in IMPORTS:
        print(f"{code:40} {cpu_of_import(code):6.3f} s CPU")


if __name__ == "__main__":
    main()
