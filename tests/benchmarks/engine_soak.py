"""Many requests of mixed length through one engine: whether memory grows, and whether everything is given back.

    python tests/benchmarks/engine_soak.py [REQUESTS] [GENERATION]

64 readers ask without a pause. Prompts have 5 to 600 tokens, a third of them begins alike, one of fifty has some
thousands; one answer in ten is given up half way. Memory is the process's resident set, read after the first tenth of
the requests (all buffers have had their largest size by then) and at every further tenth.
"""

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import gc  # noqa: E402
import random  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
from pathlib import Path  # noqa: E402

from zlclient.engine.config import GENERATIONS  # noqa: E402
from zlclient.engine.runner import Engine  # noqa: E402
from zlclient.engine.sampler import Sampling  # noqa: E402

READERS = 64
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def resident() -> float:
    """MB of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6


def prompt_of(rng: random.Random, vocabulary: int) -> list[int]:
    size = rng.randrange(1500, 4000) if rng.random() < 0.02 else rng.randrange(5, 600)
    shared = [start % 500 + 400 for start in range(256)] if rng.random() < 1 / 3 else []
    return [*shared, *(rng.randrange(300, vocabulary) for _ in range(size))]


def one(engine: Engine, number: int) -> int:
    """Ask request `number`; the tokens that came."""
    rng = random.Random(number)
    tokens = prompt_of(rng, engine.model.config.vocabulary)
    sampling = Sampling(0.8, 0.95, number) if number % 2 else Sampling()
    wanted = rng.randrange(1, 40)
    stream = engine.stream(tokens, sampling=sampling, max_tokens=wanted, domain=rng.choice(("", "law", "finance")))
    read = 0
    for _ in stream:
        read += 1
        if number % 10 == 0 and read > wanted // 2:
            break
    return read


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    generation = sys.argv[2] if len(sys.argv) > 2 else GENERATIONS[-1]
    engine = Engine.shipped(generation)  # type: ignore[arg-type]
    numbers = iter(range(count))
    lock, tokens, marks = threading.Lock(), [0] * READERS, list[tuple[int, float]]()

    def work(reader: int) -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            if number and number % (count // 10) == 0:
                marks.append((number, resident()))
                print(f"{number:>6} requests  {marks[-1][1]:7.1f} MB  {engine.scheduler.load}", flush=True)
            tokens[reader] += one(engine, number)

    begun, cpu = time.monotonic(), time.process_time()
    threads = [threading.Thread(target=work, args=(reader,)) for reader in range(READERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    list(engine.stream([300], max_tokens=1))  # a last round, in which what was given up is dropped
    gc.collect()
    marks.append((count, resident()))
    stats, load = engine.cache.stats, engine.scheduler.load
    print(f"{generation}: {count} requests, {sum(tokens)} tokens read, {time.process_time() - cpu:.0f} CPU s, "
          f"{time.monotonic() - begun:.0f} s")  # fmt: skip
    print(f"memory after warm-up {marks[0][1]:.1f} MB, most {max(mb for _, mb in marks):.1f} MB, "
          f"at the end {marks[-1][1]:.1f} MB")  # fmt: skip
    print(f"left over: {load.running} running, {load.waiting} waiting, {load.positions} positions, "
          f"{stats.in_use} blocks in use; {stats.blocks} of {stats.capacity} blocks cached, "
          f"{stats.hits / stats.queries:.0%} of prompt tokens found")  # fmt: skip


if __name__ == "__main__":
    main()
