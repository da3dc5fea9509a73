"""How far the token estimate is off, and how fast it is, beside the tokenizers installed.

    python tests/benchmarks/tokens.py

The error is (estimate - exact) / exact for o200k, text by text: real law and prompts from ../shared where present,
Python's own documentation and source, and artificial text, for which budgets keep their margin and long runs their
charge. Claude's tokenizer is not published, so its weights are taken from outside and not measured here.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import statistics
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics

from zlclient.shaping.tokens import MARGIN, estimate_tokens, exact_tokenizer

SHARED = Path(__file__).resolve().parents[3] / "shared"
MODEL = "gpt-5"


def natural() -> dict[str, str]:
    texts = {f"Python docs: {name}": body for name, body in topics.items() if len(body) > 2000}
    texts |= {f"source: {m.__name__}": inspect.getsource(m) for m in (textwrap, statistics, json, inspect)}
    for folder in ("documents", "corpus"):
        for path in sorted((SHARED / folder).glob("*.*")):
            text = path.read_text("utf-8", errors="replace")
            if len(text) > 400:
                texts[f"{folder}: {path.name}"] = text
    return texts


def artificial() -> dict[str, str]:
    digest = hashlib.sha256(b"x").digest()
    noise = b"".join(hashlib.sha256(bytes([i])).digest() for i in range(200))
    return {
        "base64": base64.b64encode(noise).decode(),
        "base64 in lines of 76": "\n".join(textwrap.wrap(base64.b64encode(noise).decode(), 76)),
        "hexadecimal": noise.hex(),
        "digits": "".join(str(byte) for byte in noise),
        "JSON": json.dumps([{"id": i, "hash": digest.hex()[:8], "ok": True, "v": i / 7} for i in range(200)]),
        "table": "| 项目 | 数量 | 说明 |\n" * 200,
        "emoji": "😀👍🏽🎉 " * 300,
        "ruled line": "-" * 4000,
        "rare Han": "".join(chr(0x20000 + 97 * i) for i in range(400)),
    }


def accuracy(count: Callable[[str], int]) -> None:
    errors = {name: estimate_tokens(text, MODEL) / count(text) - 1 for name, text in natural().items()}
    ordered = sorted(errors.values(), key=abs)
    worst = min(errors, key=lambda name: errors[name])
    print(f"natural text: {len(errors)} texts, o200k")
    print(
        f"  median error {statistics.median(map(abs, ordered)):.1%}, 95th percentile {abs(ordered[int(0.95 * len(ordered))]):.1%}"
    )
    print(f"  largest underestimate {errors[worst]:+.1%} ({worst}), overestimate {max(errors.values()):+.1%}")
    beyond = sum(1 + error < 1 / MARGIN for error in errors.values())
    print(f"  beyond the margin of {MARGIN}: {beyond} of {len(errors)}")
    print("artificial text:")
    for name, text in artificial().items():
        exact = count(text)
        print(
            f"  {name:24}{exact:7} exact {estimate_tokens(text, MODEL):7} estimated {estimate_tokens(text, MODEL) / exact - 1:+8.1%}"
        )


def speed() -> None:
    english = "\n".join(topics.values())
    chinese = "第一条 为了保护民事主体的合法权益，调整民事关系，维护社会和经济秩序，制定本法。\n" * 20_000
    counters: dict[str, Callable[[str], int]] = {"estimate_tokens": lambda text: estimate_tokens(text, MODEL)}
    try:
        import quicktok

        counters["quicktok"] = quicktok.get_encoding("o200k_base").count
    except ImportError:
        pass
    print(f"{'':24}{'en MB/s':>10}{'zh MB/s':>10}")
    for name, count in counters.items():
        rates: list[float] = []
        for text in (english, chinese):
            best = float("inf")
            for _ in range(5):
                start = time.thread_time()
                count(text)
                best = min(best, time.thread_time() - start)
            rates.append(len(text.encode()) / 1e6 / best)
        print(f"{name:24}{rates[0]:10.1f}{rates[1]:10.1f}")
    for name, text in (("200 ASCII characters", english[1000:1200]), ("200 Han characters", chinese[:200])):
        start = time.perf_counter()
        for _ in range(20_000):
            estimate_tokens(text, MODEL)
        print(f"{name}: {(time.perf_counter() - start) / 20_000 * 1e6:.2f} µs")


if __name__ == "__main__":
    tokenizer = exact_tokenizer(MODEL)
    if tokenizer is None:
        print(
            "no o200k tokenizer is installed (quicktok-v1, or tiktoken with a cached vocabulary): no errors to report"
        )
    else:
        accuracy(tokenizer)
    speed()
