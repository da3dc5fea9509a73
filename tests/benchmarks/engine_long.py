"""One prompt as long as the engine takes: its CPU seconds and the memory it needs, printed as it is read.

    python tests/benchmarks/engine_long.py [GENERATION] [TOKENS]

A token costs more the further on it is, as it attends to all before it: the whole length takes auto about half an hour.
"""

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import resource  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402

from zlclient.engine.checkpoint import load_shipped  # noqa: E402
from zlclient.engine.config import GENERATIONS  # noqa: E402
from zlclient.engine.evaluation.speed import make_prompts  # noqa: E402
from zlclient.engine.model import LONGEST, Model  # noqa: E402

ANSWER, PART = 8, 16_384


def peak() -> float:
    """The most memory that this process has had, in MB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1e6 if sys.platform == "darwin" else 1e3)


def main() -> None:
    generation = next(name for name in GENERATIONS if name == (sys.argv[1] if len(sys.argv) > 1 else "auto"))
    size = int(sys.argv[2]) if len(sys.argv) > 2 else LONGEST
    model = Model(load_shipped(generation))
    (tokens,) = make_prompts(model.tokenizer, 1, lengths=(size - ANSWER,))
    before, state = peak(), model.start("law", limit=size)
    begun = time.process_time()
    step = None
    for at in range(0, len(tokens), PART):
        step = model.forward(tokens[at : at + PART], state)
        spent = time.process_time() - begun
        print(f"{state.length:>7,} tokens  {spent:>7.1f} CPU s  {peak() - before:>6.0f} MB", flush=True)
    assert step is not None
    for _ in range(ANSWER):
        (step,) = model.decode([int(step.logits.argmax())], [state])
    print(f"{generation}: {state.length:,} positions, keys and values {state.nbytes / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
